//! A completion that the store does not take: tried before the answer, then in the background, and never a nack.

use std::time::Duration;

use pushonce::maintain::{Page, Why, uncertain};
use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, State};
use pushonce::{Guarded, Lock, RunError, Skip};
use tokio::time::Instant;

use crate::world::{Log, Runs, World, begin, is_unavailable, seconds, slow};

/// A lock, and how often it said that its outcome is uncertain.
fn watched(world: &World) -> (Guarded<Lock>, Runs) {
    let told = Runs::default();
    let hook = told.clone();
    (world.lock("k").on_uncertain(move |_| hook.add()), told)
}

// F65
#[tokio::test(start_paused = true)]
async fn a_completion_with_a_fault_that_passes_is_recorded_before_the_answer() {
    for fault in
        [Fault::LoseBefore, Fault::LoseAnswer, Fault::Late(seconds(1)), Fault::Fail, Fault::Stall(seconds(2))]
    {
        let world = World::new();
        world.chaos.next(On::Complete, fault);
        let (guarded, told) = watched(&world);
        guarded.run(async { Ok(()) }).await.unwrap();
        assert_eq!((world.state("k").await, told.count()), (Some(State::Done), 0), "{fault:?}");
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(world.state("k").await, Some(State::Done), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_answered_after_a_short_patience_as_success_and_recorded_when_it_is_over() {
    let (log, _guard) = Log::capture();
    let (world, began) = (World::new(), Instant::now());
    world.chaos.always(On::Complete, Fault::LoseBefore);
    let (guarded, told) = watched(&world);
    assert_eq!(guarded.run(async { Ok("charged") }).await.unwrap(), "charged");
    assert!(began.elapsed() >= seconds(5) && began.elapsed() < seconds(6), "{:?}", began.elapsed());
    assert_eq!(told.count(), 1);
    let events = log.event("uncertain");
    assert!(events.len() == 1 && events[0].contains("ERROR") && events[0].contains(":k"), "{events:?}");
    tokio::time::sleep(seconds(300)).await;
    assert_eq!(world.state("k").await, Some(State::Claimed));
    world.chaos.heal();
    tokio::time::sleep(seconds(31)).await;
    assert_eq!((world.state("k").await, told.count()), (Some(State::Done), 1));
}

#[tokio::test(start_paused = true)]
async fn while_a_completion_is_pending_this_process_does_not_run_its_key_again_even_after_the_lapse() {
    let (world, again) = (World::new(), Runs::default());
    world.chaos.always(On::Complete, Fault::LoseBefore);
    world.lock("k").lease(seconds(10)).run(async { Ok(()) }).await.unwrap();
    tokio::time::sleep(seconds(60)).await;
    let refused = world.lock("k").run(again.work()).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    world.lock("other").run(async { Ok(()) }).await.unwrap();
    world.chaos.heal();
    world.until("k", State::Done).await;
    assert!(matches!(world.lock("k").run(again.work()).await, Err(RunError::Skipped(_))));
    assert_eq!(again.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_completion_early_in_its_lease_leaves_the_answer_to_the_store() {
    let world = World::new();
    world.chaos.next(On::Complete, Fault::Stall(seconds(2)));
    let holder = begin(world.lock("k").run(async { Ok(()) })).await;
    // It is stored, which its holder does not know yet.
    world.until("k", State::Done).await;
    let second = world.lock("k").run(async { Ok(()) }).await;
    assert!(matches!(second, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{second:?}");
    holder.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_met_ever_more_seldom() {
    let world = World::new();
    world.chaos.always(On::Complete, Fault::Fail);
    world.lock("k").run(async { Ok(()) }).await.unwrap();
    tokio::time::sleep(seconds(300)).await;
    world.chaos.take();
    tokio::time::sleep(seconds(600)).await;
    // Rounds of six tries, with at most 30 s between them, and at least half of that.
    let swaps = world.chaos.take().swaps;
    assert!((6 * 18..=6 * 41).contains(&swaps), "{swaps}");
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_hangs_is_pending_too_before_its_answer_and_after() {
    // The lease lapses before the short patience is over, and while the next round of tries hangs.
    for (lease, lapsed) in [(3, 4), (15, 17)] {
        let (world, again) = (World::new(), Runs::default());
        world.chaos.always(On::Complete, Fault::LoseBefore);
        world.chaos.always(On::Read, Fault::Stall(seconds(60)));
        let holder = begin(world.lock("k").lease(seconds(lease)).run(async { Ok(()) })).await;
        tokio::time::sleep(seconds(lapsed)).await;
        let refused = world.lock("k").run(again.work()).await;
        assert!(is_unavailable(&refused), "{refused:?}");
        holder.await.unwrap().unwrap();
        world.chaos.heal();
        world.until("k", State::Done).await;
        assert_eq!(again.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_was_fenced_out_keeps_nobody_from_its_key_while_its_entry_is_written() {
    let world = World::new();
    let zombie = begin(world.lock("k").lease(seconds(10)).run(slow(seconds(30)))).await;
    tokio::time::sleep(seconds(10)).await;
    world.lock("k").run(async { Ok(()) }).await.unwrap();
    // The zombie's completion loses as it would anyway; after it the write of the entry hangs.
    world.chaos.next(On::Complete, Fault::LoseAnswer);
    world.chaos.always(On::Complete, Fault::Stall(seconds(60)));
    zombie.await.unwrap().unwrap();
    assert!(!world.chaos.has_next(), "the completion was sent");
    let again = world.lock("k").run(async { Ok(()) }).await;
    assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn who_may_wait_waits_for_a_pending_completion() {
    let world = World::new();
    world.chaos.always(On::Complete, Fault::LoseBefore);
    world.lock("k").run(async { Ok(()) }).await.unwrap();
    world.chaos.heal();
    let waited = world.lock("k").wait(seconds(60)).run(async { Ok(()) }).await;
    assert!(matches!(waited, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{waited:?}");
}

// F58
#[tokio::test(start_paused = true)]
async fn a_late_completion_after_a_take_over_changes_nothing_and_is_told() {
    let (log, _guard) = Log::capture();
    let world = World::new();
    let (guarded, told) = watched(&world);
    let work = slow(seconds(30));
    let zombie = begin(guarded.lease(seconds(10)).run(work)).await;
    tokio::time::sleep(seconds(10)).await;
    world.lock("k").run(async { Ok(()) }).await.unwrap();
    let record = world.record("k").await.unwrap();
    zombie.await.unwrap().unwrap();
    assert_eq!(world.record("k").await.unwrap(), record);
    assert_eq!((told.count(), log.event("uncertain").len()), (1, 1));
    tokio::time::sleep(seconds(1)).await;
    let listed = uncertain(&*world.memory, &Page::default()).await.unwrap();
    let listed: Vec<_> = listed.found.into_iter().map(|found| found.unwrap().why).collect();
    assert_eq!(listed, [Why::FencedOut]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_stored_keeps_nobody_from_the_key_once_its_lease_has_lapsed() {
    let (world, again) = (World::new(), Runs::default());
    world.chaos.always(On::Release, Fault::Fail);
    let failed = world.lock("k").lease(seconds(10)).run(async { Err::<(), _>("no".into()) }).await;
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    tokio::time::sleep(seconds(10)).await;
    world.lock("k").run(again.work()).await.unwrap();
    assert_eq!(again.count(), 1);
}

// F59
#[tokio::test(start_paused = true)]
async fn a_failed_zombie_does_not_release_its_successor() {
    let world = World::new();
    let zombie = async {
        tokio::time::sleep(seconds(30)).await;
        Err::<(), _>("no".into())
    };
    let zombie = begin(world.lock("k").lease(seconds(10)).run(zombie)).await;
    tokio::time::sleep(seconds(10)).await;
    let heir = slow(seconds(60));
    let heir = begin(world.lock("k").run(heir)).await;
    let record = world.record("k").await.unwrap();
    assert!(matches!(zombie.await.unwrap(), Err(RunError::Work(_))));
    assert_eq!(world.record("k").await.unwrap(), record);
    // Nothing was done, so nothing is to be looked at.
    tokio::time::sleep(seconds(1)).await;
    let listed = uncertain(&*world.memory, &Page::default()).await.unwrap();
    assert!(listed.found.is_empty(), "{listed:?}");
    heir.await.unwrap().unwrap();
    assert_eq!(world.state("k").await, Some(State::Done));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_the_store_does_not_take_is_stored_when_the_outage_is_over() {
    let (world, began) = (World::new(), Instant::now());
    world.chaos.always(On::Release, Fault::Fail);
    let failed = world.lock("k").run(async { Err::<(), _>("no".into()) }).await;
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    assert!(began.elapsed() < seconds(6));
    world.chaos.heal();
    world.until("k", State::Released).await;
    let record = world.record("k").await.unwrap();
    assert_eq!((record.ended, record.runs), (Ended::Failed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_mutex_that_cannot_be_released_is_no_uncertain_outcome() {
    let (world, told) = (World::new(), Runs::default());
    world.chaos.always(On::Release, Fault::LoseAnswer);
    let hook = told.clone();
    world.mutex("k").on_uncertain(move |_| hook.add()).run(async { Ok(()) }).await.unwrap();
    assert_eq!(told.count(), 0);
    world.chaos.heal();
    world.until("k", State::Released).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.record("k").await.unwrap().ended, Ended::Fresh);
}
