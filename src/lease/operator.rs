//! What an operator asks of a key, on any store: how it stands, and to set it free.

use std::sync::Arc;
use std::time::Duration;

use super::machine::{self, Force, Stamp};
use super::planted::{Fault, planted};
use super::status::{Status, age};
use super::{TRIES, bounded, pause};
use crate::key::Key;
use crate::random;
use crate::store::record::Record;
use crate::store::{Standing, Store, StoreError, Stored, Swap};
use crate::time::{Clock, micros, system_clock};

/// What stands under a key.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// The record.
    pub record: Record,
    /// How long ago the claim was won or renewed, or the work recorded, by the store's clock.
    pub age: Duration,
    /// What the two say together.
    pub status: Status,
}

impl From<Stored> for Inspected {
    /// The same of a record that was listed.
    fn from(stored: Stored) -> Self {
        Self { age: age(&stored), status: Status::of(&stored), record: stored.record }
    }
}

/// What came of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a key that is held was not reset"]
pub enum Reset {
    /// The key was reset: it is free, and whoever held it can write nothing more.
    Freed,
    /// There was nothing to reset: nothing stands, or it is released.
    Free,
    /// A live claim has the key, and was spared. Wait, or force it.
    Held {
        /// What is left of its lease.
        left: Duration,
    },
    /// The record that was to be reset is gone, and another claim took the key meanwhile; it was left
    /// alone. Inspect the key, and decide anew.
    Overtaken,
}

/// What stands under the key, if anything does.
///
/// ```
/// use std::sync::Arc;
/// use pushonce::maintain::{Status, inspect};
/// use pushonce::{IntoKey, Store, lock, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// lock(("orders", "po-1"), &store).run(async { Ok(()) }).await?;
/// let key = ("orders", "po-1").into_key()?;
/// let inspected = inspect(&store, &key).await?.ok_or("nothing stands")?;
/// assert!(matches!(inspected.status, Status::Done { .. }));
/// assert_eq!(inspected.status.to_string(), "done for another 7 d");
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`StoreError`], after some tries. Call again.
pub async fn inspect<S: Store + ?Sized>(store: &S, key: &Key) -> Result<Option<Inspected>, StoreError> {
    Ok(look(store, key).await?.map(Inspected::from))
}

/// Sets the key free, so that the next claim wins it and its work runs again.
///
/// The record stays, released and without a holder: the fence keeps rising, and whoever held the key
/// is fenced out. The next run is told that an earlier one may have had its effect
/// ([`History::Unknown`](crate::History::Unknown)), also when that was recorded. A
/// [`Cached`](crate::store::Cached) store of another process may skip duplicates for up to 30 s more.
///
/// Only the record that is found is reset, and never that of a claim which follows on it, however often
/// a write has to be tried.
///
/// ```
/// use std::sync::Arc;
/// use pushonce::maintain::{Force, Reset, reset};
/// use pushonce::{IntoKey, Store, lock, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// lock(("orders", "po-1"), &store).run(async { Ok(()) }).await?;
/// let key = ("orders", "po-1").into_key()?;
/// assert_eq!(reset(&store, &key, Force::No).await?, Reset::Freed);
/// lock(&key, &store).run(async { Ok("again") }).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`StoreError`], after some tries. Nobody knows whether the key was reset, or will be: call again.
pub async fn reset<S: Store + ?Sized>(store: &S, key: &Key, force: Force) -> Result<Reset, StoreError> {
    reset_by(&system_clock(), store, key, force).await
}

pub(super) async fn reset_by<S: Store + ?Sized>(
    clock: &Arc<dyn Clock>,
    store: &S,
    key: &Key,
    force: Force,
) -> Result<Reset, StoreError> {
    let mut standing = look(store, key).await?;
    let met = standing.as_ref().and_then(|stored| stored.record.holder);
    // Whether a write of ours may have landed without an answer.
    let mut unanswered = false;
    for tries in 0..TRIES {
        let Some(stored) = standing else { return Ok(Reset::Free) };
        let stamp = Stamp { now: micros(clock.wall()), token: random::id() };
        let next = match machine::reset(&stored, force, stamp) {
            // Only a reset leaves no holder.
            machine::Reset::Free if unanswered && stored.record.holder.is_none() => return Ok(Reset::Freed),
            machine::Reset::Free => return Ok(Reset::Free),
            // The wish, and the force, were for the holder that was met, not for whoever came after it.
            _ if stored.record.holder != met && !planted(Fault::ResetsAnybody) => {
                return Ok(Reset::Overtaken);
            }
            machine::Reset::Held { left } => return Ok(Reset::Held { left }),
            machine::Reset::Write(next) => next,
        };
        let swap = bounded(|| store.swap(key, Some(&stored.version), &next), StoreError::unanswered).await;
        standing = match swap {
            Ok(Swap::Written(_)) => return Ok(Reset::Freed),
            Ok(Swap::Lost(Standing::Is(stored))) => Some(*stored),
            Ok(Swap::Lost(Standing::Absent)) => None,
            Ok(Swap::Lost(Standing::Unknown)) => {
                pause(tries).await;
                look(store, key).await?
            }
            Err(error) if error.is_transient() => {
                unanswered |= error.may_have_written();
                pause(tries).await;
                look(store, key).await?
            }
            Err(error) => return Err(error),
        };
    }
    Err(StoreError::unanswered(format!("not reset in {TRIES} tries")))
}

/// A read, tried again while the store fails.
async fn look<S: Store + ?Sized>(store: &S, key: &Key) -> Result<Option<Stored>, StoreError> {
    let mut tries = 0;
    loop {
        match bounded(|| store.read(key), StoreError::unavailable).await {
            Err(error) if error.is_transient() && tries + 1 < TRIES => pause(tries).await,
            answer => return answer,
        }
        tries += 1;
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use super::*;
    use crate::key::Consumer;
    use crate::lease::{Ask, Claim, Claimed, Commit, Op, Place, claim};
    use crate::store::Memory;
    use crate::store::chaos::{Chaos, Fault, On};
    use crate::store::record::{Ended, Verb};

    /// A key that is held, behind a store that makes faults.
    async fn held() -> (Arc<Chaos>, Key, Claim) {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let key = Key::new(Consumer::default(), "k").unwrap();
        let place = Arc::new(Place { store: chaos.clone(), key: key.clone(), clock: system_clock() });
        let lease = Duration::from_secs(900);
        let Ok(Claimed::Won(mut claim)) =
            claim(place, Ask::new(Verb::Lock, lease, lease, random::id())).await
        else {
            panic!("not won")
        };
        claim.begin();
        chaos.take();
        (chaos, key, claim)
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_is_tried_again_while_the_store_fails_but_not_for_good() {
        for (fault, times, reads, seen) in [
            (Fault::Fail, 1, 2, true),
            (Fault::Fail, TRIES - 1, TRIES, true),
            (Fault::Fail, TRIES, TRIES, false),
            (Fault::Refuse, 1, 1, false),
        ] {
            let (chaos, key, _claim) = held().await;
            for _ in 0..times {
                chaos.next(On::Read, fault);
            }
            let looked = inspect(&*chaos, &key).await;
            assert_eq!(looked.is_ok(), seen, "{fault:?} {times}: {looked:?}");
            assert_eq!(chaos.take().reads, u64::from(reads), "{fault:?} {times}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reset_is_told_as_made_by_whoever_made_it_also_where_its_answer_was_lost() {
        for (fault, freed, swaps) in [
            (Fault::Fail, true, 2),
            (Fault::LoseBefore, true, 2),
            (Fault::LoseAnswer, true, 1),
            (Fault::Refuse, false, 1),
        ] {
            let (chaos, key, _claim) = held().await;
            chaos.next(On::Swap, fault);
            let first = reset(&*chaos, &key, Force::Yes).await;
            assert_eq!((first.ok(), chaos.take().swaps), (freed.then_some(Reset::Freed), swaps), "{fault:?}");
            let second = reset(&*chaos, &key, Force::Yes).await.unwrap();
            assert_eq!(second, if freed { Reset::Free } else { Reset::Freed }, "{fault:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_its_holder_has_given_back_meanwhile_is_not_told_as_freed() {
        let (chaos, key, mut claim) = held().await;
        // Nobody knows whether the first write landed; before the next look the holder is through.
        chaos.next(On::Swap, Fault::LoseBefore);
        let reset = reset(&*chaos, &key, Force::Yes);
        let through = async {
            tokio::task::yield_now().await;
            claim.write(&Op::Release(Ended::Failed)).await
        };
        let (reset, released) = tokio::join!(reset, through);
        assert_eq!((reset.unwrap(), released.unwrap()), (Reset::Free, Commit::Recorded));
    }
}
