//! How work that ended is written down: before the answer for a short time, then in the background until it is stored.

use std::time::Duration;

use super::guard::{End, NotStarted, Plan, Ran, Reply, Uncertain};
use super::pending::Pending;
use crate::lease::planted::{Fault, planted};
use crate::lease::{Claim, Commit, Op, Panicked, RunError, Shutdown, TimedOut, claim_limit};
use crate::random;
use crate::store::StoreError;
use crate::store::record::{Ended, Verb};

/// How long a completion or a release is tried before the answer goes out.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two tries after that.
const SLOWEST: Duration = Duration::from_secs(30);

/// Settles the claim of work that ended, and replies. Goes on after the reply where the store did not take it.
pub(super) async fn settle<T, R: Reply<T>>(mut claim: Claim, end: End<T>, plan: Plan, reply: R) {
    let safe = plan.settings.cancel_safe.then_some(Op::Release(Ended::Unknown));
    let (op, result) = match end.told_apart() {
        End::Done(value) if plan.settings.verb == Verb::Mutex => (Some(Op::Release(Ended::Fresh)), Ok(value)),
        End::Done(value) => (Some(Op::Complete(plan.note.clone())), Ok(value)),
        End::NotStarted(error) => (Some(Op::Undo(claim.found())), Err(error)),
        End::Failed(error) => (Some(Op::Release(Ended::Failed)), Err(RunError::Work(error))),
        End::Panicked(message) => {
            (Some(Op::Release(Ended::Unknown)), Err(RunError::Work(Panicked { message }.into())))
        }
        // What the work started may go on, so nobody else may start before the lease has lapsed.
        End::TimedOut(limit) => (safe, Err(RunError::Work(TimedOut { limit }.into()))),
        End::Cancelled => (safe, Err(RunError::Shutdown(Shutdown))),
    };
    let Some(op) = op else { return reply.send(result.map(|value| Ran { value, uncertain: None })) };
    let completes = matches!(op, Op::Complete(_));
    // This process knows that the key is done, and must not claim it again once the lease has lapsed.
    // While more of it is left than the first tries and a claim take that cannot be, and the usual
    // completion is spared this.
    let lapsing = claim.left() <= PATIENCE + claim_limit(plan.settings.lease);
    let mut pending = (completes && lapsing).then(|| Pending::begin(claim.place()));
    let stored = tokio::time::timeout(PATIENCE, through(&mut claim, &op)).await;
    if completes && stored.is_err() {
        pending.get_or_insert_with(|| Pending::begin(claim.place()));
    }
    let uncertain = match (&stored, plan.settings.verb) {
        (Ok(Commit::Recorded | Commit::AlreadyDone), _) => None,
        // A release may have landed and been followed by another claim: nothing is known to be wrong.
        (_, Verb::Mutex) => None,
        (Ok(Commit::FencedOut), _) => Some(Uncertain::FencedOut),
        // The mark stands, so nobody runs it again; only "started" does not become "finished" yet.
        (Err(_), Verb::AtMostOnce) => None,
        (Err(_), Verb::Lock) => Some(Uncertain::Unrecorded),
    };
    if let (Ok(Commit::FencedOut), false) = (&stored, completes) {
        tracing::info!(key = %plan.key, fence = claim.record().fence, "the claim was not ours any more when it was released");
    }
    reply.send(result.map(|value| Ran { value, uncertain }));
    if stored.is_err() && !planted(Fault::DroppedCompletion) {
        match through(&mut claim, &op).await {
            Commit::Recorded | Commit::AlreadyDone => {
                tracing::info!(key = %plan.key, completes, "stored after the answer");
            }
            Commit::FencedOut => {
                tracing::warn!(key = %plan.key, completes, "fenced out before it could be stored after the answer");
            }
        }
    }
    drop(pending);
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
        if let Some(RunError::Shutdown(_)) = error.downcast_ref() {
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
