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

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::key::{Consumer, Key};
    use crate::lease::{Ask, Claimed, Note, Place, claim};
    use crate::random;
    use crate::store::chaos::{Chaos, Fault, On};
    use crate::store::record::{Record, Verb};
    use crate::store::{Memory, Store as _};
    use crate::time::system_clock;

    /// A claim at work, on a store that makes faults.
    async fn holder() -> (Claim, Arc<Chaos>) {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let key = Key::new(Consumer::default(), "k").unwrap();
        let place = Arc::new(Place { store: chaos.clone(), key, clock: system_clock() });
        let lease = Duration::from_secs(900);
        let Ok(Claimed::Won(mut claim)) =
            claim(place, Ask::new(Verb::Lock, lease, lease, random::id())).await
        else {
            panic!("not won")
        };
        claim.begin();
        chaos.take();
        (claim, chaos)
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_claim_was_rewritten_writes_at_once_on_what_stands() {
        let (mut holder, chaos) = holder().await;
        // As the undo of somebody's claim that came too late.
        let rewritten = Record { token: random::id(), ..(*holder.record).clone() };
        let answer = chaos.swap(&holder.place.key, Some(&holder.version), &rewritten).await;
        assert!(matches!(answer, Ok(Swap::Written(_))), "{answer:?}");
        let began = Instant::now();
        assert_eq!(holder.write(&Op::Complete(Note::default())).await.unwrap(), Commit::Recorded);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_that_passes_is_tried_again_and_another_is_not() {
        for (swap, read, stored, swaps) in [
            (Fault::Fail, None, true, 2),
            (Fault::LoseAnswer, Some(Fault::Fail), true, 2),
            (Fault::LoseBefore, Some(Fault::Refuse), false, 1),
            (Fault::Refuse, None, false, 1),
        ] {
            let (mut holder, chaos) = holder().await;
            chaos.next(On::Swap, swap);
            if let Some(fault) = read {
                chaos.next(On::Read, fault);
            }
            let answer = holder.write(&Op::Complete(Note::default())).await;
            assert_eq!(matches!(answer, Ok(Commit::Recorded)), stored, "{swap:?} {read:?}: {answer:?}");
            assert_eq!(chaos.trips().swaps, swaps, "{swap:?} {read:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_always_fails_is_asked_six_times_in_one_round() {
        let (mut holder, chaos) = holder().await;
        chaos.always(On::Swap, Fault::Fail);
        assert!(holder.write(&Op::Complete(Note::default())).await.unwrap_err().is_transient());
        assert_eq!(chaos.trips().swaps, u64::from(TRIES));
    }
}
