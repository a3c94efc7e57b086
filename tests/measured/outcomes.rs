//! Each outcome of the table is counted, once for each delivery, and so are the times behind it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::{Request, StatusCode};
use pushonce::measure::OUTCOMES;
use pushonce::store::chaos::{Fault, On};
use pushonce::{Failure, IdempotentLayer, Outcome, PayloadCheck, attribute, json_pointer, key_fn};
use serde_json::json;
use tokio::sync::Notify;

use crate::given_up::{Over, Taken};
use crate::samples::{RECORDER, in_flight, listen, outcomes, times};
use crate::world::{World, app, message, panics, posted, push, send, with_data, wrapped};

/// What the answers to these say, in the order of the table, as they should be counted.
struct Told {
    app: Router,
    told: Vec<String>,
}

impl Told {
    async fn push(&mut self, request: Request<Body>) {
        self.told.push(send(&self.app, request).await.outcome().to_owned());
    }

    /// As often as each was told.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let count = |outcome: &str| self.told.iter().filter(|told| *told == outcome).count() as u64;
        OUTCOMES.iter().map(|outcome| (*outcome, count(outcome))).filter(|(_, count)| *count > 0).collect()
    }
}

fn message_of(id: &str) -> Request<Body> {
    wrapped(&json!({ "messageId": id }))
}

/// A layer of that consumer, on a store of its own.
fn layer(consumer: &str) -> (World, IdempotentLayer) {
    let world = World::new();
    let layer = IdempotentLayer::new(consumer, world.store.clone());
    (world, layer)
}

#[test]
fn the_values_of_the_label_are_the_outcomes_that_a_consumer_can_have() {
    let all = Outcome::ALL.iter().filter(|outcome| **outcome != Outcome::Unauthorized);
    assert_eq!(all.map(|outcome| outcome.name()).collect::<Vec<_>>(), OUTCOMES);
}

#[tokio::test]
async fn what_ran_and_its_duplicates_are_counted_with_their_times() {
    let recorder = &*RECORDER;
    let (_world, layer) = layer("ran");
    let mut told = Told { app: app(post(async || ()), layer), told: Vec::new() };
    assert!(
        recorder.render().contains("pushonce_deliveries_total{consumer=\"ran\",outcome=\"uncertain\"} 0")
    );
    for id in ["m-1", "m-2", "m-1", "m-1"] {
        told.push(message_of(id)).await;
    }
    assert_eq!(told.counts(), [("ran", 2), ("duplicate", 2)]);
    assert_eq!(outcomes("ran"), told.counts());
    assert_eq!(times("pushonce_claim_seconds", "ran"), 4);
    for metric in ["pushonce_work_seconds", "pushonce_complete_seconds", "pushonce_lease_left_seconds"] {
        assert_eq!(times(metric, "ran"), 2, "{metric}");
    }
}

#[tokio::test]
async fn another_payload_is_a_conflict() {
    listen();
    let (_world, layer) = layer("conflict");
    let layer = layer.key(json_pointer("/id")).payload_check(PayloadCheck::Refuse);
    let mut told = Told { app: app(post(async || ()), layer), told: Vec::new() };
    for (id, data) in [("m-1", r#"{"id":1,"sum":2}"#), ("m-2", r#"{"id":1,"sum":3}"#)] {
        told.push(wrapped(&with_data(id, data))).await;
    }
    assert_eq!(told.counts(), [("ran", 1), ("conflict", 1)]);
    assert_eq!(outcomes("conflict"), told.counts());
}

#[tokio::test(start_paused = true)]
async fn what_was_not_recorded_is_uncertain_and_its_rerun_here_unavailable() {
    listen();
    let (world, layer) = layer("uncertain");
    let mut told = Told { app: app(post(async || ()), layer), told: Vec::new() };
    world.chaos.always(On::Complete, Fault::Fail);
    told.push(message_of("m")).await;
    told.push(message_of("m")).await;
    world.chaos.heal();
    while told.told.last().unwrap() != "duplicate" {
        tokio::time::sleep(Duration::from_secs(1)).await;
        told.push(message_of("m")).await;
    }
    assert_eq!(told.counts().first(), Some(&("duplicate", 1)));
    assert_eq!(outcomes("uncertain"), told.counts());
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_failure_is_counted_as_one() {
    listen();
    let (_world, layer) = layer("failed");
    let layer = layer.work_timeout(Duration::from_secs(20));
    let mut all = 0;
    for route in [post(async || StatusCode::BAD_REQUEST), post(panics), post(std::future::pending::<()>)] {
        let app = app(route, layer.clone());
        all += 1;
        assert_eq!(push(&app, &format!("m-{all}")).await.outcome(), "failed");
    }
    assert_eq!(outcomes("failed"), [("failed", 3)]);
    assert_eq!(times("pushonce_work_seconds", "failed"), 3);
    // The one over its time is left to lapse: nothing was written.
    assert_eq!(times("pushonce_complete_seconds", "failed"), 2);
}

#[tokio::test]
async fn a_key_that_is_held_is_in_progress() {
    listen();
    let (_world, layer) = layer("held");
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, released) = (started.clone(), release.clone());
    let route = post(async move || {
        start.notify_one();
        released.notified().await;
    });
    let app = app(route, layer);
    let first = tokio::spawn({
        let app = app.clone();
        async move { push(&app, "m").await.outcome().to_owned() }
    });
    started.notified().await;
    assert_eq!(push(&app, "m").await.outcome(), "in-progress");
    assert_eq!(in_flight("held"), 1.0);
    release.notify_one();
    assert_eq!(first.await.unwrap(), "ran");
    assert_eq!((outcomes("held"), in_flight("held")), (vec![("ran", 1), ("in-progress", 1)], 0.0));
}

#[tokio::test]
async fn what_is_marked_and_fails_is_lost() {
    listen();
    let (_world, layer) = layer("lost");
    let route = post(async || StatusCode::INTERNAL_SERVER_ERROR);
    let mut told = Told { app: app(route, layer.at_most_once()), told: Vec::new() };
    told.push(message_of("m")).await;
    told.push(message_of("m")).await;
    assert_eq!(told.counts(), [("lost", 2)]);
    assert_eq!(outcomes("lost"), told.counts());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_unavailable_and_a_claim_that_took_its_time() {
    listen();
    let (world, layer) = layer("down");
    world.chaos.always(On::Any, Fault::Fail);
    let app = app(post(async || ()), layer);
    assert_eq!(push(&app, "m").await.outcome(), "unavailable");
    assert_eq!(outcomes("down"), [("unavailable", 1)]);
    assert_eq!((times("pushonce_claim_seconds", "down"), times("pushonce_work_seconds", "down")), (1, 0));
}

#[tokio::test]
async fn what_never_comes_to_the_store_is_counted_and_not_timed() {
    listen();
    let (world, layer) = layer("refused");
    let mut told = Told { app: app(post(async || ()), layer.clone()), told: Vec::new() };
    told.push(posted("no envelope")).await;
    told.app = app(post(async || ()), layer.clone().body_limit(10));
    told.push(message_of("m")).await;
    told.app = app(post(async || ()), layer.clone().key(attribute("po_id")));
    told.push(message_of("m")).await;
    told.app = app(post(async || ()), layer.key(key_fn(|_| Err("no".into()))));
    told.push(message_of("m")).await;
    assert_eq!(told.counts(), [("misuse", 1), ("unkeyed", 1), ("refused", 2)]);
    assert_eq!(outcomes("refused"), told.counts());
    assert_eq!((times("pushonce_claim_seconds", "refused"), world.memory.len()), (0, 0));
}

#[tokio::test]
async fn what_runs_unguarded_is_counted_and_its_work_timed() {
    listen();
    let (_world, layer) = layer("unguarded");
    let app = app(post(async || ()), layer.key(attribute("po_id")).allow_unguarded());
    assert_eq!(message(&app, &json!({ "messageId": "m" })).await.outcome(), "unguarded");
    assert_eq!((outcomes("unguarded"), in_flight("unguarded")), (vec![("unguarded", 1)], 0.0));
    let counts =
        ["claim", "work", "lease_left"].map(|part| times(&format!("pushonce_{part}_seconds"), "unguarded"));
    assert_eq!(counts, [0, 1, 0]);
}

#[tokio::test]
async fn what_a_handler_rejects_is_dead_lettered() {
    listen();
    let (_world, layer) = layer("rejected");
    let layer = layer.dead_letters(Arc::new(Taken), "projects/p/topics/dead");
    let app = app(post(async || Failure::dead_letter("no")), layer);
    for outcome in ["dead-lettered", "duplicate"] {
        assert_eq!(push(&app, "m").await.outcome(), outcome);
    }
    assert_eq!(outcomes("rejected"), [("duplicate", 1), ("dead-lettered", 1)]);
    assert_eq!(times("pushonce_complete_seconds", "rejected"), 1);
}

#[tokio::test]
async fn what_nobody_wants_is_skipped() {
    listen();
    let (_world, layer) = layer("skipped");
    let app = app(post(async || ()), layer.follow(Over));
    let unwanted = json!({ "messageId": "m", "attributes": { "task-id": "t" } });
    assert_eq!(message(&app, &unwanted).await.outcome(), "skipped");
    assert_eq!((outcomes("skipped"), in_flight("skipped")), (vec![("skipped", 1)], 0.0));
}

#[tokio::test]
async fn what_is_no_post_is_no_delivery() {
    listen();
    let (_world, layer) = layer("passed");
    let app = Router::new().route("/", axum::routing::get(async || ()).layer(layer));
    let request = Request::get("/").body(Body::empty()).unwrap();
    assert_eq!(send(&app, request).await.told(), (200, ""));
    assert_eq!(outcomes("passed"), []);
}

#[tokio::test]
async fn work_after_its_caller_hung_up_is_counted() {
    listen();
    let (world, layer) = layer("gone");
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, released) = (started.clone(), release.clone());
    let route = post(async move || {
        start.notify_one();
        released.notified().await;
    });
    let app = app(route, layer);
    let caller = tokio::spawn(async move { push(&app, "m").await });
    started.notified().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    assert_eq!((outcomes("gone"), in_flight("gone")), (vec![], 1.0));
    release.notify_one();
    while in_flight("gone") > 0.0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(outcomes("gone"), [("ran", 1)]);
    assert!(world.record(("gone", "m")).await.is_some());
}
