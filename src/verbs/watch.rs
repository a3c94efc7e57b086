//! Sees work through to its end: caught, timed, cancelled at shutdown, and with its lease renewed meanwhile.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::sync::Notify;

use super::guard::{Reply, message};
use super::settings::Settings;
use crate::lease::{Claim, Commit, Lease, RunError, claim_limit};
use crate::store::record::Verb;
use crate::store::{BoxError, BoxFuture};
use crate::task;

/// How long work that ended waits for a renewal in flight. Crossing it costs the completion a trip,
/// no more, so a store that hangs need not hold up the answer.
const GRACE: Duration = Duration::from_secs(1);

/// How the work ended.
pub(super) enum End<T> {
    Done(T),
    Failed(BoxError),
    NotStarted(RunError),
    Panicked(String),
    TimedOut(Duration),
    Cancelled,
}

/// What a panic carries.
pub(super) type Panic = Box<dyn Any + Send>;

/// Runs the work to its end, lets the reply know when its caller has gone, and stops the work at its
/// time limit or at shutdown. Stopping stops the work only, never what settles it. Without a claim nothing is renewed.
pub(super) async fn watch<T, R: Reply<T>>(
    mut work: BoxFuture<'_, Result<Result<T, BoxError>, Panic>>,
    held: Option<(&mut Claim, &Lease)>,
    settings: &Settings,
    reply: &mut R,
) -> End<T> {
    let stop = Notify::new();
    // A mark excludes others for its ttl and is never taken over, so there is nothing to renew.
    let renewed = held.filter(|_| settings.renew && settings.verb != Verb::AtMostOnce);
    // Boxed, since most work is not renewed and should not carry its state.
    let mut keeper = renewed.map(|(claim, lease)| Box::pin(keep(claim, lease, settings, &stop)));
    let mut late = pin!(late(settings.work_timeout));
    let mut cancelled = pin!(task::cancelled());
    let mut closed = pin!(reply.closed());
    let mut gone = false;
    let end = loop {
        tokio::select! {
            biased;
            ended = &mut work => break match ended {
                Ok(Ok(value)) => End::Done(value),
                Ok(Err(error)) => End::Failed(error),
                Err(panic) => {
                    let said = message(&*panic);
                    unhurt(|| drop(panic));
                    End::Panicked(said)
                }
            },
            limit = &mut late => break End::TimedOut(limit),
            () = &mut cancelled, if !settings.stops_itself => break End::Cancelled,
            Some(()) = OptionFuture::from(keeper.as_mut()) => keeper = None,
            () = &mut closed, if !gone => gone = true,
        }
    };
    unhurt(|| drop(work));
    stop.notify_one();
    if let Some(keeper) = keeper {
        // An error means that the renewal hangs; it may land later, on a condition that the completion makes false.
        let _ = tokio::time::timeout(GRACE, keeper).await;
    }
    end
}

/// Ends when the work has taken too long, if there is such a time.
async fn late(limit: Option<Duration>) -> Duration {
    let Some(limit) = limit else { return std::future::pending().await };
    tokio::time::sleep(limit).await;
    limit
}

/// Calls what may drop a value of the user's, or call a hook: a panic there changes nothing.
pub(super) fn unhurt(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

/// Renews the lease every third of it, until told to stop, until `max_hold`, or until it is lost.
async fn keep(claim: &mut Claim, lease: &Lease, settings: &Settings, stop: &Notify) {
    let began = claim.since().clone();
    // Counted from when the lease was, and not from the answer: a slow store has less time to renew in.
    let next = |claim: &Claim| claim.left().saturating_sub(settings.lease / 3 * 2);
    let mut nap = next(claim);
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
                nap = next(claim);
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
