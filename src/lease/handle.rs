//! What the work sees of its lease: fence, history, what is left, and effect ids.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use super::handover::Handover;
use super::{Claim, Note, Transacted};
use crate::key::{Key, hex};
use crate::store::record::{Ended, Record, Verb};
use crate::time::{Clock, Stopwatch, micros};

/// How often somebody who waits for the loss of a lease looks at the clock: a timer stands still
/// while its machine is suspended, and the lease does not.
const LOOK: Duration = Duration::from_secs(1);

/// How far earlier runs of the key came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// No earlier run began, as far as the store remembers.
    Fresh,
    /// The last run returned an error. It may have had its effect all the same.
    Failed {
        /// Runs that began and were not recorded.
        runs: u32,
    },
    /// The last run crashed, panicked, was cancelled, or its lease lapsed, or an operator reset its
    /// key: it may have had its effect, and may even still be at work.
    Unknown {
        /// Runs that began and were not recorded.
        runs: u32,
    },
}

impl History {
    /// What the holder of this record was told.
    pub(crate) fn of(record: &Record) -> Self {
        let runs = record.runs;
        match record.ended {
            Ended::Fresh => Self::Fresh,
            Ended::Failed => Self::Failed { runs },
            Ended::Unknown => Self::Unknown { runs },
        }
    }
}

/// The lease under which the work runs: an argument of `run_with`, and an extractor under the layer.
///
/// A handle; clones speak of the same lease.
#[derive(Debug, Clone)]
pub struct Lease(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) key: Key,
    /// Not where `PUSHONCE_DISABLED` is set.
    pub(super) guarded: bool,
    fence: u64,
    history: History,
    own: Span,
    /// Of the entity that the work holds besides.
    entity: Option<Span>,
    gone: Notify,
    lost: AtomicBool,
    pub(super) handover: Handover,
}

/// How long a claim excludes others, and since when.
#[derive(Debug)]
struct Span {
    length: Duration,
    since: Mutex<Stopwatch>,
}

impl Span {
    fn of(claim: &Claim) -> Self {
        let record = claim.record();
        // A mark excludes others until its ttl has passed.
        let length = if record.verb == Verb::AtMostOnce { record.ttl } else { record.lease };
        Self { length, since: Mutex::new(claim.since().clone()) }
    }

    fn left(&self) -> Duration {
        self.length.saturating_sub(self.since().elapsed())
    }

    fn since(&self) -> MutexGuard<'_, Stopwatch> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of the claims that the work holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Key,
    Entity,
}

impl Lease {
    pub(crate) fn of(claim: &Claim, entity: Option<&Claim>) -> Self {
        let record = claim.record();
        Self(Arc::new(Shared {
            key: claim.place().key.clone(),
            guarded: true,
            fence: record.fence,
            history: History::of(record),
            own: Span::of(claim),
            entity: entity.map(Span::of),
            gone: Notify::new(),
            lost: false.into(),
            handover: Handover::default(),
        }))
    }

    /// The lease of work that runs unguarded: nobody holds anything.
    pub(crate) fn unguarded(key: &Key, length: Duration, clock: &Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            key: key.clone(),
            guarded: false,
            fence: micros(clock.wall()),
            history: History::Fresh,
            own: Span { length, since: Mutex::new(Stopwatch::start(clock)) },
            entity: None,
            gone: Notify::new(),
            lost: false.into(),
            handover: Handover::default(),
        }))
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// The fencing token: higher for each claim of the key. A sink that remembers the highest it has
    /// seen can refuse a holder that was replaced. Not an idempotency key: it differs on a rerun.
    pub fn fence(&self) -> u64 {
        self.0.fence
    }

    /// How far earlier runs came. `Fresh` is no proof; anything else is a warning that the effect may have happened.
    pub fn history(&self) -> History {
        self.0.history
    }

    /// What is left of the lease, as the holder counts it: from before the claim was sent. Zero once
    /// it is lost. Under `serialize` the shorter of the key's and the entity's.
    pub fn left(&self) -> Duration {
        if self.0.lost.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let own = self.0.own.left();
        self.0.entity.as_ref().map_or(own, |entity| own.min(entity.left()))
    }

    /// Ends when the lease has lapsed, or was found to be taken over: stop before the next effect.
    /// The work may still end and be recorded, if nobody has taken the key over.
    pub async fn lost(&self) {
        loop {
            let gone = self.0.gone.notified();
            let left = self.left();
            if left.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = gone => {}
                () = tokio::time::sleep(left.min(LOOK)) => {}
            }
        }
    }

    /// An idempotency key for the vendor of one effect: the same on every rerun of this key, another
    /// for each `name`. 64 hex digits.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use pushonce::{Store, lock, store::Memory};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pushonce::RunError> {
    /// # let store: Arc<dyn Store> = Arc::new(Memory::new());
    /// let charge = lock(("orders", "po-1"), &store).run_with(|lease| async move { Ok(lease.effect_id("charge")) }).await?;
    /// assert_eq!(charge.len(), 64);
    /// # Ok(()) }
    /// ```
    pub fn effect_id(&self, name: &str) -> String {
        let mut text = String::new();
        for part in [self.0.key.consumer().as_str(), self.0.key.text(), name] {
            // Writing into a String cannot fail.
            let _ = write!(text, "{}.{part}|", part.len());
        }
        hex(&Sha256::digest(text))
    }

    /// Counts from the renewal that was sent then.
    pub(crate) fn renewed(&self, part: Part, since: &Stopwatch) {
        let span = if part == Part::Key { Some(&self.0.own) } else { self.0.entity.as_ref() };
        if let Some(span) = span {
            *span.since() = since.clone();
        }
    }

    /// Ends when the work asks for the claim, to complete the key in a transaction of its own.
    pub(crate) async fn asked(&self) {
        self.0.handover.asked().await;
    }

    /// Gives the claim to the work that has asked for it. Nobody else may write by it until the work has ended.
    pub(crate) fn give(&self, claim: &Claim, note: &Note) {
        self.0.handover.give(claim, note);
    }

    /// The work has ended: what became of its own transaction, if it had one. From here on there can be none.
    pub(crate) fn close(&self) -> Option<Box<Transacted>> {
        self.0.handover.close()
    }

    /// Somebody else holds the key.
    pub(crate) fn lose(&self) {
        self.0.lost.store(true, Ordering::Release);
        self.0.gone.notify_waiters();
    }
}
