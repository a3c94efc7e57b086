//! The guard behind every verb: claim, wait, work and settle, in one future that outlives its caller.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::pending::is_pending;
use super::settings::Settings;
use super::settle::{self, settle};
use super::told::Told;
use super::watch::{Panic, watch};
use crate::disabled::disabled;
use crate::key::Key;
use crate::lease::{
    Ask, Claim, Claimed, Lease, Misuse, Note, Place, RunError, Shutdown, Skip, claim, undo_room,
};
use crate::random;
use crate::store::{BoxError, Store, StoreError};
use crate::task::{self, attached};

/// How much work may go on without its caller. Over it nothing new is admitted.
const DETACHED_LIMIT: usize = 1024;
/// How often a waiter looks whether the holder is through.
const POLL: Duration = Duration::from_millis(250);

/// What is to be guarded.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) key: Key,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) digest: Option<[u8; 32]>,
    pub(crate) note: Note,
}

/// Work that succeeded.
#[derive(Debug)]
pub(crate) struct Ran<T> {
    pub(crate) value: T,
    /// Why it is not recorded, if so. The work is done all the same: ack, and tell an operator.
    pub(crate) uncertain: Option<Uncertain>,
}

/// Why nobody recorded work that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncertain {
    /// The store did not take it in time. It is tried on, in the background.
    Unrecorded,
    /// The lease had lapsed and somebody else took the key over, who may repeat the work.
    FencedOut,
}

/// Where the result goes. Called once, whether anybody still waits or not.
pub(crate) trait Reply<T>: Send + 'static {
    /// Ends when nobody waits for the result any more.
    fn closed(&mut self) -> impl Future<Output = ()> + Send;
    /// The work begins under this lease.
    fn began(&mut self, _: &Lease) {}
    /// The work found that it cannot begin after all: the claim is given back, and a mark with it.
    fn undone(&mut self) {}
    fn send(self, result: Result<Ran<T>, RunError>);
}

/// The error of work whose inner guard was stopped by the shutdown after the work began.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Work that found before it began that it cannot be done now: the claim is undone, with the history it found.
#[derive(Debug, thiserror::Error)]
#[error("not started")]
pub(crate) struct NotStarted(#[source] pub(crate) RunError);

tokio::task_local! {
    /// The keys that the running work holds, each with its store.
    static HOLDS: Vec<(Arc<dyn Store>, Key)>;
}

/// Runs the work under the key. Dropping this future stops nothing: the rest runs as a tracked task.
pub(crate) async fn run<T, F, W>(plan: Plan, work: F) -> Result<Ran<T>, RunError>
where
    T: Send + 'static,
    F: FnOnce(Lease) -> W + Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
{
    let (reply, result) = oneshot::channel();
    let reply = Told::new(&plan, reply);
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
        return reply.send(Err(error));
    }
    match disabled() {
        Ok(false) => {}
        // Rare, so its state is not carried by all others.
        Ok(true) => {
            let lease = Lease::unguarded(&plan.key, plan.settings.lease, &plan.settings.clock);
            return Box::pin(unguarded(async move { work(lease).await }, plan.settings, reply)).await;
        }
        Err(switch) => return reply.send(Err(RunError::Misuse(Misuse::Setting(switch.to_string())))),
    }
    let mut claim = match admit(&plan, &mut reply).await {
        Ok(claim) => claim,
        Err(error) => return reply.send(Err(error)),
    };
    claim.begin();
    let lease = Lease::of(&claim);
    reply.began(&lease);
    let mut holds = HOLDS.try_with(Clone::clone).unwrap_or_default();
    holds.push((plan.store.clone(), plan.key.clone()));
    // The call itself may panic too, so it is made inside of the future.
    let handle = lease.clone();
    let work = Box::pin(HOLDS.scope(holds, caught(async move { work(handle).await })));
    let end = watch(work, Some((&mut claim, &lease)), &plan.settings, &mut reply).await;
    settle(claim, end, plan, reply).await;
}

/// What can be said before the store is asked.
fn admissible(plan: &Plan) -> Result<(), RunError> {
    let held = |(store, key): &(Arc<dyn Store>, Key)| Arc::ptr_eq(store, &plan.store) && *key == plan.key;
    if HOLDS.try_with(|holds| holds.iter().any(held)).unwrap_or_default() {
        return Err(RunError::Misuse(Misuse::Reentrant { key: plan.key.clone() }));
    }
    if task::draining() {
        return Err(RunError::Shutdown(Shutdown));
    }
    if task::detached() >= DETACHED_LIMIT || !undo_room() {
        let what = "nothing was asked of it: too much work of this process goes on without its caller";
        return Err(RunError::Store(StoreError::unavailable(what)));
    }
    Ok(())
}

/// The work alone: nothing is claimed or recorded. With the time limit and the shutdown of guarded work.
pub(crate) async fn unguarded<T, W, R>(work: W, settings: Settings, mut reply: R)
where
    T: Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
    R: Reply<T>,
{
    if task::draining() {
        return reply.send(Err(RunError::Shutdown(Shutdown)));
    }
    let end = watch(Box::pin(caught(work)), None, &settings, &mut reply).await;
    let value = settle::outcome(end).map_err(|failed| failed.error);
    reply.send(value.map(|value| Ran { value, uncertain: None }));
}

fn caught<W: Future>(work: W) -> impl Future<Output = Result<W::Output, Panic>> {
    AssertUnwindSafe(work).catch_unwind()
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
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
async fn admit<T>(plan: &Plan, reply: &mut impl Reply<T>) -> Result<Claim, RunError> {
    let place =
        Place { store: plan.store.clone(), key: plan.key.clone(), clock: plan.settings.clock.clone() };
    let until = tokio::time::Instant::now() + plan.settings.wait;
    let mut waited = false;
    loop {
        let busy = match ask(plan, &place).await? {
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
            () = tokio::time::sleep(random::jitter(POLL).min(lapse).min(until - now)) => {}
        }
        if task::draining() {
            return Err(RunError::Shutdown(Shutdown));
        }
        waited = true;
    }
}

/// One try.
async fn ask(plan: &Plan, place: &Place) -> Result<Result<Claim, Busy>, RunError> {
    if is_pending(place) {
        return Ok(Err(Busy::Pending));
    }
    let Settings { verb, lease, ttl, .. } = plan.settings;
    let mut ask = Ask::new(verb, lease, ttl, random::id());
    ask.digest = plan.digest;
    ask.note = plan.note.clone();
    match claim(place.clone(), ask).await.map_err(RunError::Store)? {
        Claimed::Won(claim) => Ok(Ok(claim)),
        Claimed::Held { left } => Ok(Err(Busy::Held(left))),
        Claimed::Done { receipt, conflict } => Err(RunError::Skipped(Skip::Duplicate { receipt, conflict })),
        Claimed::Misuse { stands } => {
            Err(RunError::Misuse(Misuse::WrongVerb { key: plan.key.clone(), stands, asked: verb }))
        }
    }
}
