//! How work is admitted: what can be said before the store is asked, the claim, and the wait for a live holder.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::pending::is_pending;
use super::plan::{Plan, Reply};
use super::settings::Settings;
use crate::lease::{Ask, Claim, Claimed, Commit, Misuse, Place, RunError, Shutdown, Skip, claim, undo_room};
use crate::random;
use crate::store::StoreError;
use crate::task;

/// How often a waiter looks whether the holder is through.
const POLL: Duration = Duration::from_millis(250);

tokio::task_local! {
    /// The keys that the running work holds, each on its store.
    static HOLDS: Vec<Arc<Place>>;
}

/// Runs the work of a plan so that it is known which keys it holds.
pub(super) fn holding<W: Future>(plan: &Plan, work: W) -> impl Future<Output = W::Output> {
    let mut holds = HOLDS.try_with(Clone::clone).unwrap_or_default();
    holds.extend(plan.keys().map(|plan| plan.place.clone()));
    HOLDS.scope(holds, work)
}

/// What can be said before the store is asked.
pub(super) fn admissible(plan: &Plan) -> Result<(), RunError> {
    for plan in plan.keys() {
        let held =
            |held: &Arc<Place>| Arc::ptr_eq(&held.store, &plan.place.store) && held.key == plan.place.key;
        if HOLDS.try_with(|holds| holds.iter().any(held)).unwrap_or_default() {
            return Err(RunError::Misuse(Misuse::Reentrant { key: plan.place.key.clone() }));
        }
    }
    if task::draining() {
        return Err(RunError::Shutdown(Shutdown));
    }
    if task::crowded() || !undo_room() {
        let what = "nothing was asked of it: too much work of this process goes on without its caller";
        return Err(RunError::Store(StoreError::unavailable(what)));
    }
    Ok(())
}

/// Claims the entity that the work needs besides, for which the claim of its key has to wait.
pub(super) async fn enter<T>(
    entity: &Plan,
    claim: &mut Claim,
    renew: bool,
    reply: &mut impl Reply<T>,
) -> Result<Claim, RunError> {
    let entered = admit(entity, reply).await?;
    // While the entity was awaited the key's lease ran on, and somebody else may have the key by now.
    if !claim.is_fresh() && renew {
        let renewed = claim.renew().await.map_err(RunError::Store)?;
        if renewed != Commit::Recorded {
            return Err(RunError::Skipped(Skip::InProgress { left: Duration::ZERO }));
        }
    }
    // The entity's lease ran on while the key was renewed.
    if !claim.is_fresh() || !entered.is_fresh() {
        let what = "the wait for the entity, or for the key's renewal, took more than half of a lease";
        return Err(RunError::Store(StoreError::unavailable(what)));
    }
    Ok(entered)
}

/// What is in the way of a claim.
enum Busy {
    /// A live holder, for this much longer at most.
    Held(Duration),
    /// This process knows that the key is done, and is still storing that.
    Pending,
}

impl From<Busy> for RunError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Held(left) => Self::Skipped(Skip::InProgress { left }),
            Busy::Pending => {
                let what = "this process knows that the key is done, and is still storing that";
                Self::Store(StoreError::unavailable(what))
            }
        }
    }
}

/// Claims the key, and waits for a live holder as long as the settings allow and the caller is there.
pub(super) async fn admit<T>(plan: &Plan, reply: &mut impl Reply<T>) -> Result<Claim, RunError> {
    let until = tokio::time::Instant::now() + plan.settings.wait;
    let mut waited = false;
    loop {
        let busy = match ask(plan).await? {
            Ok(_) if task::draining() => return Err(RunError::Shutdown(Shutdown)),
            // Dropped, the claim is given back.
            Ok(_) if waited && reply.closed().now_or_never().is_some() => Busy::Held(Duration::ZERO),
            Ok(claim) => return Ok(claim),
            Err(busy) => busy,
        };
        // Counted from here, after the read was answered: not before the lapse by the store's clock.
        let now = tokio::time::Instant::now();
        if now >= until {
            return Err(busy.into());
        }
        let lapse = if let Busy::Held(left) = busy { left.max(Duration::from_millis(1)) } else { POLL };
        tokio::select! {
            biased;
            () = reply.closed() => return Err(busy.into()),
            () = Box::pin(tokio::time::sleep(random::jitter(POLL).min(lapse).min(until - now))) => {}
        }
        if task::draining() {
            return Err(RunError::Shutdown(Shutdown));
        }
        waited = true;
    }
}

/// One try.
async fn ask(plan: &Plan) -> Result<Result<Claim, Busy>, RunError> {
    if is_pending(&plan.place) {
        return Ok(Err(Busy::Pending));
    }
    let Settings { verb, lease, ttl, .. } = plan.settings;
    let mut ask = Ask::new(verb, lease, ttl, random::id());
    ask.digest = plan.digest;
    ask.note = plan.note.clone();
    match claim(plan.place.clone(), ask).await.map_err(RunError::Store)? {
        Claimed::Won(claim) => Ok(Ok(claim)),
        Claimed::Held { left } => Ok(Err(Busy::Held(left))),
        Claimed::Done { receipt, conflict } => Err(RunError::Skipped(Skip::Duplicate { receipt, conflict })),
        Claimed::Misuse { stands } => {
            Err(RunError::Misuse(Misuse::WrongVerb { key: plan.place.key.clone(), stands, asked: verb }))
        }
    }
}
