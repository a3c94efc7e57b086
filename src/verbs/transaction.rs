//! How work is settled that meant to complete its key in a transaction of its own: its word does not count, the record's does.

use std::sync::Arc;

use super::plan::{Plan, Ran, Reply, send};
use super::settle::{self, Fate, Unsuccessful, in_time, outcome, through, told_late};
use super::watch::{End, unhurt};
use crate::lease::{AfterCommit, Claim, Commit, CommitError, Misuse, Op, RunError, Transacted};
use crate::meter::Run;
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
    mut run: Run,
    reply: R,
) {
    let (known, word) = match *transacted {
        // Nothing is in doubt: as any other work, only that it has not succeeded.
        Transacted::Misused(misuse) => {
            return settle::settle(claim, entity, misused(end, misuse), plan, run, reply).await;
        }
        Transacted::Committed => (Some(Commit::AlreadyDone), Word::Open(None)),
        Transacted::FencedOut => (Some(Commit::FencedOut), Word::Open(None)),
        Transacted::RolledBack(cause) => (None, Word::RolledBack(cause)),
        Transacted::Open(cause) => (None, Word::Open(cause)),
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
    let decided = if known.is_some() { known } else { in_time(&mut claim, &op).await };
    // Not before it is decided: until then the transaction may still be committed, and whoever got the
    // entity would not see its effect.
    let given_back = match &mut entity {
        Some((entity, leave)) => decided.is_some() && in_time(entity, leave).await.is_some(),
        None => true,
    };
    run.settled();
    let result = result(decided, ended, word, &plan);
    send(reply, result.map(|value| Ran { value, uncertain: None })).await;
    if decided.is_none() {
        let commit = through(&mut claim, &op).await;
        tracing::info!(
            key = plan.place.key.to_string(),
            committed = commit == Commit::AlreadyDone,
            "after the answer it is known what became of the work's own transaction"
        );
    }
    if let (false, Some((entity, leave))) = (given_back, &mut entity) {
        told_late(entity, leave).await;
    }
}

/// What the work's commit was told, with what the store said of it.
enum Word {
    RolledBack(Option<Arc<StoreError>>),
    Open(Option<Arc<StoreError>>),
}

/// What the work has come to, by what the record says.
fn result<T>(
    decided: Option<Commit>,
    ended: Result<T, Unsuccessful>,
    word: Word,
    plan: &Plan,
) -> Result<T, RunError> {
    let error = match (decided, ended, word) {
        (Some(Commit::AlreadyDone), ended, _) => {
            return ended.map_err(|Unsuccessful { error, .. }| after_commit(error));
        }
        // Cut off, or failed by its own word before it came to commit.
        (
            Some(Commit::Recorded),
            Err(Unsuccessful { error, fate }),
            Word::RolledBack(cause) | Word::Open(cause),
        ) if cause.is_none() || !matches!(fate, Fate::Released(Ended::Failed)) => {
            return Err(error);
        }
        (decided, ended, word) => {
            // It may panic, and nobody takes it.
            unhurt(|| drop(ended));
            match (decided, word) {
                (Some(Commit::FencedOut), _) => CommitError::FencedOut { key: plan.place.key.clone() },
                (None, Word::Open(source)) => CommitError::Unknown { source },
                (_, Word::RolledBack(source) | Word::Open(source)) => CommitError::RolledBack { source },
            }
        }
    };
    Err(RunError::Commit(error))
}

/// Work that has misused its lease. What it says itself counts only where it was cut off.
fn misused<T>(end: End<T>, misuse: Misuse) -> End<T> {
    match end {
        End::Panicked(_) | End::TimedOut(_) | End::Cancelled | End::NotStarted(_) => end,
        said @ (End::Done(_) | End::Failed(_) | End::Rejected(_) | End::Misused(_)) => {
            unhurt(|| drop(said));
            End::Misused(misuse)
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
