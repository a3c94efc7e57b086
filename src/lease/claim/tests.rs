//! How often a claim asks, how long it waits between, and what it says when it gives up.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::*;
use crate::key::{Consumer, Key};
use crate::lease::Op;
use crate::random;
use crate::store::chaos::{Chaos, Fault, On};
use crate::store::record::Ended;
use crate::store::{BoxFuture, Memory, Store};
use crate::time::system_clock;

fn place(store: Arc<dyn Store>) -> Arc<Place> {
    let key = Key::new(Consumer::default(), "k").unwrap();
    Arc::new(Place { store, key, clock: system_clock() })
}

fn ask(verb: Verb) -> Ask {
    Ask::new(verb, Duration::from_secs(900), Duration::from_secs(900), random::id())
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_is_tried_again_but_not_for_good_and_not_where_that_is_no_use() {
    for (fault, times, reads, won) in [
        (Fault::Fail, 1, 2, true),
        (Fault::Fail, TRIES, TRIES + 1, true),
        (Fault::Fail, TRIES + 1, TRIES + 1, false),
        (Fault::Refuse, 1, 1, false),
    ] {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        for _ in 0..times {
            chaos.next(On::Read, fault);
        }
        // A mutex reads first.
        let claimed = claim(place(chaos.clone()), ask(Verb::Mutex)).await;
        assert_eq!(matches!(claimed, Ok(Claimed::Won(_))), won, "{fault:?} {times}: {claimed:?}");
        assert_eq!(chaos.take().reads, u64::from(reads), "{fault:?} {times}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_certainly_never_landed_is_not_said_to_be_in_doubt() {
    let chaos = Chaos::new(Arc::new(Memory::new()));
    chaos.always(On::Swap, Fault::Fail);
    let error = claim(place(chaos.clone()), ask(Verb::Lock)).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_written(), "{error:?}");
    // No read after the last write: there is nothing to be found.
    assert_eq!((chaos.trips().swaps, chaos.trips().reads), (u64::from(TRIES), u64::from(TRIES) - 1));
}

/// A store that does not say what stands when a swap is lost.
#[derive(Debug, Default)]
struct Silent {
    memory: Memory,
    /// Somebody else, who is through at once, is always first.
    rival: bool,
    /// How many swaps are lost for no reason.
    lost: AtomicU32,
}

impl Store for Silent {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.memory.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            if self.lost.load(Ordering::Relaxed) > 0 {
                self.lost.fetch_sub(1, Ordering::Relaxed);
                return Ok(Swap::Lost(Standing::Unknown));
            }
            if self.rival {
                let theirs = Record { state: State::Released, holder: None, ..next.clone() };
                assert!(matches!(self.memory.swap(key, seen, &theirs).await?, Swap::Written(_)));
            }
            Ok(match self.memory.swap(key, seen, next).await? {
                Swap::Lost(_) => Swap::Lost(Standing::Unknown),
                written @ Swap::Written(_) => written,
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_told_without_a_wait_also_by_a_store_that_does_not_say_what_stands() {
    let place = place(Arc::new(Silent::default()));
    let holder = at_work(claim(place.clone(), ask(Verb::Lock)).await);
    let began = Instant::now();
    let second = claim(place, ask(Verb::Lock)).await;
    assert!(matches!(second, Ok(Claimed::Held { .. })), "{second:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(holder);
}

#[tokio::test(start_paused = true)]
async fn whoever_always_loses_waits_between_and_gives_up() {
    let began = Instant::now();
    let store = Arc::new(Silent { rival: true, ..Silent::default() });
    let error = claim(place(store), ask(Verb::Lock)).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
}

#[test]
fn a_claim_that_is_dropped_as_its_process_ends_is_left_to_lapse() {
    // The memory store answers at once.
    let claimed = claim(place(Arc::new(Memory::new())), ask(Verb::Lock)).now_or_never();
    assert!(matches!(claimed, Some(Ok(Claimed::Won(_)))), "{claimed:?}");
    // Outside of a runtime nothing can be undone, and nothing panics.
    drop(claimed);
}

fn at_work(claimed: Result<Claimed, StoreError>) -> Claim {
    let Ok(Claimed::Won(mut claim)) = claimed else { panic!("not won: {claimed:?}") };
    claim.begin();
    claim
}

#[tokio::test(start_paused = true)]
async fn a_write_that_may_still_land_is_not_forgotten_for_later_ones_that_did_not() {
    let memory = Arc::new(Memory::new());
    let chaos = Chaos::new(memory.clone());
    chaos.next(On::Swap, Fault::Late(Duration::from_secs(60)));
    chaos.always(On::Swap, Fault::Fail);
    let place = place(chaos.clone());
    assert!(claim(place.clone(), ask(Verb::Lock)).await.is_err());
    chaos.heal();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let stands = memory.read(&place.key).await.unwrap().map(|stored| stored.record.state);
    assert_eq!(stands, Some(State::Released), "its undo has made it impossible");
}

#[tokio::test(start_paused = true)]
async fn whoever_meets_another_claim_has_nothing_to_undo() {
    let memory = Arc::new(Memory::new());
    let chaos = Chaos::new(memory.clone());
    let holder = at_work(claim(place(memory), ask(Verb::Lock)).await);
    chaos.next(On::Swap, Fault::LoseBefore);
    let second = claim(place(chaos.clone()), ask(Verb::Lock)).await;
    assert!(matches!(second, Ok(Claimed::Held { .. })), "{second:?}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(chaos.trips().swaps, 1);
    drop(holder);
}

#[tokio::test(start_paused = true)]
async fn an_undo_ends_as_soon_as_its_claim_can_land_no_more() {
    let memory = Arc::new(Memory::new());
    let chaos = Chaos::new(memory.clone());
    chaos.always(On::Swap, Fault::LoseBefore);
    assert!(claim(place(chaos.clone()), ask(Verb::Lock)).await.is_err());
    // While nobody can undo it, somebody else takes the key.
    let holder = at_work(claim(place(memory.clone()), ask(Verb::Lock)).await);
    chaos.heal();
    chaos.take();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(chaos.take().swaps, 1);
    let stands = memory.read(&holder.place.key).await.unwrap();
    assert_eq!(stands.map(|stored| stored.version), Some(holder.version.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_swap_that_was_lost_for_no_reason_is_made_again_on_the_condition_that_still_holds() {
    let silent = Arc::new(Silent::default());
    let lose = |swaps| silent.lost.store(swaps, Ordering::Relaxed);
    lose(2);
    let mut first = at_work(claim(place(silent.clone()), ask(Verb::Lock)).await);
    lose(2);
    assert_eq!(first.write(&Op::Release(Ended::Failed)).await.unwrap(), Commit::Recorded);
    let released = silent.memory.read(&first.place.key).await.unwrap().unwrap();

    // Also by an undo, or the claim that was given up could still land.
    let chaos = Chaos::new(silent.clone());
    chaos.always(On::Claim, Fault::LoseBefore);
    lose(2);
    assert!(claim(place(chaos), ask(Verb::Lock)).await.is_err());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let stands = silent.memory.read(&first.place.key).await.unwrap().unwrap();
    assert_eq!((stands.record.state, silent.lost.load(Ordering::Relaxed)), (State::Released, 0));
    assert_ne!(stands.version, released.version);
}
