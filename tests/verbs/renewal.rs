//! Renewal: a short lease, long work, and a holder that knows when it has lost.

use std::sync::Arc;
use std::time::Duration;

use pushonce::store::BoxError;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Progress, State};
use pushonce::testing::ManualClock;
use pushonce::verbs::{DEFAULT_LEASE, DEFAULT_TTL};
use pushonce::{History, IntoKey, Lease, RunError, Skip};

use crate::world::{Runs, SECOND, World, begin, crash, seconds, slow};

fn in_progress<T: std::fmt::Debug>(result: Result<T, RunError>) -> Duration {
    match result {
        Err(RunError::Skipped(Skip::InProgress { left })) => left,
        other => panic!("expected in progress: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_over_long_work_under_a_short_lease_that_is_renewed() {
    let (world, runs) = (World::new(), Runs::default());
    let work = slow(seconds(60));
    let holder = begin(world.lock("k").lease(seconds(9)).renew().run(work)).await;
    let fence = world.record("k").await.unwrap().fence;
    for _ in 0..59 {
        tokio::time::sleep(SECOND).await;
        in_progress(world.lock("k").run(runs.work()).await);
    }
    holder.await.unwrap().unwrap();
    assert_eq!(runs.count(), 0);
    assert_eq!(world.record("k").await.unwrap().fence, fence);
}

#[test]
fn a_crash_of_a_renewing_holder_frees_the_key_within_its_short_lease() {
    let clock = ManualClock::new();
    let world = Arc::new(World::on(Arc::new(clock.clone())));
    crash({
        let (world, clock) = (world.clone(), clock.clone());
        async move {
            let work = std::future::pending::<Result<(), _>>();
            let holder = begin(world.lock("k").lease(seconds(9)).renew().run(work)).await;
            for _ in 0..100 {
                tokio::time::sleep(SECOND).await;
                clock.advance(SECOND);
            }
            drop(holder);
        }
    });
    crash(async move {
        assert!(in_progress(world.lock("k").run(async { Ok(()) }).await) <= seconds(9));
        clock.advance(seconds(9));
        let history = world.lock("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
        assert_eq!(history, History::Unknown { runs: 1 });
    });
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_first_renewed_a_third_after_the_claim_was_sent_and_not_after_it_was_answered() {
    let world = World::new();
    world.chaos.next(On::Claim, Fault::Stall(Duration::from_millis(2900)));
    let work = slow(seconds(20));
    let holder = begin(world.lock("k").lease(seconds(9)).renew().run(work)).await;
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert_eq!(world.chaos.trips().swaps, 2, "the claim and one renewal");
    holder.await.unwrap().unwrap();
}

/// A work that ends when its lease is lost, and says when that was.
async fn until_lost(lease: Lease) -> Result<Duration, BoxError> {
    // Far beyond what any of these tests allows, so that a lease that is never lost fails and does not hang.
    lost_within(seconds(600), lease).await
}

async fn lost_within(limit: Duration, lease: Lease) -> Result<Duration, BoxError> {
    let began = tokio::time::Instant::now();
    tokio::time::timeout(limit, lease.lost()).await?;
    assert_eq!(lease.left(), Duration::ZERO);
    Ok(began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn renewal_ends_at_max_hold_and_the_work_learns_of_the_lapse_that_follows() {
    let world = World::new();
    let guarded = world.lock("k").lease(seconds(9)).renew().max_hold(seconds(30));
    let held = guarded.run_with(until_lost).await.unwrap();
    assert!(held >= seconds(30) && held <= seconds(39), "{held:?}");
    // Nobody took it over, so it is recorded all the same.
    assert_eq!(world.state("k").await, Some(State::Done));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_lapsed_under_a_failing_store_is_renewed_no_more() {
    let world = World::new();
    world.chaos.always(On::Renew, Fault::Fail);
    let chaos = world.chaos.clone();
    let guarded = world.lock("k").lease(seconds(9)).renew().run_with(|lease| async move {
        until_lost(lease).await?;
        // What was under way at the lapse is over by then.
        tokio::time::sleep(seconds(30)).await;
        let before = chaos.trips().swaps;
        tokio::time::sleep(seconds(60)).await;
        Ok(chaos.trips().swaps - before)
    });
    assert_eq!(guarded.await.unwrap(), 0);
}

/// Whoever relies on a default relies on its length: to change one is a breaking change.
#[tokio::test(start_paused = true)]
async fn unless_told_otherwise_a_lease_is_a_quarter_of_an_hour_a_ttl_a_week_and_renewal_ends_after_an_hour() {
    let world = World::new();
    let (lease, hold) = (seconds(900), seconds(3600));
    let held = world.lock("k").renew().run_with(move |held| lost_within(hold + lease, held)).await.unwrap();
    assert!(held >= hold, "{held:?}");
    let record = world.record("k").await.unwrap();
    assert_eq!((record.lease, record.ttl), (lease, seconds(604_800)));
    assert_eq!((DEFAULT_LEASE, DEFAULT_TTL), (record.lease, record.ttl));
}

#[tokio::test(start_paused = true)]
async fn without_renewal_the_work_learns_of_the_lapse() {
    let world = World::new();
    let held = world.lock("k").lease(seconds(9)).run_with(until_lost).await.unwrap();
    assert!(held >= seconds(9) && held < seconds(10), "{held:?}");
}

// F55
#[tokio::test(start_paused = true)]
async fn a_lease_that_lapsed_while_the_machine_was_suspended_is_known_to_be_lost_within_a_second() {
    let clock = ManualClock::new();
    let world = World::on(Arc::new(clock.clone()));
    let work = |lease: Lease| async move {
        let resumed = async { clock.ahead(seconds(60 * 60)) }; // no timer ran meanwhile
        let (lost, ()) = tokio::join!(tokio::time::timeout(SECOND, lease.lost()), resumed);
        Ok(lost?)
    };
    world.lock("k").run_with(work).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_renewal_loses_the_lease_at_its_lapse_and_the_work_is_recorded_all_the_same() {
    let world = World::new();
    world.chaos.always(On::Renew, Fault::Fail);
    let held = world.lock("k").lease(seconds(9)).renew().run_with(until_lost).await.unwrap();
    assert!(held >= seconds(9) && held < seconds(10), "{held:?}");
    assert_eq!(world.state("k").await, Some(State::Done));
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_does_not_lose_it() {
    let world = World::new();
    world.chaos.always(On::Any, Fault::Fail);
    world.chaos.heal();
    let holder = begin(world.lock("k").lease(seconds(9)).renew().run_with(|lease: Lease| async move {
        tokio::select! {
            () = lease.lost() => Err("lost".into()),
            () = tokio::time::sleep(seconds(30)) => Ok(()),
        }
    }))
    .await;
    world.chaos.always(On::Any, Fault::LoseBefore);
    tokio::time::sleep(seconds(8)).await;
    world.chaos.heal();
    holder.await.unwrap().unwrap();
}

// F55
#[tokio::test(start_paused = true)]
async fn a_holder_that_slept_past_its_lease_is_told_and_never_steals_its_claim_back() {
    let clock = ManualClock::new();
    let world = World::on(Arc::new(clock.clone()));
    let (told, uncertain) = (Runs::default(), Runs::default());
    let hook = uncertain.clone();
    let guarded = world.lock("k").lease(seconds(9)).renew().on_uncertain(move |_| hook.add());
    let lost = told.clone();
    let frozen = begin(guarded.run_with(|lease: Lease| async move {
        lease.lost().await;
        lost.add();
        Ok(())
    }))
    .await;
    clock.advance(seconds(9)); // no timer of the holder runs meanwhile
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let heir = begin(world.lock("k").run(async move { Ok(released.await?) })).await;
    let holder = world.record("k").await.unwrap().holder;
    frozen.await.unwrap().unwrap();
    assert_eq!((told.count(), uncertain.count()), (1, 1));
    assert_eq!(world.record("k").await.unwrap().holder, holder);
    release.send(()).unwrap();
    heir.await.unwrap().unwrap();
    assert_eq!((world.state("k").await, uncertain.count()), (Some(State::Done), 1));
}

// F59
#[tokio::test(start_paused = true)]
async fn a_renewal_that_finds_the_record_gone_tells_the_work_at_once() {
    let (world, uncertain) = (World::new(), Runs::default());
    let hook = uncertain.clone();
    let guarded = world.lock("k").lease(seconds(9)).renew().on_uncertain(move |_| hook.add());
    let holder = begin(guarded.run_with(until_lost)).await;
    world.memory.forget(&"k".into_key().unwrap());
    let held = holder.await.unwrap().unwrap();
    assert!(held <= seconds(4), "{held:?}");
    assert_eq!((world.state("k").await, uncertain.count()), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_in_flight_never_undoes_the_completion_that_follows() {
    for fault in [Fault::Stall(SECOND), Fault::Late(SECOND), Fault::LoseAnswer, Fault::LoseBefore] {
        let world = World::new();
        world.chaos.next(On::Renew, fault);
        let work = slow(Duration::from_millis(3100));
        world.lock("k").lease(seconds(9)).renew().run(work).await.unwrap();
        tokio::time::sleep(seconds(20)).await;
        assert!(!world.chaos.has_next(), "{fault:?}: no renewal was in flight");
        assert_eq!(world.state("k").await, Some(State::Done), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_renewal_does_not_hold_up_the_answer() {
    let world = World::new();
    world.chaos.next(On::Renew, Fault::Stall(seconds(30)));
    let began = tokio::time::Instant::now();
    let work = slow(seconds(11));
    world.lock("k").lease(seconds(30)).renew().run(work).await.unwrap();
    assert!(began.elapsed() <= Duration::from_millis(12_500), "{:?}", began.elapsed());
    assert_eq!(world.state("k").await, Some(State::Done));
}

#[tokio::test(start_paused = true)]
async fn a_mark_needs_no_renewal_and_is_not_lost_for_want_of_one() {
    let world = World::new();
    let guarded = world.at_most_once("k").lease(seconds(9)).renew();
    let ran = guarded.run_with(|lease: Lease| async move {
        tokio::select! {
            () = lease.lost() => Err("lost".into()),
            () = tokio::time::sleep(seconds(60)) => Ok(lease.left()),
        }
    });
    assert!(ran.await.unwrap().unwrap() > seconds(60));
    assert_eq!(world.receipt("k").await.progress, Progress::Finished);
    assert_eq!(world.chaos.trips().swaps, 2);
}
