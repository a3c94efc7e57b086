//! How work that ended is written down: before the answer for a short time, then in the background until it is stored.

use std::pin::pin;
use std::time::Duration;

use super::guard::{Interrupted, NotStarted, Plan, Ran, Reply, Uncertain};
use super::pending::Pending;
use super::watch::{End, unhurt};
use crate::lease::planted::{Fault, planted};
use crate::lease::{Claim, Commit, Op, Panicked, RunError, Shutdown, TimedOut, claim_limit};
use crate::random;
use crate::store::StoreError;
use crate::store::record::{Ended, Verb};
use crate::time::within;

/// How long a completion or a release is tried before the answer goes out.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two tries after that.
const SLOWEST: Duration = Duration::from_secs(30);

/// Work that did not succeed: what its caller is told, and what becomes of its claim.
pub(super) struct Unsuccessful {
    pub(super) error: RunError,
    fate: Fate,
}

enum Fate {
    Released(Ended),
    /// As if it had never been claimed.
    Undone,
    /// What the work started may go on: nobody else may start before the lease has lapsed, unless it is safe to cancel.
    Cancelled,
}

/// What the end of the work means.
pub(super) fn outcome<T>(end: End<T>) -> Result<T, Unsuccessful> {
    let (error, fate) = match end.told_apart() {
        End::Done(value) => return Ok(value),
        End::NotStarted(error) => (error, Fate::Undone),
        End::Failed(error) => (RunError::Work(error), Fate::Released(Ended::Failed)),
        End::Panicked(message) => {
            (RunError::Work(Panicked { message }.into()), Fate::Released(Ended::Unknown))
        }
        End::TimedOut(limit) => (RunError::Work(TimedOut { limit }.into()), Fate::Cancelled),
        End::Cancelled => (RunError::Shutdown(Shutdown), Fate::Cancelled),
    };
    Err(Unsuccessful { error, fate })
}

/// Settles the claim of work that ended, and replies. Goes on after the reply where the store did not take it.
pub(super) async fn settle<T, R: Reply<T>>(mut claim: Claim, end: End<T>, plan: Plan, mut reply: R) {
    let (op, result) = match outcome(end) {
        Ok(value) if plan.settings.verb == Verb::Mutex => (Op::Release(Ended::Fresh), Ok(value)),
        Ok(value) => (Op::Complete(plan.note.clone()), Ok(value)),
        Err(Unsuccessful { error, fate }) => match fate {
            Fate::Released(ended) => (Op::Release(ended), Err(error)),
            Fate::Undone => {
                reply.undone();
                (Op::Undo(claim.found()), Err(error))
            }
            Fate::Cancelled if plan.settings.cancel_safe => (Op::Release(Ended::Unknown), Err(error)),
            Fate::Cancelled => return reply.send(Err(error)),
        },
    };
    let completes = matches!(op, Op::Complete(_));
    // This process knows that the key is done, and must not claim it again once the lease has lapsed.
    // While more of it is left than the first tries and a claim take that cannot be, and the usual
    // completion is spared this.
    let lapsing = claim.left() <= PATIENCE + claim_limit(plan.settings.lease);
    let mut pending = (completes && lapsing).then(|| Pending::begin(&plan.store, &plan.key));
    let stored = within(PATIENCE, pin!(through(&mut claim, &op))).await;
    if completes && stored.is_none() {
        pending.get_or_insert_with(|| Pending::begin(&plan.store, &plan.key));
    }
    let uncertain = match (&stored, plan.settings.verb) {
        (Some(Commit::Recorded | Commit::AlreadyDone), _) => None,
        // A release may have landed and been followed by another claim: nothing is known to be wrong.
        (_, Verb::Mutex) => None,
        (Some(Commit::FencedOut), _) => Some(Uncertain::FencedOut),
        // The mark stands, so nobody runs it again; only "started" does not become "finished" yet.
        (None, Verb::AtMostOnce) => None,
        (None, Verb::Lock) => Some(Uncertain::Unrecorded),
    };
    if let (Some(Commit::FencedOut), false) = (&stored, completes) {
        tracing::info!(key = %plan.key, fence = claim.record().fence, "the claim was not ours any more when it was released");
    }
    // The value or error may panic where nobody takes it.
    unhurt(|| reply.send(result.map(|value| Ran { value, uncertain })));
    if stored.is_none() && !planted(Fault::DroppedCompletion) {
        match Box::pin(through(&mut claim, &op)).await {
            Commit::Recorded | Commit::AlreadyDone => {
                tracing::info!(key = %plan.key, completes, "stored after the answer");
            }
            Commit::FencedOut => {
                tracing::warn!(key = %plan.key, completes, "fenced out before it could be stored after the answer");
            }
        }
    }
}

impl<T> End<T> {
    /// The work of an outer guard may be an inner guard, whose error says how the work really ended.
    fn told_apart(self) -> Self {
        let Self::Failed(error) = self else { return self };
        if let Some(panicked) = error.downcast_ref::<Panicked>() {
            return Self::Panicked(panicked.message.clone());
        }
        if let Some(late) = error.downcast_ref::<TimedOut>() {
            return Self::TimedOut(late.limit);
        }
        if error.is::<Interrupted>() {
            return Self::Cancelled;
        }
        match error.downcast::<NotStarted>() {
            Ok(refused) => Self::NotStarted(refused.0),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Writes until the store takes it.
async fn through(claim: &mut Claim, op: &Op) -> Commit {
    let mut nap = Duration::from_millis(50);
    loop {
        let error: StoreError = match claim.write(op).await {
            Ok(commit) => return commit,
            Err(error) => error,
        };
        let key = &claim.place().key;
        tracing::warn!(%key, error = &error as &dyn std::error::Error, "the end of the work is not stored yet");
        tokio::time::sleep(random::jitter(nap)).await;
        nap = (nap * 2).min(SLOWEST);
    }
}
