//! `serialize`: the messages of one entity run one at a time, besides being done once each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, State};
use pushonce::{Delivery, IdempotentLayer, IntoKey as _, Lease, Store as _, attribute};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::log::Log;
use crate::world::{Answer, Runs, World, app, message, panics};

/// A message of an order.
fn order(id: &str, po: &str) -> Value {
    json!({ "messageId": id, "attributes": { "po": po } })
}

/// A service whose handler waits for a permit, and says whose message it works on.
struct Gate {
    app: Router,
    permits: Arc<Semaphore>,
    started: mpsc::UnboundedReceiver<String>,
}

impl Gate {
    fn of(layer: IdempotentLayer) -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let (start, started) = mpsc::unbounded_channel();
        let waited = permits.clone();
        let busy = Arc::new(AtomicBool::new(false));
        let handler = post(async move |delivery: Delivery| {
            assert!(!busy.swap(true, Ordering::SeqCst), "two messages of one entity at once");
            start.send(delivery.message_id().unwrap().to_owned()).unwrap();
            waited.acquire().await.unwrap().forget();
            busy.store(false, Ordering::SeqCst);
        });
        Self { app: app(handler, layer), permits, started }
    }

    /// Sends a message of the order `1`, in the background.
    fn send(&self, id: &'static str) -> tokio::task::JoinHandle<Answer> {
        let app = self.app.clone();
        tokio::spawn(async move { message(&app, &order(id, "1")).await })
    }
}

#[tokio::test(start_paused = true)]
async fn messages_of_one_entity_run_one_at_a_time_and_none_is_dropped() {
    let world = World::new();
    let layer = world.layer().serialize(attribute("po")).serialize_wait(Duration::from_secs(60));
    let mut gate = Gate::of(layer);
    let sent = ["m-1", "m-2", "m-3"].map(|id| gate.send(id));
    for _ in 0..3 {
        gate.started.recv().await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        gate.permits.add_permits(1);
    }
    for answer in sent {
        assert_eq!(answer.await.unwrap().told(), (200, "ran"));
    }
    assert_eq!(message(&gate.app, &order("m-2", "1")).await.told(), (204, "duplicate"));
}

#[tokio::test(start_paused = true)]
async fn a_held_entity_is_answered_503_and_the_claim_is_undone_with_the_history_it_found() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let layer = world.layer().serialize(attribute("po"));
    // The second message has failed once, so its history is not a fresh one.
    let before = app(Runs::default().answering(&[500]), layer.clone());
    assert_eq!(message(&before, &order("m-2", "1")).await.told(), (500, "failed"));
    let mut gate = Gate::of(layer);
    let first = gate.send("m-1");
    gate.started.recv().await.unwrap();
    log.outcome();
    let second = message(&gate.app, &order("m-2", "1")).await;
    assert_eq!(second.told(), (503, "in-progress"));
    assert!(second.headers.contains_key("retry-after"));
    assert_eq!(log.outcome().field("key"), "orders:m-2");
    assert_eq!(world.stands("m-2").await, Some((State::Released, Ended::Failed, 1)));
    let third = message(&gate.app, &order("m-3", "1")).await;
    assert_eq!(third.told(), (503, "in-progress"));
    assert_eq!(world.stands("m-3").await, Some((State::Released, Ended::Fresh, 0)));
    gate.permits.add_permits(2);
    assert_eq!(first.await.unwrap().told(), (200, "ran"));
    assert_eq!(message(&gate.app, &order("m-2", "1")).await.told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_for_nothing_leaves_the_receipt_of_the_run_before() {
    let (world, ttl) = (World::new(), Duration::from_millis(1));
    let mut gate = Gate::of(world.layer().serialize(attribute("po")).ttl(ttl));
    gate.permits.add_permits(1);
    assert_eq!(message(&gate.app, &order("m-2", "1")).await.told(), (200, "ran"));
    let receipt = world.record(("orders", "m-2")).await.unwrap().receipt;
    assert!(receipt.is_some());
    // By the clock of the store, which is the system's.
    let key = ("orders", "m-2").into_key().unwrap();
    while world.memory.read(&key).await.unwrap().unwrap().age <= ttl {
        std::thread::yield_now();
    }
    gate.started.recv().await.unwrap();
    let first = gate.send("m-1");
    gate.started.recv().await.unwrap();
    assert_eq!(message(&gate.app, &order("m-2", "1")).await.told(), (503, "in-progress"));
    let undone = world.record(("orders", "m-2")).await.unwrap();
    assert_eq!((undone.state, undone.receipt), (State::Released, receipt));
    gate.permits.add_permits(1);
    assert_eq!(first.await.unwrap().told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn a_mark_of_at_most_once_whose_entity_is_held_is_undone_and_nothing_is_lost() {
    let world = World::new();
    let mut gate = Gate::of(world.layer().at_most_once().serialize(attribute("po")));
    let first = gate.send("m-1");
    gate.started.recv().await.unwrap();
    assert_eq!(message(&gate.app, &order("m-2", "1")).await.told(), (503, "in-progress"));
    assert_eq!(world.stands("m-2").await, Some((State::Released, Ended::Fresh, 0)));
    gate.permits.add_permits(2);
    assert_eq!(first.await.unwrap().told(), (200, "ran"));
    assert_eq!(message(&gate.app, &order("m-2", "1")).await.told(), (200, "ran"));
}

#[tokio::test]
async fn an_entity_and_a_key_of_the_same_text_never_meet() {
    let (world, runs) = (World::new(), Runs::default());
    let layer = world.layer().key(attribute("po")).serialize(attribute("po"));
    let app = app(runs.answering(&[200]), layer);
    assert_eq!(message(&app, &order("m-1", "1")).await.told(), (200, "ran"));
    assert_eq!(message(&app, &order("m-2", "1")).await.told(), (204, "duplicate"));
    assert_eq!((runs.count(), world.memory.len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn two_consumers_share_an_entity_only_where_they_give_it_one_scope() {
    for shared in [false, true] {
        let world = World::new();
        let rule = || if shared { attribute("po").scope("order") } else { attribute("po") };
        let other = IdempotentLayer::new("mails", world.store.clone()).serialize(rule());
        let other = app(Runs::default().answering(&[200]), other);
        let mut gate = Gate::of(world.layer().serialize(rule()));
        let first = gate.send("m-1");
        gate.started.recv().await.unwrap();
        let told = if shared { (503, "in-progress") } else { (200, "ran") };
        assert_eq!(message(&other, &order("m-1", "1")).await.told(), told);
        gate.permits.add_permits(1);
        first.await.unwrap();
    }
}

#[tokio::test]
async fn the_lease_that_the_handler_sees_is_that_of_its_message() {
    let world = World::new();
    let handler = post(async |lease: Lease| assert_eq!(lease.key().to_string(), "orders:m"));
    let app = app(handler, world.layer().serialize(attribute("po")));
    assert_eq!(message(&app, &order("m", "1")).await.told(), (200, "ran"));
}

#[tokio::test]
async fn a_message_without_an_entity_is_unkeyed_even_where_a_key_may_be_missing() {
    for allow in [false, true] {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let mut layer = world.layer().serialize(attribute("po"));
        if allow {
            layer = layer.allow_unguarded();
        }
        let app = app(runs.answering(&[200]), layer);
        assert_eq!(message(&app, &json!({ "messageId": "m" })).await.told(), (422, "unkeyed"));
        assert!(log.outcome().field("error").contains("`serialize`"));
        assert_eq!((runs.count(), world.memory.len()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_a_panic_and_a_time_limit_end_as_they_do_without_an_entity() {
    let world = World::new();
    let layer = || world.layer().serialize(attribute("po")).work_timeout(Duration::from_secs(20));
    let fails = app(Runs::default().answering(&[404]), layer());
    assert_eq!(message(&fails, &order("m-1", "1")).await.told(), (404, "failed"));
    assert_eq!(world.stands("m-1").await, Some((State::Released, Ended::Failed, 1)));
    let panicking = app(post(panics), layer());
    assert_eq!(message(&panicking, &order("m-2", "1")).await.told(), (500, "failed"));
    assert_eq!(world.stands("m-2").await, Some((State::Released, Ended::Unknown, 1)));
    let late = app(post(std::future::pending::<()>), layer().cancel_safe());
    assert_eq!(message(&late, &order("m-3", "1")).await.told(), (504, "failed"));
    assert_eq!(world.stands("m-3").await, Some((State::Released, Ended::Unknown, 1)));
    // What the handler started may go on, so the next message of the entity must wait for the lapse.
    let late = app(post(std::future::pending::<()>), layer());
    assert_eq!(message(&late, &order("m-4", "1")).await.told(), (504, "failed"));
    assert_eq!(world.stands("m-4").await, Some((State::Claimed, Ended::Fresh, 0)));
    assert_eq!(message(&late, &order("m-5", "1")).await.told(), (503, "in-progress"));
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_is_the_handlers_and_not_the_waits() {
    let world = World::new();
    let layer = world.layer().serialize(attribute("po")).serialize_wait(Duration::from_secs(60));
    let mut gate = Gate::of(layer.work_timeout(Duration::from_secs(20)));
    let first = gate.send("m-1");
    gate.started.recv().await.unwrap();
    let second = gate.send("m-2");
    tokio::time::sleep(Duration::from_secs(15)).await;
    gate.permits.add_permits(1);
    assert_eq!(first.await.unwrap().told(), (200, "ran"));
    gate.started.recv().await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    gate.permits.add_permits(1);
    assert_eq!(second.await.unwrap().told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_between_the_two_claims_is_answered_503_and_the_first_is_undone() {
    let (world, runs) = (World::new(), Runs::default());
    let app = app(runs.answering(&[200]), world.layer().serialize(attribute("po")));
    // A mutex reads first; the message's own claim does not.
    world.chaos.always(On::Read, Fault::Fail);
    assert_eq!(message(&app, &order("m", "1")).await.told(), (503, "unavailable"));
    assert_eq!((runs.count(), world.stands("m").await), (0, Some((State::Released, Ended::Fresh, 0))));
    world.chaos.heal();
    assert_eq!(message(&app, &order("m", "1")).await.told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_was_undone_before_the_handler_began_is_not_lost() {
    let (world, runs) = (World::new(), Runs::default());
    let app = app(runs.answering(&[200]), world.layer().at_most_once().serialize(attribute("po")));
    world.chaos.always(On::Read, Fault::Fail);
    assert_eq!(message(&app, &order("m", "1")).await.told(), (503, "unavailable"));
    world.chaos.heal();
    assert_eq!(message(&app, &order("m", "1")).await.told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn a_marked_message_sees_its_entitys_lease_lapse_although_its_mark_stands_for_days() {
    let world = World::new();
    let lease = Duration::from_secs(60);
    let (tell, mut told) = mpsc::unbounded_channel();
    let handler = post(async move |held: Lease| {
        assert!(held.left() <= lease, "the mark's ttl was taken for the lease");
        held.lost().await;
        tell.send(held.left()).unwrap();
    });
    let layer = world.layer().at_most_once().serialize(attribute("po")).lease(lease);
    let layer = layer.clock(Arc::new(pushonce::testing::TokioClock::new()));
    assert_eq!(message(&app(handler, layer), &order("m-1", "1")).await.told(), (200, "ran"));
    assert_eq!(told.recv().await, Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_recorded_message_is_a_duplicate_while_the_release_of_its_entity_is_tried_on() {
    let world = World::new();
    // A lease so short that it may lapse before the first tries are over, so that its key is pending meanwhile.
    let layer = world.layer().lease(Duration::from_secs(5)).serialize(attribute("po"));
    let app = app(post(async || ()), layer);
    world.chaos.always(On::Release, Fault::Fail);
    assert_eq!(message(&app, &order("m", "1")).await.told(), (200, "ran"));
    assert_eq!(message(&app, &order("m", "1")).await.told(), (204, "duplicate"));
}

#[tokio::test(start_paused = true)]
async fn a_release_of_an_entity_that_is_not_stored_in_time_is_tried_on() {
    let world = World::new();
    let app = app(post(async || ()), world.layer().lease(Duration::from_secs(90)).serialize(attribute("po")));
    world.chaos.always(On::Release, Fault::Fail);
    assert_eq!(message(&app, &order("m", "1")).await.told(), (200, "ran"));
    world.chaos.heal();
    // Before the lease would have freed it.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(message(&app, &order("n", "1")).await.told(), (200, "ran"));
}
