//! The guard behind every verb: claim, wait, work and settle, on one tracked task that outlives its caller.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, oneshot};
use tracing::Instrument as _;

use super::pending::is_pending;
use super::settings::Settings;
use super::settle::settle;
use crate::key::Key;
use crate::lease::{
    Ask, Claim, Claimed, Commit, Lease, Misuse, Note, Place, RunError, Shutdown, Skip, claim, claim_limit,
    undo_room,
};
use crate::random;
use crate::store::{BoxError, Store, StoreError};
use crate::task::{self, Detached};

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

/// Where the result goes. Called once, on the tracked task, whether anybody still waits or not.
pub(crate) trait Reply<T>: Send + 'static {
    /// Ends when nobody waits for the result any more.
    fn closed(&mut self) -> impl Future<Output = ()> + Send;
    fn send(self, result: Result<Ran<T>, RunError>);
}

impl<T: Send + 'static> Reply<T> for oneshot::Sender<Result<Ran<T>, RunError>> {
    async fn closed(&mut self) {
        oneshot::Sender::closed(self).await;
    }

    fn send(self, result: Result<Ran<T>, RunError>) {
        // An error means that nobody waits, which changes nothing.
        let _ = oneshot::Sender::send(self, result);
    }
}

/// Work that found before it began that it cannot be done now: the claim is undone, with the history it found.
#[derive(Debug, thiserror::Error)]
#[error("not started")]
pub(crate) struct NotStarted(#[source] pub(crate) RunError);

tokio::task_local! {
    /// The keys that the running work holds.
    static HOLDS: Vec<Key>;
}

/// Runs the work under the key, on a tracked task. Dropping this future stops nothing.
pub(crate) async fn run<T, F, W>(plan: Plan, work: F) -> Result<Ran<T>, RunError>
where
    T: Send + 'static,
    F: FnOnce(Lease) -> W + Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
{
    let (reply, result) = oneshot::channel();
    start(plan, work, reply);
    // The task answers before it ends, unless the runtime itself goes away.
    result.await.unwrap_or(Err(RunError::Shutdown(Shutdown)))
}

/// The same, with a reply of the caller's own.
pub(crate) fn start<T, F, W, R>(plan: Plan, work: F, reply: R)
where
    T: Send + 'static,
    F: FnOnce(Lease) -> W + Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
    R: Reply<T>,
{
    let mut holds = HOLDS.try_with(Clone::clone).unwrap_or_default();
    match admissible(&plan.key, &holds) {
        Ok(()) => {
            holds.push(plan.key.clone());
            task::spawn(drive(plan, holds, work, reply).in_current_span());
        }
        Err(error) => reply.send(Err(error)),
    }
}

/// What can be said before the store is asked.
fn admissible(key: &Key, holds: &[Key]) -> Result<(), RunError> {
    if holds.contains(key) {
        return Err(RunError::Misuse(Misuse::Reentrant { key: key.clone() }));
    }
    if task::draining() {
        return Err(RunError::Shutdown(Shutdown));
    }
    if Detached::count() >= DETACHED_LIMIT || !undo_room() {
        let what = "nothing was asked of it: too much work of this process goes on without its caller";
        return Err(RunError::Store(StoreError::unavailable(what)));
    }
    Ok(())
}

async fn drive<T, F, W, R>(plan: Plan, holds: Vec<Key>, work: F, mut reply: R)
where
    T: Send + 'static,
    F: FnOnce(Lease) -> W + Send + 'static,
    W: Future<Output = Result<T, BoxError>> + Send + 'static,
    R: Reply<T>,
{
    let mut claim = match admit(&plan, &mut reply).await {
        Ok(claim) => claim,
        Err(error) => return reply.send(Err(error)),
    };
    claim.begin();
    let lease = Lease::of(&claim);
    // The call itself may panic too, so it is made inside of the future.
    let handle = lease.clone();
    let work = HOLDS.scope(holds, AssertUnwindSafe(async move { work(handle).await }).catch_unwind());
    let (end, detached) = watch(work, &mut claim, &lease, &plan.settings, &mut reply).await;
    settle(claim, end, plan, reply).await;
    drop(detached);
}

/// Claims the key, and waits for a live holder as long as the settings allow and the caller is there.
async fn admit<T>(plan: &Plan, reply: &mut impl Reply<T>) -> Result<Claim, RunError> {
    let place =
        Place { store: plan.store.clone(), key: plan.key.clone(), clock: plan.settings.clock.clone() };
    let Settings { verb, lease, ttl, wait, .. } = plan.settings;
    let until = tokio::time::Instant::now() + wait;
    loop {
        if is_pending(&place) {
            let what = "this process knows that the key is done, and is still storing that";
            return Err(RunError::Store(StoreError::unavailable(what)));
        }
        let mut ask = Ask::new(verb, lease, ttl, random::id());
        ask.digest = plan.digest;
        ask.note = plan.note.clone();
        let left = match claim(place.clone(), ask).await.map_err(RunError::Store)? {
            Claimed::Won(claim) => return Ok(claim),
            Claimed::Held { left } => left,
            Claimed::Done { receipt, conflict } => {
                return Err(RunError::Skipped(Skip::Duplicate { receipt, conflict }));
            }
            Claimed::Misuse { stands } => {
                return Err(RunError::Misuse(Misuse::WrongVerb {
                    key: plan.key.clone(),
                    stands,
                    asked: verb,
                }));
            }
        };
        // Counted from here, after the read was answered: not before the lapse by the store's clock.
        let now = tokio::time::Instant::now();
        if now >= until {
            return Err(RunError::Skipped(Skip::InProgress { left }));
        }
        let nap = random::jitter(POLL).min(left.max(Duration::from_millis(1))).min(until - now);
        tokio::select! {
            biased;
            () = reply.closed() => return Err(RunError::Skipped(Skip::InProgress { left })),
            () = tokio::time::sleep(nap) => {}
        }
        if task::draining() {
            return Err(RunError::Shutdown(Shutdown));
        }
    }
}

/// How the work ended.
pub(super) enum End<T> {
    Done(T),
    Failed(BoxError),
    NotStarted(RunError),
    Panicked(String),
    TimedOut(Duration),
    Cancelled,
}

/// Sees the work through: renews its lease, counts it once its caller has gone, and stops it at its
/// time limit or at shutdown. Stopping stops the work only, never what settles it.
async fn watch<T, R: Reply<T>>(
    work: impl Future<Output = Result<Result<T, BoxError>, Panic>> + Send,
    claim: &mut Claim,
    lease: &Lease,
    settings: &Settings,
    reply: &mut R,
) -> (End<T>, Option<Detached>) {
    let stop = Notify::new();
    let mut work = Box::pin(work);
    let mut keeper = pin!(keep(claim, lease, settings, &stop));
    let mut keeping = settings.renew;
    let limit = settings.work_timeout.unwrap_or_default();
    let mut late = pin!(tokio::time::sleep(limit));
    let mut cancelled = pin!(task::cancelled());
    let mut closed = pin!(reply.closed());
    let mut detached = None;
    let end = loop {
        tokio::select! {
            biased;
            ended = &mut work => break match ended {
                Ok(Ok(value)) => End::Done(value),
                Ok(Err(error)) => End::Failed(error),
                Err(panic) => End::Panicked(message(&*panic)),
            },
            () = &mut late, if settings.work_timeout.is_some() => break End::TimedOut(limit),
            () = &mut cancelled => break End::Cancelled,
            () = &mut keeper, if keeping => keeping = false,
            () = &mut closed, if detached.is_none() => detached = Some(Detached::begin()),
        }
    };
    // What the work owns may panic as it is dropped; that changes nothing about how it ended.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    stop.notify_one();
    if keeping {
        // A renewal in flight ends first, so that it cannot cross the completion.
        keeper.await;
    }
    (end, detached)
}

type Panic = Box<dyn std::any::Any + Send>;

/// What a panic said.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Renews the lease every third of it, until told to stop, until `max_hold`, or until it is lost.
async fn keep(claim: &mut Claim, lease: &Lease, settings: &Settings, stop: &Notify) {
    if !settings.renew {
        return;
    }
    let began = claim.since().clone();
    let mut nap = settings.lease / 3;
    loop {
        tokio::select! {
            biased;
            () = stop.notified() => return,
            () = tokio::time::sleep(nap) => {}
        }
        if began.elapsed() >= settings.max_hold {
            return;
        }
        match claim.renew().await {
            Ok(Commit::Recorded) => {
                lease.renewed(claim.since());
                nap = settings.lease / 3;
            }
            Ok(Commit::AlreadyDone | Commit::FencedOut) => return lease.lose(),
            // A fault may pass while the lease still runs; completing is tried in any case.
            Err(_) if lease.left().is_zero() => return,
            Err(error) => {
                tracing::warn!(key = %lease.key(), error = &error as &dyn std::error::Error, "a lease was not renewed");
                nap = claim_limit(settings.lease) / 8;
            }
        }
    }
}
