//! What a holder writes: renew, complete, release. Each is one swap on the version that the claim
//! carries; a lost answer is resolved by reading who holds the key.

use super::machine::{self, Commit, Op, Step};
use super::planted::{Fault, planted};
use super::{CALL, Claim, FIRST, TRIES, claim_limit, pause};
use crate::store::record::State;
use crate::store::{Standing, StoreError, Swap};
use crate::time::{Stopwatch, within};
use std::pin::pin;

impl Claim {
    /// A new lease, counted from before its write was sent. Fence, history and runs stay.
    ///
    /// # Errors
    /// [`StoreError`] if the store failed or took longer than a third of the lease; the old lease still runs.
    pub(crate) async fn renew(&mut self) -> Result<Commit, StoreError> {
        let limit = claim_limit(self.record.lease);
        let renewed = within(limit, pin!(self.write(&Op::Renew))).await;
        renewed.unwrap_or_else(|| {
            Err(StoreError::unanswered(format!("no renewal within {limit:?}, a third of the lease")))
        })
    }

    /// Carries out one wish of the holder, in one round that is bounded in tries. May be dropped at
    /// any await and called again: a write that landed meanwhile is found by reading.
    ///
    /// # Errors
    /// [`StoreError`]: nobody knows whether it is stored. Call again.
    pub(crate) async fn write(&mut self, op: &Op) -> Result<Commit, StoreError> {
        let mut failed = None;
        for tries in 0..TRIES {
            let next = match self.step(op) {
                Step::Answer(commit) => return Ok(commit),
                Step::Write(next) => next,
            };
            // A mark's window is counted from when it was made, whatever is written since.
            let leased = self.record.state == State::Claimed;
            let since = (leased && matches!(op, Op::Renew)).then(|| Stopwatch::start(&self.place.clock));
            let limit = if tries == 0 { FIRST } else { CALL };
            let standing = match self.place.swap_within(limit, Some(&self.version), &next).await {
                Ok(Swap::Written(version)) => {
                    self.record = next;
                    self.version = version;
                    if let Some(since) = since {
                        self.since = since;
                    }
                    return Ok(Commit::Recorded);
                }
                Ok(Swap::Lost(Standing::Is(stored))) => Ok(Some(*stored)),
                Ok(Swap::Lost(Standing::Absent)) => Ok(None),
                Ok(Swap::Lost(Standing::Unknown)) => self.place.read().await,
                Err(error) if error.is_transient() => {
                    pause(tries).await;
                    failed = Some(error);
                    self.place.read().await
                }
                Err(error) => return Err(error),
            };
            match standing {
                Ok(None) => return Ok(Commit::FencedOut),
                // What stands is the truth: an undo of somebody else may have rewritten our claim, or
                // our own write may have landed. The next step tells, by the holder.
                Ok(Some(stored)) => {
                    if stored.version == self.version {
                        pause(tries).await;
                    }
                    self.version = stored.version;
                    *self.record = stored.record;
                }
                Err(error) if error.is_transient() => {
                    pause(tries).await;
                    failed = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| StoreError::unanswered(format!("not stored in {TRIES} tries"))))
    }

    pub(super) fn step(&self, op: &Op) -> Step {
        if planted(Fault::LeaseGuardOnComplete) && matches!(op, Op::Complete(_)) && self.left().is_zero() {
            return Step::Answer(Commit::FencedOut);
        }
        // A mark that seemed older than it is would lapse early, and its work would run twice.
        machine::settle(op, self.me, &self.record, || self.since.steady(), self.place.stamp())
    }
}
