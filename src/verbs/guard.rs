//! The guard behind every verb: claim, wait, work and settle, in one future that outlives its caller.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::admit::{admissible, admit, enter, holding};
use super::plan::{Plan, Ran, Reply, send};
use super::reject;
use super::settings::Settings;
use super::settle::{self, settle};
use super::told::{OnUncertain, Told};
use super::transaction;
use super::watch::{End, Held, Panic, watch};
use crate::disabled::disabled;
use crate::lease::{Claim, Lease, Misuse, RunError, Shutdown, Transacted};
use crate::meter::Run;
use crate::store::BoxError;
use crate::task::{self, attached};

/// Runs the work under the key. Dropping this future stops nothing: the rest runs as a tracked task.
pub(super) async fn run<T, F, W>(plan: Plan, hook: Option<OnUncertain>, work: F) -> Result<Ran<T>, RunError>
where
    T: Send + 'static,
    F: FnOnce(Lease) -> W + Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
{
    let (reply, result) = oneshot::channel();
    let reply = Told::new(&plan, hook, reply);
    // The work answers before it ends, unless the runtime itself goes away.
    attached(start(plan, work, reply), result).await.unwrap_or(Err(RunError::Shutdown(Shutdown)))
}

/// The same, with a reply of the caller's own: to be [`attached`].
pub(crate) async fn start<T, F, W, R>(plan: Plan, work: F, mut reply: R)
where
    T: Send + 'static,
    F: FnOnce(Lease) -> W + Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
    R: Reply<T>,
{
    if let Err(error) = admissible(&plan) {
        return send(reply, Err(error)).await;
    }
    let mut run = Run::begin(plan.place.key.consumer(), &plan.place.clock);
    match disabled() {
        Ok(false) => {}
        // Rare, so its state is not carried by all others.
        Ok(true) => {
            let lease = Lease::unguarded(&plan.place.key, plan.settings.lease, &plan.place.clock);
            return Box::pin(unguarded(async move { work(lease).await }, plan.settings, run, reply)).await;
        }
        Err(switch) => {
            let error = RunError::Misuse(Misuse::Setting(switch.to_string()));
            return send(reply, Err(error)).await;
        }
    }
    let mut claim = match admit(&plan, &mut reply).await {
        Ok(claim) => claim,
        Err(error) => {
            run.claimed();
            return send(reply, Err(error)).await;
        }
    };
    let mut entity = None;
    if let Some(inner) = &plan.entity {
        // Boxed, since most work needs no second key.
        match Box::pin(enter(inner, &mut claim, plan.settings.renew, &mut reply)).await {
            Ok(entered) => entity = Some(entered),
            // The claim was for nothing, and is given back before the answer.
            Err(error) => {
                run.claimed();
                return settle(claim, None, End::NotStarted(error), plan, run, reply).await;
            }
        }
    }
    run.claimed();
    claim.begin();
    entity.iter_mut().for_each(Claim::begin);
    let lease = Lease::of(&claim, entity.as_ref());
    reply.began(&lease);
    // The call itself may panic too, so it is made inside of the future.
    let handle = lease.clone();
    let work = Box::pin(holding(&plan, caught(async move { work(handle).await })));
    let held = Held { claim: &mut claim, entity: entity.as_mut(), lease: &lease, note: &plan.note };
    let end = watch(work, Some(held), &plan.settings, &mut reply).await;
    run.worked(|| Some(lease.left()));
    match (lease.close(), reject::asked(&end, &reply)) {
        // What is rare is boxed, so that its state is not carried by all others.
        (transacted, Some(sending)) if transacted.as_deref().is_none_or(Transacted::is_undone_by_renewal) => {
            Box::pin(async move {
                let end = reject::reject(&mut claim, &lease, end, sending).await;
                settle(claim, entity, end, plan, run, reply).await;
            })
            .await;
        }
        (None, _) => settle(claim, entity, end, plan, run, reply).await,
        (Some(transacted), _) => {
            Box::pin(transaction::settle(transacted, claim, entity, end, plan, run, reply)).await;
        }
    }
}

/// The work alone: nothing is claimed or recorded. With the time limit and the shutdown of guarded work.
pub(crate) async fn unguarded<T, W, R>(work: W, settings: Settings, mut run: Run, mut reply: R)
where
    T: Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
    R: Reply<T>,
{
    if task::draining() {
        return send(reply, Err(RunError::Shutdown(Shutdown))).await;
    }
    let mut end = watch(Box::pin(caught(work)), None, &settings, &mut reply).await;
    run.worked(|| None);
    if let Some(sending) = reject::asked(&end, &reply) {
        end = Box::pin(reject::unguarded(end, sending)).await;
    }
    let value = settle::outcome(end).map_err(|failed| failed.error);
    send(reply, value.map(|value| Ran { value, uncertain: None })).await;
}

fn caught<W: Future>(work: W) -> impl Future<Output = Result<W::Output, Panic>> {
    AssertUnwindSafe(work).catch_unwind()
}
