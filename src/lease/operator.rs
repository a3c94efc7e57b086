//! What an operator asks of a key, on any store: how it stands, and to set it free.

use std::sync::Arc;
use std::time::Duration;

use super::machine::{self, Force, Stamp};
use super::planted::{Fault, planted};
use super::status::{Status, age};
use super::{TRIES, bounded, pause};
use crate::key::Key;
use crate::random;
use crate::store::record::Record;
use crate::store::{Standing, Store, StoreError, Stored, Swap};
use crate::time::{Clock, micros, system_clock};

/// What stands under a key.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// The record.
    pub record: Record,
    /// How long ago the claim was won or renewed, or the work recorded, by the store's clock.
    pub age: Duration,
    /// What the two say together.
    pub status: Status,
}

impl From<Stored> for Inspected {
    /// The same of a record that was listed.
    fn from(stored: Stored) -> Self {
        Self { age: age(&stored), status: Status::of(&stored), record: stored.record }
    }
}

/// What came of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a key that is held was not reset"]
pub enum Reset {
    /// The key was reset: it is free, and whoever held it can write nothing more.
    Freed,
    /// There was nothing to reset: nothing stands, or it is released.
    Free,
    /// A live claim has the key, and was spared. Wait, or force it.
    Held {
        /// What is left of its lease.
        left: Duration,
    },
    /// The record that was to be reset is gone, and another claim took the key meanwhile; it was left
    /// alone. Inspect the key, and decide anew.
    Overtaken,
}

/// What stands under the key, if anything does.
///
/// ```
/// use std::sync::Arc;
/// use pushonce::maintain::{Status, inspect};
/// use pushonce::{IntoKey, Store, lock, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// lock(("orders", "po-1"), &store).run(async { Ok(()) }).await?;
/// let key = ("orders", "po-1").into_key()?;
/// let inspected = inspect(&store, &key).await?.ok_or("nothing stands")?;
/// assert!(matches!(inspected.status, Status::Done { .. }));
/// assert_eq!(inspected.status.to_string(), "done for another 7 d");
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`StoreError`], after some tries. Call again.
pub async fn inspect<S: Store + ?Sized>(store: &S, key: &Key) -> Result<Option<Inspected>, StoreError> {
    Ok(look(store, key).await?.map(Inspected::from))
}

/// Sets the key free, so that the next claim wins it and its work runs again.
///
/// The record stays, released and without a holder: the fence keeps rising, and whoever held the key
/// is fenced out. The next run is told that an earlier one may have had its effect
/// ([`History::Unknown`](crate::History::Unknown)), also when that was recorded. A
/// [`Cached`](crate::store::Cached) store of another process may skip duplicates for up to 30 s more.
///
/// Only the record that is found is reset, and never that of a claim which follows on it, however often
/// a write has to be tried.
///
/// ```
/// use std::sync::Arc;
/// use pushonce::maintain::{Force, Reset, reset};
/// use pushonce::{IntoKey, Store, lock, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// lock(("orders", "po-1"), &store).run(async { Ok(()) }).await?;
/// let key = ("orders", "po-1").into_key()?;
/// assert_eq!(reset(&store, &key, Force::No).await?, Reset::Freed);
/// lock(&key, &store).run(async { Ok("again") }).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`StoreError`], after some tries. Nobody knows whether the key was reset, or will be: call again.
pub async fn reset<S: Store + ?Sized>(store: &S, key: &Key, force: Force) -> Result<Reset, StoreError> {
    reset_by(&system_clock(), store, key, force).await
}

pub(super) async fn reset_by<S: Store + ?Sized>(
    clock: &Arc<dyn Clock>,
    store: &S,
    key: &Key,
    force: Force,
) -> Result<Reset, StoreError> {
    let mut standing = look(store, key).await?;
    let met = standing.as_ref().and_then(|stored| stored.record.holder);
    // Whether a write of ours may have landed without an answer.
    let mut unanswered = false;
    for tries in 0..TRIES {
        let Some(stored) = standing else { return Ok(Reset::Free) };
        let stamp = Stamp { now: micros(clock.wall()), token: random::id() };
        let next = match machine::reset(&stored, force, stamp) {
            // Only a reset leaves no holder.
            machine::Reset::Free if unanswered && stored.record.holder.is_none() => return Ok(Reset::Freed),
            machine::Reset::Free => return Ok(Reset::Free),
            // The wish, and the force, were for the holder that was met, not for whoever came after it.
            _ if stored.record.holder != met && !planted(Fault::ResetsAnybody) => {
                return Ok(Reset::Overtaken);
            }
            machine::Reset::Held { left } => return Ok(Reset::Held { left }),
            machine::Reset::Write(next) => next,
        };
        let swap = bounded(|| store.swap(key, Some(&stored.version), &next), StoreError::unanswered).await;
        standing = match swap {
            Ok(Swap::Written(_)) => return Ok(Reset::Freed),
            Ok(Swap::Lost(Standing::Is(stored))) => Some(*stored),
            Ok(Swap::Lost(Standing::Absent)) => None,
            Ok(Swap::Lost(Standing::Unknown)) => {
                pause(tries).await;
                look(store, key).await?
            }
            Err(error) if error.is_transient() => {
                unanswered |= error.may_have_written();
                pause(tries).await;
                look(store, key).await?
            }
            Err(error) => return Err(error),
        };
    }
    Err(StoreError::unanswered(format!("not reset in {TRIES} tries")))
}

/// A read, tried again while the store fails.
async fn look<S: Store + ?Sized>(store: &S, key: &Key) -> Result<Option<Stored>, StoreError> {
    let mut tries = 0;
    loop {
        match bounded(|| store.read(key), StoreError::unavailable).await {
            Err(error) if error.is_transient() && tries + 1 < TRIES => pause(tries).await,
            answer => return answer,
        }
        tries += 1;
    }
}
