//! The gauge of what is in flight is exact, and comes back to zero whatever ends a run.

use std::time::Duration;

use axum::routing::post;
use pushonce::store::chaos::{Fault, On};
use pushonce::{IdempotentLayer, lock};

use crate::samples::{in_flight, listen, outcomes};
use crate::world::{World, app, panics, push};

/// Waits until nothing of the consumer is in flight.
async fn landed(consumer: &str) {
    let landed = async {
        while in_flight(consumer) != 0.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(600), landed).await.is_err() {
        panic!("{} of {consumer} never landed", in_flight(consumer));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_time_limit_leave_nothing_in_flight() {
    listen();
    let world = World::new();
    let layer = || IdempotentLayer::new("fallen", world.store.clone()).work_timeout(Duration::from_secs(20));
    assert_eq!(push(&app(post(panics), layer()), "m-1").await.told(), (500, "failed"));
    let endless = app(post(std::future::pending::<()>), layer());
    assert_eq!(push(&endless, "m-2").await.told(), (504, "failed"));
    assert_eq!((outcomes("fallen"), in_flight("fallen")), (vec![("failed", 2)], 0.0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_in_the_wait_for_a_holder_leaves_nothing_in_flight() {
    listen();
    let world = World::new();
    let guarded = |text: &'static str| lock(("waiters", text), &world.store);
    let held = tokio::spawn(guarded("k").run(async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waiter = tokio::spawn(guarded("k").wait(Duration::from_secs(600)).run(async { Ok(()) }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(in_flight("waiters"), 2.0);
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    held.await.unwrap().unwrap();
    landed("waiters").await;
    assert_eq!(outcomes("waiters"), [("ran", 1), ("in-progress", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_was_never_polled_was_never_in_flight() {
    listen();
    let world = World::new();
    drop(lock(("unpolled", "k"), &world.store).run(async { Ok(()) }));
    assert_eq!((outcomes("unpolled"), in_flight("unpolled")), (vec![], 0.0));
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_after_the_answer_is_in_flight_until_it_is() {
    listen();
    let world = World::new();
    world.chaos.always(On::Complete, Fault::Fail);
    lock(("late", "k"), &world.store).run(async { Ok(()) }).await.unwrap();
    assert_eq!((outcomes("late"), in_flight("late")), (vec![("uncertain", 1)], 1.0));
    world.chaos.heal();
    landed("late").await;
}
