//! How work that ended is written down: before the answer for a short time, then in the background until it is stored.

use std::pin::pin;
use std::time::Duration;

use super::pending::Pending;
use super::plan::{Plan, Ran, Reply, send};
use super::reject;
use super::watch::End;
use crate::chain::chain_about;
use crate::lease::planted::{Fault, planted};
use crate::lease::{Claim, Commit, Entry, Op, Panicked, RunError, Shutdown, TimedOut, Why, claim_limit};
use crate::meter::Run;
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
    pub(super) fate: Fate,
}

/// What becomes of the claim of work that did not succeed.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    Released(Ended),
    /// Done, and never to succeed.
    Rejected,
    /// As if it had never been claimed.
    Undone,
    /// What the work started may go on: nobody else may start before the lease has lapsed, unless it is safe to cancel.
    Cancelled,
}

/// What the end of the work means.
pub(super) fn outcome<T>(end: End<T>) -> Result<T, Unsuccessful> {
    let (error, fate) = match end {
        End::Done(value) => return Ok(value),
        End::NotStarted(error) => (error, Fate::Undone),
        End::Failed(error) => (RunError::Work(error), Fate::Released(Ended::Failed)),
        End::Rejected(error) => (RunError::Work(error), Fate::Rejected),
        End::Misused(misuse) => (RunError::Misuse(misuse), Fate::Released(Ended::Failed)),
        End::Panicked(message) => {
            (RunError::Work(Panicked { message }.into()), Fate::Released(Ended::Unknown))
        }
        End::TimedOut(limit) => (RunError::Work(TimedOut { limit }.into()), Fate::Cancelled),
        End::Cancelled => (RunError::Shutdown(Shutdown), Fate::Cancelled),
    };
    Err(Unsuccessful { error, fate })
}

/// Settles the claims of work that ended, and replies. Goes on after the reply where the store did not take it.
pub(super) async fn settle<T, R: Reply<T>>(
    mut claim: Claim,
    mut entity: Option<Claim>,
    end: End<T>,
    plan: Plan,
    mut run: Run,
    reply: R,
) {
    let (op, release, result) = match outcome(end) {
        Ok(value) if plan.settings.verb == Verb::Mutex => {
            (Op::Release(Ended::Fresh), Ended::Fresh, Ok(value))
        }
        Ok(value) => (Op::Complete(plan.note.clone()), Ended::Fresh, Ok(value)),
        Err(Unsuccessful { error, fate }) => match fate {
            Fate::Released(ended) => (Op::Release(ended), ended, Err(error)),
            Fate::Rejected => (Op::Reject(plan.note.clone()), Ended::Failed, Err(error)),
            Fate::Undone => (Op::Undo(claim.found()), Ended::Fresh, Err(error)),
            Fate::Cancelled if plan.settings.cancel_safe => {
                (Op::Release(Ended::Unknown), Ended::Unknown, Err(error))
            }
            Fate::Cancelled => return send(reply, Err(error)).await,
        },
    };
    let (ends, completes) = (op.ends().is_some(), matches!(op, Op::Complete(_)));
    let fence = claim.fence();
    // This process knows that the key is done, and must not claim it again once the lease has lapsed.
    // While more of it is left than the first tries and a claim take that cannot be, and the usual
    // completion is spared this.
    let lapsing = claim.left() <= PATIENCE + claim_limit(plan.settings.lease);
    let mut pending = (ends && lapsing).then(|| Pending::begin(claim.place()));
    let release = Op::Release(release);
    let (stored, given_back) = match &mut entity {
        None => (in_time(&mut claim, &op).await, None),
        // Both at once: the work is over, so neither need wait for the other's trip. Boxed, as most have one.
        Some(entity) => {
            Box::pin(async {
                let both = tokio::join!(in_time(&mut claim, &op), in_time(entity, &release));
                (both.0, Some(both.1))
            })
            .await
        }
    };
    run.settled();
    if ends && stored.is_none() {
        pending.get_or_insert_with(|| Pending::begin(claim.place()));
    }
    let uncertain = match (&stored, plan.settings.verb) {
        (Some(Commit::Recorded | Commit::AlreadyDone), _) => None,
        // A release may have landed and been followed by another claim: nothing is known to be wrong.
        (_, Verb::Mutex) => None,
        _ if !completes => None,
        (Some(Commit::FencedOut), _) => Some(Why::FencedOut),
        // The mark stands, so nobody runs it again; only "started" does not become "finished" yet.
        (None, Verb::AtMostOnce) => None,
        (None, Verb::Lock) => Some(Why::Unrecorded),
    };
    if let (Some(Commit::FencedOut), false) = (&stored, ends) {
        tracing::info!(
            key = plan.place.key.to_string(),
            fence,
            "the claim was not ours any more when it was released"
        );
    }
    let result = result.map_err(|error| match &op {
        Op::Reject(_) => reject::recorded(error, stored),
        _ => error,
    });
    let answered = send(reply, result.map(|value| Ran { value, uncertain }));
    if planted(Fault::DroppedCompletion) {
        return answered.await;
    }
    // What is told is known here too: nobody is kept from the key while its entry is written, or while its
    // entity's release is tried on.
    let pending = pending.filter(|_| stored.is_none());
    if stored.is_none() || given_back == Some(None) || uncertain.is_some() {
        let left = Left {
            completion: stored.is_none().then_some((claim, op, pending)),
            entity: entity.filter(|_| given_back == Some(None)).map(|entity| (entity, release)),
            uncertain: uncertain.map(|why| (why, fence)),
        };
        // Rare, so its state is not carried by all others.
        // Both at once: whoever has to be told first must not keep the end from being stored.
        Box::pin(async { tokio::join!(answered, afterwards(left, plan)) }).await;
    } else {
        answered.await;
    }
}

/// What is left to be done after the answer.
struct Left {
    /// The claim whose end is not stored, with what keeps this process from claiming its key again.
    completion: Option<(Claim, Op, Option<Pending>)>,
    entity: Option<(Claim, Op)>,
    /// Why the run under that fence is not recorded.
    uncertain: Option<(Why, u64)>,
}

async fn afterwards(left: Left, plan: Plan) {
    let completion = async {
        let (mut claim, op, pending) = left.completion?;
        let commit = told_late(&mut claim, &op).await;
        drop(pending);
        Some(commit)
    };
    let key = async {
        let entry = left.uncertain.and_then(|(why, fence)| Entry::of(&plan.place, fence, why, &plan.note));
        let Some(entry) = entry else {
            completion.await;
            return;
        };
        if let (Some(commit), ()) = tokio::join!(completion, entry.write()) {
            entry.settle(commit).await;
        }
    };
    let entity = async {
        if let Some((mut entity, release)) = left.entity {
            told_late(&mut entity, &release).await;
        }
    };
    tokio::join!(key, entity);
}

/// Stores it before the answer, or `None`.
pub(super) async fn in_time(claim: &mut Claim, op: &Op) -> Option<Commit> {
    within(PATIENCE, pin!(through(claim, op))).await
}

/// Stores it after the answer.
pub(super) async fn told_late(claim: &mut Claim, op: &Op) -> Commit {
    let commit = through(claim, op).await;
    let key = &claim.place().key;
    let completes = op.ends().is_some();
    match commit {
        Commit::Recorded | Commit::AlreadyDone => {
            tracing::info!(key = key.to_string(), completes, "stored after the answer");
        }
        Commit::FencedOut => {
            tracing::warn!(
                key = key.to_string(),
                completes,
                "fenced out before it could be stored after the answer"
            );
        }
    }
    commit
}

/// Writes until the store takes it.
pub(super) async fn through(claim: &mut Claim, op: &Op) -> Commit {
    let mut nap = Duration::from_millis(50);
    loop {
        let error: StoreError = match claim.write(op).await {
            Ok(commit) => return commit,
            Err(error) => error,
        };
        let key = &claim.place().key;
        tracing::warn!(
            key = key.to_string(),
            error = chain_about(key, &error),
            "the end of the work is not stored yet"
        );
        Box::pin(tokio::time::sleep(random::jitter(nap))).await;
        nap = (nap * 2).min(SLOWEST);
    }
}
