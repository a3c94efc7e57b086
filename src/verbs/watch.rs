//! Sees work through to its end: caught, timed, cancelled at shutdown, and with its lease renewed meanwhile.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio_util::sync::CancellationToken;

use super::plan::Reply;
use super::settings::Settings;
use crate::chain::chain_about;
use crate::lease::{Claim, Commit, Lease, Misuse, Note, Part, RunError, claim_limit};
use crate::store::record::Verb;
use crate::store::{BoxError, BoxFuture};
use crate::task;
use crate::time::at_once;

/// How long work that ended, or that asks for its claim, waits for a renewal in flight. Crossing it
/// costs the completion a trip, no more, so a store that hangs need not hold up the answer.
const GRACE: Duration = Duration::from_secs(1);

/// How the work ended.
pub(super) enum End<T> {
    Done(T),
    Failed(BoxError),
    /// It failed by its own word for good, and its message is a dead letter by now.
    Rejected(BoxError),
    /// Its own transaction could not complete this key, and was rolled back.
    Misused(Misuse),
    NotStarted(RunError),
    Panicked(String),
    TimedOut(Duration),
    Cancelled,
}

impl<T> End<T> {
    fn of(ended: Result<Result<T, BoxError>, Panic>) -> Self {
        match ended {
            Ok(Ok(value)) => Self::Done(value),
            Ok(Err(error)) => Self::Failed(error),
            Err(panic) => {
                let said = message(&*panic);
                unhurt(|| drop(panic));
                Self::Panicked(said)
            }
        }
    }
}

/// What the work holds: its key, the entity that it needs besides, and the lease that it sees.
pub(super) struct Held<'a> {
    pub(super) claim: &'a mut Claim,
    pub(super) entity: Option<&'a mut Claim>,
    pub(super) lease: &'a Lease,
    pub(super) note: &'a Note,
}

/// What a panic carries.
pub(super) type Panic = Box<dyn Any + Send>;

/// Runs the work to its end, lets the reply know when its caller has gone, and stops the work at its
/// time limit or at shutdown. Stopping stops the work only, never what settles it. Without a claim nothing is renewed.
pub(super) async fn watch<T, R: Reply<T>>(
    mut work: BoxFuture<'_, Result<Result<T, BoxError>, Panic>>,
    held: Option<Held<'_>>,
    settings: &Settings,
    reply: &mut R,
) -> End<T> {
    // Work that is through at its first poll needs no watch.
    if let Poll::Ready(ended) = at_once(work.as_mut()).await {
        unhurt(|| drop(work));
        return End::of(ended);
    }
    Box::pin(watch_on(work, held, settings, reply)).await
}

/// The same, for work that takes its time. Boxed by its caller, which then carries little for work that does not.
async fn watch_on<T, R: Reply<T>>(
    mut work: BoxFuture<'_, Result<Result<T, BoxError>, Panic>>,
    mut held: Option<Held<'_>>,
    settings: &Settings,
    reply: &mut R,
) -> End<T> {
    let stop = CancellationToken::new();
    let lease = held.as_ref().map(|held| held.lease);
    // Boxed, since most work is neither renewed nor commits by itself, and should not carry its state.
    let attend = |held| Box::pin(attend(held, settings, &stop));
    let mut keeper = if settings.renew { held.take().map(attend) } else { None };
    let mut late = pin!(late(settings.work_timeout));
    let mut cancelled = pin!(task::cancelled());
    let mut closed = pin!(reply.closed());
    let mut gone = false;
    let end = loop {
        tokio::select! {
            biased;
            ended = &mut work => break End::of(ended),
            limit = &mut late => break End::TimedOut(limit),
            () = &mut cancelled => break End::Cancelled,
            Some(()) = OptionFuture::from(keeper.as_mut()) => keeper = None,
            () = asked(lease), if held.is_some() => keeper = held.take().map(attend),
            () = &mut closed, if !gone => gone = true,
        }
    };
    unhurt(|| drop(work));
    stop.cancel();
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

/// Ends when the work asks for its claim; never without a lease.
async fn asked(lease: Option<&Lease>) {
    match lease {
        Some(lease) => lease.asked().await,
        None => std::future::pending().await,
    }
}

/// Renews the key's lease, and the entity's, and gives the key's claim to work that asks for it.
async fn attend(held: Held<'_>, settings: &Settings, stop: &CancellationToken) {
    let Held { claim, entity, lease, note } = held;
    let key = async {
        // A mark excludes others for its ttl and is never taken over, so there is nothing to renew.
        if settings.renew && settings.verb != Verb::AtMostOnce {
            keep(claim, Part::Key, lease, settings, stop).await;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = lease.asked() => lease.give(claim, note),
        }
    };
    let entity = async {
        if let Some(entity) = entity.filter(|_| settings.renew) {
            keep(entity, Part::Entity, lease, settings, stop).await;
        }
    };
    tokio::join!(key, entity);
}

/// Renews the lease every third of it, until told to stop, until the work asks for the claim, until
/// `max_hold`, or until it is lost.
async fn keep(claim: &mut Claim, part: Part, lease: &Lease, settings: &Settings, stop: &CancellationToken) {
    let began = claim.since().clone();
    // Counted from when the lease was, and not from the answer: a slow store has less time to renew in.
    let next = |claim: &Claim| claim.left().saturating_sub(settings.lease / 3 * 2);
    let mut nap = next(claim);
    // Only the key's claim is ever asked for.
    let asked = || async move {
        match part {
            Part::Key => lease.asked().await,
            Part::Entity => std::future::pending().await,
        }
    };
    let hangs = || async move {
        asked().await;
        tokio::time::sleep(GRACE).await;
    };
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = asked() => return,
            () = tokio::time::sleep(nap) => {}
        }
        if began.elapsed() >= settings.max_hold {
            return;
        }
        let renewed = tokio::select! {
            biased;
            renewed = claim.renew() => renewed,
            // It may land later; the completing statement then finds another version of our own claim.
            () = hangs() => return,
        };
        match renewed {
            Ok(Commit::Recorded) => {
                lease.renewed(part, claim.since());
                nap = next(claim);
            }
            Ok(Commit::AlreadyDone | Commit::FencedOut) => return lease.lose(),
            // A fault may pass while the lease still runs; completing is tried in any case.
            Err(_) if lease.left().is_zero() => return,
            Err(error) => {
                tracing::warn!(
                    key = lease.key().to_string(),
                    error = chain_about(lease.key(), &error),
                    "a lease was not renewed"
                );
                nap = claim_limit(settings.lease) / 8;
            }
        }
    }
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
