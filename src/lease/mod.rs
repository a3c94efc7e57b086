//! The lease: claim, renew, complete and release over any store, with one state machine for all of them.
//!
//! What is written is decided in [`machine`], purely; `claim`, `settle` and `undo` drive it over a
//! store and resolve what a lost answer leaves open: by the holder, which only one claim has.

mod amend;
mod claim;
mod commit;
#[cfg(feature = "contract")]
pub mod contract;
mod entry;
mod error;
mod handle;
mod handover;
mod ledger;
mod machine;
#[cfg(test)]
mod model;
mod operator;
#[cfg(feature = "contract")]
pub mod planted;
#[cfg(not(feature = "contract"))]
pub(crate) mod planted;
mod rejected;
mod settle;
mod status;
mod undo;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

pub(crate) use self::amend::{Amend, First};
pub(crate) use self::claim::{Claim, Claimed, claim};
pub use self::commit::Completion;
pub(crate) use self::entry::Entry;
pub use self::error::{
    AfterCommit, CommitError, DeadLetter, Misuse, Panicked, RunError, Shutdown, Skip, TimedOut,
};
pub(crate) use self::handle::Part;
pub use self::handle::{History, Lease};
pub(crate) use self::handover::Transacted;
pub use self::ledger::{How, Settled, Uncertain, UncertainPage, Why, uncertain};
pub use self::machine::Force;
pub(crate) use self::machine::{Ask, Commit, Note, Op, Stamp, higher};
pub use self::operator::{Inspected, Reset, inspect, reset};
pub(crate) use self::rejected::Freed;
pub use self::status::Status;
pub(crate) use self::undo::room as undo_room;
use crate::key::Key;
use crate::random;
use crate::store::{BoxFuture, Store, StoreError, Stored, Swap, Version, record::Record};
use crate::time::{Clock, micros, within};

/// The most that one call of a store may take.
const CALL: Duration = Duration::from_secs(5);
/// The most that the first call of a holder's write may take: on a connection that fell silent, a second try
/// on another one comes before the answer has to go out. If the first one lands later, its token tells.
const FIRST: Duration = Duration::from_secs(2);
/// The most that a claim or a renewal may take, whatever its lease.
const CLAIM: Duration = Duration::from_secs(10);
/// How often a condition that still holds, or a store that still fails, is tried again in one go.
const TRIES: u32 = 6;

/// A key on a store, under a clock: what every write needs. Shared by all that works on one message, so
/// that what all messages share is counted once for each.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: Key,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Place {
    fn stamp(&self) -> machine::Stamp {
        let token = if planted::planted(planted::Fault::NoToken) { NOBODY } else { random::id() };
        machine::Stamp { now: micros(self.clock.wall()), token }
    }

    /// Boxed: a first message needs no read, and should not carry its state.
    fn read(&self) -> BoxFuture<'_, Result<Option<Stored>, StoreError>> {
        Box::pin(bounded(|| self.store.read(&self.key), StoreError::unavailable))
    }

    async fn swap(&self, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        self.swap_within(CALL, seen, next).await
    }

    async fn swap_within(
        &self,
        limit: Duration,
        seen: Option<&Version>,
        next: &Record,
    ) -> Result<Swap, StoreError> {
        bounded_by(limit, || self.store.swap(&self.key, seen, next), StoreError::unanswered).await
    }
}

/// The holder that the planted fault gives to everybody.
const NOBODY: crate::store::record::Id = crate::store::record::Id::from_bits(0);

/// Claim and renew end within a third of the lease: a win that took longer would leave too little of it.
pub(crate) fn claim_limit(lease: Duration) -> Duration {
    (lease / 3).min(CLAIM)
}

/// One call. A panic in it is a fault of the store like any other: it must not take work that is done with it.
async fn bounded<'a, T>(
    call: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>>,
    fault: impl FnOnce(&'static str) -> StoreError,
) -> Result<T, StoreError> {
    bounded_by(CALL, call, fault).await
}

async fn bounded_by<'a, T>(
    limit: Duration,
    call: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>>,
    fault: impl FnOnce(&'static str) -> StoreError,
) -> Result<T, StoreError> {
    let call = AssertUnwindSafe(async { call().await }).catch_unwind();
    match within(limit, pin!(call)).await {
        Some(Ok(answer)) => answer,
        Some(Err(_)) => Err(fault("it panicked")),
        None => Err(fault("no answer in time")),
    }
}

/// Waits before try number `tries` (from 0): 10 ms, doubling, at most a second; with jitter.
/// Boxed, since most claims never wait.
fn pause(tries: u32) -> BoxFuture<'static, ()> {
    let most = Duration::from_millis(10).saturating_mul(1 << tries.min(7)).min(Duration::from_secs(1));
    Box::pin(tokio::time::sleep(random::jitter(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_may_take_a_third_of_its_lease_and_ten_seconds_at_most() {
        for (lease, limit) in [(600, 200), (30_000, 10_000), (900_000, 10_000)] {
            assert_eq!(claim_limit(Duration::from_millis(lease)), Duration::from_millis(limit));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_second_and_are_at_least_half_as_long() {
        for (tries, most) in [(0, 10), (1, 20), (3, 80), (6, 640), (7, 1_000), (u32::MAX, 1_000)] {
            let began = tokio::time::Instant::now();
            pause(tries).await;
            // A timer may be a millisecond late.
            let (waited, most) = (began.elapsed(), Duration::from_millis(most));
            assert!((most / 2..=most + Duration::from_millis(1)).contains(&waited), "{tries}: {waited:?}");
        }
    }
}
