//! How work is settled that meant to complete its key in a transaction of its own: its word does not count, the record's does.

use std::sync::Arc;

use super::plan::{Plan, Ran, Reply};
use super::settle::{self, Fate, Unsuccessful, in_time, outcome, through, told_late};
use super::watch::{End, unhurt};
use crate::lease::{AfterCommit, Claim, Commit, CommitError, Op, RunError, Transacted};
use crate::store::record::Ended;
use crate::store::{BoxError, StoreError};

/// Settles the claims of such work, and replies. Where nobody knows, a release decides: it waits for
/// whoever still locks the record, and after it a commit that comes late must fail, since its condition is false.
pub(super) async fn settle<T, R: Reply<T>>(
    transacted: Box<Transacted>,
    mut claim: Claim,
    mut entity: Option<Claim>,
    end: End<T>,
    plan: Plan,
    reply: R,
) {
    let (known, cause) = match *transacted {
        Transacted::Committed => (Some(Commit::AlreadyDone), None),
        Transacted::Not(CommitError::FencedOut { .. }) => (Some(Commit::FencedOut), None),
        // Nothing is in doubt: as any other work, only that it has not succeeded.
        Transacted::Not(error) => {
            return settle::settle(claim, entity, failed(end, error), plan, reply).await;
        }
        Transacted::Open(cause) => (None, cause),
    };
    let ended = outcome(end);
    let op = Op::Release(match &ended {
        Ok(_) => Ended::Failed,
        Err(Unsuccessful { fate: Fate::Released(ended), .. }) => *ended,
        Err(_) => Ended::Unknown,
    });
    // The entity's claim is no part of the transaction.
    let leave = match &ended {
        Ok(_) => Some(Op::Release(Ended::Fresh)),
        Err(Unsuccessful { fate: Fate::Released(ended), .. }) => Some(Op::Release(*ended)),
        Err(_) => plan.settings.cancel_safe.then_some(Op::Release(Ended::Unknown)),
    };
    let mut entity = entity.as_mut().zip(leave);
    let decided = async { if known.is_some() { known } else { in_time(&mut claim, &op).await } };
    let given_back = async {
        match &mut entity {
            Some((entity, leave)) => in_time(entity, leave).await.is_some(),
            None => true,
        }
    };
    let (decided, given_back) = tokio::join!(decided, given_back);
    let key = &plan.place.key;
    let result = result(decided, ended, cause, &plan);
    // The value or error may panic where nobody takes it.
    unhurt(|| reply.send(result.map(|value| Ran { value, uncertain: None })));
    let decide_late = async {
        if decided.is_none() {
            let commit = through(&mut claim, &op).await;
            tracing::info!(%key, committed = commit == Commit::AlreadyDone, "known after the answer: what became of the work's own transaction");
        }
    };
    let give_back_late = async {
        if let (false, Some((entity, leave))) = (given_back, &mut entity) {
            told_late(entity, leave).await;
        }
    };
    tokio::join!(decide_late, give_back_late);
}

/// What the work has come to, by what the record says.
fn result<T>(
    decided: Option<Commit>,
    ended: Result<T, Unsuccessful>,
    cause: Option<Arc<StoreError>>,
    plan: &Plan,
) -> Result<T, RunError> {
    let error = match (decided, ended) {
        (Some(Commit::AlreadyDone), ended) => {
            return ended.map_err(|Unsuccessful { error, .. }| after_commit(error));
        }
        // Cut off, or failed by its own word before it came to commit.
        (Some(Commit::Recorded), Err(Unsuccessful { error, fate }))
            if cause.is_none() || !matches!(fate, Fate::Released(Ended::Failed)) =>
        {
            return Err(error);
        }
        (decided, ended) => {
            // It may panic, and nobody takes it.
            unhurt(|| drop(ended));
            match decided {
                Some(Commit::FencedOut) => CommitError::FencedOut { key: plan.place.key.clone() },
                Some(_) => CommitError::RolledBack { source: cause },
                None => CommitError::Unknown { source: cause },
            }
        }
    };
    Err(RunError::Commit(error))
}

/// Work whose transaction was rolled back. What it says itself counts only where it was cut off.
fn failed<T>(end: End<T>, error: CommitError) -> End<T> {
    match end {
        End::Panicked(_) | End::TimedOut(_) | End::Cancelled | End::NotStarted(_) => end,
        said @ (End::Done(_) | End::Failed(_) | End::NotCommitted(_)) => {
            unhurt(|| drop(said));
            End::NotCommitted(error)
        }
    }
}

/// The key is recorded, whatever the work did then.
fn after_commit(error: RunError) -> RunError {
    let source: BoxError = match error {
        RunError::Work(source) => source,
        error => error.into(),
    };
    RunError::Work(AfterCommit { source }.into())
}
