//! The calls of whoever follows a layer's messages: bounded in time, and a panic in them is a fault like any other.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::answer::Refusal;
use super::follow::{End, Follow, Wanted};
use crate::key::Key;
use crate::lease::{Inspected, Place, RunError, Skip, Status, inspect};
use crate::pubsub::Delivery;
use crate::store::record::{Progress, Receipt};
use crate::store::{BoxError, BoxFuture};
use crate::time::within;
use crate::{random, task};

/// The most that one call may take.
const CALL: Duration = Duration::from_secs(5);
/// The longest pause before an end is told again that no redelivery will tell.
const SLOWEST: Duration = Duration::from_secs(30);

/// The id of what a message is about: it is followed where it has one.
pub(super) fn id<'a>(follow: &dyn Follow, delivery: &'a Delivery) -> Option<&'a str> {
    delivery.attribute(follow.attribute()).filter(|id| !id.trim().is_empty() && follow.is_id(id))
}

/// Asks whether the work of that key is still wanted. What was begun before nobody wanted it any more is
/// seen to its end: a delivery that crashed after its work was recorded has still to be told of.
pub(super) async fn wanted(follow: &dyn Follow, place: &Place) -> Result<(), Refusal> {
    let (why, late) = match bounded(|| follow.wanted(place.key.text())).await.map_err(Refusal::Unasked)? {
        Wanted::Yes => return Ok(()),
        Wanted::No { why } => (why, false),
        Wanted::Late { why } => (why, true),
    };
    let stands = bounded(|| Box::pin(async { Ok(inspect(&*place.store, &place.key).await?) })).await;
    match stands.map_err(Refusal::Unasked)? {
        Some(Inspected { status: Status::Done { .. } | Status::Started { .. }, .. }) => return Ok(()),
        Some(Inspected { status: Status::Held { left }, .. }) => {
            return Err(RunError::Skipped(Skip::InProgress { left }).into());
        }
        // It began in time.
        Some(Inspected { status: Status::Lapsed, .. }) if late => return Ok(()),
        Some(Inspected { status: Status::Released, record, .. }) if late && record.runs > 0 => return Ok(()),
        _ => {}
    }
    bounded(|| follow.ended(place.key.text(), End::Skipped)).await.map_err(Refusal::Unasked)?;
    Err(Refusal::Unwanted { why })
}

/// How the work of a message ended for good.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) how: End,
    /// Whether that is recorded, so that a redelivery is no run but tells it again.
    pub(super) recorded: bool,
}

impl Ends {
    pub(super) const fn recorded(how: End) -> Self {
        Self { how, recorded: true }
    }

    /// By what an earlier delivery left: it may have crashed before it told anybody.
    pub(super) fn before(receipt: Option<&Receipt>) -> Self {
        Self::recorded(match receipt.map(|receipt| receipt.progress) {
            Some(Progress::Finished) | None => End::Completed,
            Some(Progress::Rejected) => End::DeadLettered,
            Some(Progress::Started) => End::Lost,
        })
    }

    /// Tells it until it is told or the process ends: where no redelivery will.
    pub(super) async fn tell_on(self, follow: &Arc<dyn Follow>, key: &Key) {
        let mut nap = Duration::from_secs(1);
        while !task::draining() {
            tokio::time::sleep(random::jitter(nap)).await;
            if self.tell(follow.clone(), key).await.is_ok() {
                return;
            }
            nap = (nap * 2).min(SLOWEST);
        }
    }

    /// Tells whoever follows that key.
    pub(super) async fn tell(self, follow: Arc<dyn Follow>, key: &Key) -> Result<(), Untold> {
        bounded(|| follow.ended(key.text(), self.how)).await.map_err(|source| Untold { source })
    }
}

/// An end that whoever follows was not told.
#[derive(Debug, thiserror::Error)]
#[error("the work has ended, but whoever follows it was not told")]
pub(super) struct Untold {
    source: BoxError,
}

async fn bounded<'a, T>(call: impl FnOnce() -> BoxFuture<'a, Result<T, BoxError>>) -> Result<T, BoxError> {
    let call = AssertUnwindSafe(async { call().await }).catch_unwind();
    match within(CALL, pin!(call)).await {
        Some(Ok(answer)) => answer,
        Some(Err(_)) => Err("it panicked".into()),
        None => Err(format!("no answer within {CALL:?}").into()),
    }
}
