//! Shutdown: no new work, a bounded wait, then a cancellation that stops the work and never the settling.

use std::time::Duration;

use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, State};
use pushonce::{Drained, RunError, drain};
use tokio::time::Instant;

use crate::alone::alone;
use crate::world::{Log, Runs, SECOND, World, begin, seconds, slow};

fn is_shutdown<T>(result: &Result<T, RunError>) -> bool {
    matches!(result, Err(RunError::Shutdown(_)))
}

// F56
#[test]
fn work_that_ends_in_time_is_recorded_and_answered_and_nothing_new_is_admitted() {
    let name = "drain::work_that_ends_in_time_is_recorded_and_answered_and_nothing_new_is_admitted";
    alone(name, &[], async {
        let (world, runs) = (World::new(), Runs::default());
        let work = slow(seconds(3));
        let caller = begin(world.lock("k").run(work)).await;
        let drained = begin(drain(seconds(8))).await;
        world.chaos.take();
        assert!(is_shutdown(&world.lock("new").run(runs.work()).await));
        assert_eq!((runs.count(), world.chaos.take().swaps), (0, 0));
        let began = Instant::now();
        assert_eq!(drained.await.unwrap(), Drained { cancelled: false, left: 0 });
        assert!(began.elapsed() < seconds(4), "{:?}", began.elapsed());
        caller.await.unwrap().unwrap();
        assert_eq!(world.state("k").await, Some(State::Done));
    });
}

// F56
#[test]
fn longer_work_is_stopped_before_the_limit_and_its_key_left_to_lapse_unless_it_is_safe_to_cancel() {
    let name = "drain::longer_work_is_stopped_before_the_limit_and_its_key_left_to_lapse_unless_it_is_safe_to_cancel";
    alone(name, &[], async {
        let world = World::new();
        let work = || slow(seconds(60));
        let lapsing = begin(world.lock("lapsing").run(work())).await;
        let safe = begin(world.lock("safe").cancel_safe().run(work())).await;
        let began = Instant::now();
        assert_eq!(drain(seconds(8)).await, Drained { cancelled: true, left: 0 });
        assert!(began.elapsed() <= seconds(8), "{:?}", began.elapsed());
        assert!(is_shutdown(&lapsing.await.unwrap()) && is_shutdown(&safe.await.unwrap()));
        assert_eq!(world.state("lapsing").await, Some(State::Claimed));
        let record = world.record("safe").await.unwrap();
        assert_eq!((record.state, record.ended), (State::Released, Ended::Unknown));
    });
}

#[test]
fn a_waiter_goes_at_once_and_holds_nothing() {
    alone("drain::a_waiter_goes_at_once_and_holds_nothing", &[], async {
        let (world, runs) = (World::new(), Runs::default());
        let work = slow(seconds(3));
        let holder = begin(world.mutex("k").run(work)).await;
        let waiter = begin(world.mutex("k").wait(seconds(60)).run(runs.work())).await;
        let (drained, began) = (begin(drain(seconds(8))).await, Instant::now());
        assert!(is_shutdown(&waiter.await.unwrap()));
        assert!(began.elapsed() <= Duration::from_millis(250), "{:?}", began.elapsed());
        assert_eq!(drained.await.unwrap(), Drained { cancelled: false, left: 0 });
        holder.await.unwrap().unwrap();
        assert_eq!((runs.count(), world.state("k").await), (0, Some(State::Released)));
    });
}

#[test]
fn a_claim_in_flight_is_given_back_and_its_work_never_starts() {
    alone("drain::a_claim_in_flight_is_given_back_and_its_work_never_starts", &[], async {
        let (world, runs) = (World::new(), Runs::default());
        world.chaos.next(On::Claim, Fault::Stall(seconds(2)));
        let caller = begin(world.lock("k").run(runs.work())).await;
        assert_eq!(drain(seconds(8)).await, Drained { cancelled: false, left: 0 });
        assert!(is_shutdown(&caller.await.unwrap()));
        let record = world.record("k").await.unwrap();
        assert_eq!((runs.count(), record.state, record.runs), (0, State::Released, 0));
    });
}

#[test]
fn a_completion_that_is_still_being_stored_is_waited_for() {
    alone("drain::a_completion_that_is_still_being_stored_is_waited_for", &[], async {
        let world = World::new();
        world.chaos.always(On::Complete, Fault::LoseBefore);
        world.lock("k").run(async { Ok(()) }).await.unwrap();
        let drained = begin(drain(seconds(8))).await;
        tokio::time::sleep(SECOND).await;
        world.chaos.heal();
        assert_eq!(drained.await.unwrap(), Drained { cancelled: false, left: 0 });
        assert_eq!(world.state("k").await, Some(State::Done));
    });
}

#[test]
fn what_the_store_never_takes_is_counted_at_the_limit() {
    alone("drain::what_the_store_never_takes_is_counted_at_the_limit", &[], async {
        let world = World::new();
        world.chaos.always(On::Complete, Fault::LoseBefore);
        world.lock("k").run(async { Ok(()) }).await.unwrap();
        let began = Instant::now();
        assert_eq!(drain(seconds(8)).await, Drained { cancelled: true, left: 1 });
        assert!(began.elapsed() >= seconds(8) && began.elapsed() < seconds(9), "{:?}", began.elapsed());
    });
}

#[test]
fn work_that_ends_as_it_is_cancelled_is_recorded_and_never_released() {
    alone("drain::work_that_ends_as_it_is_cancelled_is_recorded_and_never_released", &[], async {
        let world = World::new();
        world.chaos.next(On::Complete, Fault::Fail);
        let just = slow(seconds(7));
        let caller = begin(world.lock("k").cancel_safe().run(just)).await;
        let _ = drain(seconds(8)).await;
        caller.await.unwrap().unwrap();
        assert_eq!(world.state("k").await, Some(State::Done));
    });
}

#[test]
fn marked_work_that_is_cancelled_is_lost_and_that_is_said() {
    alone("drain::marked_work_that_is_cancelled_is_lost_and_that_is_said", &[], async {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let work = slow(seconds(60));
        let caller = begin(world.at_most_once("k").run(work)).await;
        let _ = drain(seconds(8)).await;
        assert!(is_shutdown(&caller.await.unwrap()));
        // Nothing was marked by what was not admitted.
        assert!(is_shutdown(&world.at_most_once("new").run(async { Ok(()) }).await));
        assert_eq!(log.event("lost").len(), 1);
    });
}
