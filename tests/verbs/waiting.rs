//! A bounded wait for a live holder: it wakes in time, and stops without a trace.

use std::time::Duration;

use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, State};
use pushonce::{RunError, Skip};
use tokio::time::Instant;

use crate::world::{Runs, SECOND, World, begin, hang_up, seconds, slow};

#[tokio::test(start_paused = true)]
async fn a_mutex_waits_five_seconds_and_then_says_that_it_is_in_progress() {
    let (world, runs) = (World::new(), Runs::default());
    let holder = begin(world.mutex("k").run(std::future::pending::<Result<(), _>>())).await;
    let began = Instant::now();
    let waited = world.mutex("k").run(runs.work()).await;
    assert!(matches!(waited, Err(RunError::Skipped(Skip::InProgress { .. }))), "{waited:?}");
    assert!(began.elapsed() >= seconds(5) && began.elapsed() < Duration::from_millis(5100));
    assert_eq!(runs.count(), 0);
    holder.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lock_does_not_wait_unless_it_is_told_to() {
    let world = World::new();
    let work = || slow(seconds(3));
    let holder = begin(world.lock("k").run(work())).await;
    let began = Instant::now();
    let at_once = world.lock("k").run(work()).await;
    assert!(matches!(at_once, Err(RunError::Skipped(Skip::InProgress { .. }))), "{at_once:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    // F44: a short wait turns "in progress" into "duplicate".
    let waited = world.lock("k").wait(seconds(5)).run(work()).await;
    assert!(matches!(waited, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{waited:?}");
    assert!(began.elapsed() < Duration::from_millis(3300), "{:?}", began.elapsed());
    holder.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_woken_when_the_lease_of_the_holder_lapses() {
    let (world, began) = (World::new(), Instant::now());
    let dead = world.mutex("k").lease(Duration::from_millis(2020)).work_timeout(SECOND);
    dead.run(std::future::pending::<Result<(), _>>()).await.unwrap_err();
    let at = world.mutex("k").run(async move { Ok(began.elapsed()) }).await.unwrap();
    assert!(at >= Duration::from_millis(2020) && at <= Duration::from_millis(2025), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_caller_hung_up_asks_no_more_and_never_starts() {
    let (world, runs) = (World::new(), Runs::default());
    let work = slow(seconds(3));
    let holder = begin(world.mutex("k").run(work)).await;
    let waiter = begin(world.mutex("k").wait(seconds(60)).run(runs.work())).await;
    hang_up(waiter).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    world.chaos.take();
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(world.chaos.take(), pushonce::store::chaos::Trips::default());
    holder.await.unwrap().unwrap();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!((runs.count(), world.state("k").await), (0, Some(State::Released)));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_caller_hangs_up_as_it_wins_gives_the_key_back_and_never_starts() {
    let (world, runs) = (World::new(), Runs::default());
    let work = slow(seconds(3));
    let holder = begin(world.mutex("k").run(work)).await;
    // Meant for the claim that wins, which may come at the very instant of the release.
    world.chaos.next(On::Claim, Fault::Stall(seconds(2)));
    let waiter = begin(world.mutex("k").wait(seconds(60)).run(runs.work())).await;
    holder.await.unwrap().unwrap();
    world.until("k", State::Claimed).await;
    // What was claimed for nobody is given back also by a store that fails for a while.
    for _ in 0..20 {
        world.chaos.next(On::Release, Fault::Fail);
    }
    hang_up(waiter).await;
    world.until("k", State::Released).await;
    assert!(!world.chaos.has_next());
    tokio::time::sleep(seconds(60)).await;
    let record = world.record("k").await.unwrap();
    assert_eq!((runs.count(), record.state), (0, State::Released));
    assert_eq!((record.runs, record.ended), (0, Ended::Fresh));
}
