//! The tools for a user's own tests: every shape of a push, and the crash window.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Router, routing::post};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use pushonce::pubsub::Shape;
use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::testing::{CrashReport, ManualClock, Push, crash_window};
use pushonce::{
    Ack, Delivery, Failure, History, IdempotentLayer, Lease, Outcome, PubSub, Report, Store, attribute, lock,
};
use serde_json::{Value, json};

fn read(push: &Push) -> Delivery {
    let (parts, body) = push.request::<Bytes>().into_parts();
    assert_eq!(body, push.body());
    Delivery::decode(&parts.headers, body).unwrap()
}

#[test]
fn every_shape_carries_the_same_message() {
    let push = Push::json(&json!({ "po_id": "1" }))
        .id("m-1")
        .attribute("po_id", "1")
        .attribute("origin", "Zürich")
        .ordering_key("po-1")
        .publish_time("2026-01-02T12:05:00.5Z")
        .subscription("projects/p/subscriptions/s")
        .attempt(2);
    let shapes = [
        (push.clone(), Shape::Wrapped),
        (push.clone().unwrapped(), Shape::Unwrapped),
        (push.clone().eventarc(), Shape::CloudEvent),
        (push.clone().structured(), Shape::CloudEvent),
    ];
    for (push, shape) in shapes {
        let delivery = read(&push);
        assert_eq!(delivery.shape(), shape);
        assert_eq!(delivery.message_id(), Some("m-1"), "{shape:?}");
        assert_eq!(delivery.attribute("po_id"), Some("1"), "{shape:?}");
        assert_eq!(delivery.attribute("origin"), Some("Zürich"), "{shape:?}");
        assert_eq!(delivery.attributes().count(), 2, "{shape:?}");
        assert_eq!(delivery.ordering_key(), Some("po-1"), "{shape:?}");
        assert_eq!(delivery.publish_time().unwrap().to_rfc3339(), "2026-01-02T12:05:00.500+00:00");
        assert_eq!(delivery.subscription(), Some("projects/p/subscriptions/s"), "{shape:?}");
        assert_eq!(delivery.attempt(), Some(2), "{shape:?}");
        assert_eq!(delivery.json::<Value>().unwrap(), json!({ "po_id": "1" }), "{shape:?}");
        assert_eq!(delivery.event().is_some(), shape == Shape::CloudEvent);
        assert_eq!(read(&push.again()).attempt(), Some(3), "{shape:?}");
    }
    let bare = read(&push.unwrapped_without_metadata());
    assert_eq!((bare.shape(), bare.message_id(), bare.attempt()), (Shape::Bare, None, None));
    assert_eq!(bare.json::<Value>().unwrap(), json!({ "po_id": "1" }));
}

#[test]
fn what_is_not_said_is_left_out() {
    let push = Push::empty();
    let envelope: Value = serde_json::from_slice(&push.body()).unwrap();
    let names: Vec<_> = envelope["message"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["messageId", "message_id", "publishTime", "publish_time"]);
    assert!(envelope.get("deliveryAttempt").is_none());
    assert_eq!(read(&push.clone().again()).attempt(), None);
    // F18: an unwrapped push says nothing of its type.
    assert!(!push.clone().unwrapped().request::<Bytes>().headers().contains_key("content-type"));
    assert_ne!(read(&push).message_id(), read(&Push::empty()).message_id(), "ids are fresh");
    assert_eq!(read(&push).message_id(), read(&push).message_id(), "a push keeps its id");
    assert_eq!(read(&Push::bytes(vec![0xff, 0])).data().unwrap(), [0xff, 0][..]);
}

#[test]
#[should_panic(expected = "HTTP has no header \"a b\"")]
fn an_attribute_that_cannot_be_a_header_is_told() {
    let _ = Push::empty().attribute("a b", "1").unwrapped().request::<Bytes>();
}

#[tokio::test]
async fn an_answer_has_status_outcome_headers_and_body() {
    let handler = |headers: HeaderMap| async move {
        (StatusCode::CREATED, headers["authorization"].as_bytes().to_vec())
    };
    let bare = Router::new().route("/orders", post(handler));
    let push = Push::empty().path("/orders").header("authorization", "Bearer x");
    let answer = push.send(&bare).await;
    assert_eq!(
        (answer.status, answer.outcome, &answer.body[..]),
        (StatusCode::CREATED, None, &b"Bearer x"[..])
    );
    assert!(answer.acked() && !Push::empty().send(&bare).await.acked());

    let guarded = bare.layer(IdempotentLayer::new("orders", Arc::new(Memory::new())));
    let pushes: Vec<_> = (0..4).map(|_| tokio::spawn(push.send(&guarded))).collect();
    let mut outcomes = Vec::new();
    for push in pushes {
        let answer = push.await.unwrap();
        assert_eq!(answer.headers["pushonce-outcome"], answer.outcome.unwrap().name());
        outcomes.push(answer.outcome.unwrap());
    }
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Ran).count(), 1, "{outcomes:?}");
}

#[tokio::test]
async fn a_service_that_is_no_router_is_sent_to_all_the_same() {
    let service = tower::service_fn(|request: Request<Body>| async move {
        Ok::<_, std::io::Error>(Response::new(request.into_body()))
    });
    let push = Push::json("x");
    assert_eq!(push.send(&service).await.body, push.body());
    let service = tower::ServiceBuilder::new()
        .layer(IdempotentLayer::new("plain", Arc::new(Memory::new())))
        .service(service);
    assert_eq!(push.send(&service).await.outcome, Some(Outcome::Ran));
    assert_eq!(push.send(&service).await.outcome, Some(Outcome::Duplicate));
}

#[tokio::test]
async fn a_manual_clock_lets_a_ttl_pass() {
    let clock = ManualClock::new();
    let store = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    let layer = IdempotentLayer::new("orders", store).ttl(Duration::from_secs(60));
    let app = Router::new().route("/", post(|| async { Ack }).layer(layer));
    let push = Push::empty();
    assert_eq!(push.send(&app).await.outcome, Some(Outcome::Ran));
    clock.advance(Duration::from_secs(59));
    assert_eq!(push.send(&app).await.outcome, Some(Outcome::Duplicate));
    clock.advance(Duration::from_secs(1));
    assert_eq!(push.send(&app).await.outcome, Some(Outcome::Ran));
}

/// A card service that charges once per idempotency key, and always where it is given none.
#[derive(Clone, Default)]
struct Cards {
    charges: Arc<Mutex<Vec<String>>>,
    keys: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Cards {
    fn charge(&self, order: &str, key: Option<String>) {
        if let Some(key) = key {
            let mut keys = self.keys.lock().unwrap();
            let calls = keys.entry(key).or_default();
            *calls += 1;
            if *calls > 1 {
                return;
            }
        }
        self.charges.lock().unwrap().push(order.to_owned());
    }

    fn charged(&self, order: &str) -> usize {
        self.charges.lock().unwrap().iter().filter(|charged| *charged == order).count()
    }
}

fn memory() -> Arc<Chaos> {
    Chaos::new(Arc::new(Memory::with_clock(Arc::new(ManualClock::new()))))
}

fn orders(chaos: &Arc<Chaos>) -> IdempotentLayer {
    IdempotentLayer::new("orders", chaos.clone()).key(attribute("po_id"))
}

fn order() -> Push {
    Push::json(&json!({ "amount": "12.50" })).attribute("po_id", "po-1").attempt(1)
}

async fn keyed(State(cards): State<Cards>, lease: Lease) -> Ack {
    cards.charge("po-1", Some(lease.effect_id("charge")));
    Ack
}

async fn unkeyed(State(cards): State<Cards>) -> Ack {
    cards.charge("po-1", None);
    Ack
}

fn ran_twice_and_knew_it(report: &CrashReport) {
    assert!(report.ran_twice, "{report:?}");
    assert_eq!(report.second.outcome, Some(Outcome::Ran));
    assert_eq!(report.history, Some(History::Unknown { runs: 1 }));
    assert_eq!(report.key.text(), "po-1");
}

#[tokio::test]
async fn a_keyed_sink_is_charged_once_through_the_crash_window() {
    let (cards, chaos) = (Cards::default(), memory());
    let app = Router::new().route("/", post(keyed).layer(orders(&chaos))).with_state(cards.clone());
    ran_twice_and_knew_it(&crash_window(&app, &chaos, order()).await);
    assert_eq!(cards.charged("po-1"), 1);
    assert_eq!(cards.keys.lock().unwrap().values().copied().collect::<Vec<_>>(), [2], "one key, two calls");
    // The second run was recorded, so the crash has healed.
    assert_eq!(order().send(&app).await.outcome, Some(Outcome::Duplicate));
    assert_eq!(cards.charged("po-1"), 1);
}

#[tokio::test]
async fn an_unkeyed_sink_is_shown_to_be_charged_twice() {
    let (cards, chaos) = (Cards::default(), memory());
    let app = Router::new().route("/", post(unkeyed).layer(orders(&chaos))).with_state(cards.clone());
    ran_twice_and_knew_it(&crash_window(&app, &chaos, order()).await);
    assert_eq!(cards.charged("po-1"), 2);
}

#[tokio::test]
async fn at_most_once_is_not_run_again_by_the_crash_window() {
    let (cards, chaos) = (Cards::default(), memory());
    let layer = orders(&chaos).at_most_once();
    let app = Router::new().route("/", post(unkeyed).layer(layer)).with_state(cards.clone());
    let report = crash_window(&app, &chaos, order()).await;
    assert_eq!((report.ran_twice, report.history), (false, None));
    assert_eq!(report.second.outcome, Some(Outcome::Lost));
    assert_eq!(cards.charged("po-1"), 1);
}

#[tokio::test]
async fn the_process_that_dies_tells_nobody_and_tries_nothing_more() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = |outcome| {
        let told = told.clone();
        move |report: &Report<'_>| {
            told.lock().unwrap().push((outcome, report.delivery.and_then(Delivery::attempt)));
            Ok(())
        }
    };
    let chaos = memory();
    let told_of = Outcome::ALL.iter().copied().filter(|outcome| *outcome != Outcome::Unauthorized);
    let layer = told_of.fold(orders(&chaos), |layer, outcome| layer.on(outcome, hook(outcome)));
    let app = Router::new().route("/", post(|| async { Ack }).layer(layer));
    let before = chaos.trips().swaps;
    crash_window(&app, &chaos, order()).await;
    assert_eq!(*told.lock().unwrap(), [(Outcome::Ran, Some(2))]);
    // A claim; then a create that meets it, a take-over, a completion.
    assert_eq!(chaos.trips().swaps - before, 4);
}

#[tokio::test]
async fn the_window_is_that_of_the_layer_and_not_of_a_key_inside_its_handler() {
    let (cards, chaos) = (Cards::default(), memory());
    let store: Arc<dyn Store> = chaos.clone();
    let handler = move |State(cards): State<Cards>| {
        let store = store.clone();
        async move {
            let inner = cards.clone();
            let charge = async move {
                inner.charge("inner", None);
                Ok(())
            };
            let ran = lock(("inner", "po-1"), &store).run(charge).await;
            // Done before by the run that died, which is what an inner key is for.
            if ran.is_err() {
                cards.charge("skipped", None);
            }
            Ok::<_, Failure>(Ack)
        }
    };
    let layer = orders(&chaos).serialize(attribute("po_id"));
    let app = Router::new().route("/", post(handler).layer(layer)).with_state(cards.clone());
    ran_twice_and_knew_it(&crash_window(&app, &chaos, order()).await);
    assert_eq!((cards.charged("inner"), cards.charged("skipped")), (1, 1));
}

#[tokio::test]
async fn a_second_run_that_fails_is_told_of_as_a_run() {
    let chaos = memory();
    let handler = |lease: Lease| async move {
        if lease.history() == History::Fresh { Ok(Ack) } else { Err::<Ack, Failure>("no".into()) }
    };
    let app = Router::new().route("/", post(handler).layer(orders(&chaos)));
    let report = crash_window(&app, &chaos, order()).await;
    assert_eq!((report.ran_twice, report.history), (true, None));
    assert_eq!(report.second.outcome, Some(Outcome::Failed));
}

#[tokio::test]
async fn a_second_delivery_that_cannot_claim_is_no_run() {
    let chaos = memory();
    let faulty = chaos.clone();
    let handler = move || {
        let faulty = faulty.clone();
        async move {
            faulty.always(On::Any, Fault::Refuse);
            Ack
        }
    };
    let app = Router::new().route("/", post(handler).layer(orders(&chaos)));
    let report = crash_window(&app, &chaos, order()).await;
    assert_eq!((report.ran_twice, report.second.outcome), (false, Some(Outcome::Unavailable)));
}

#[tokio::test]
#[should_panic(expected = "answered 500 Internal Server Error (failed)")]
async fn a_handler_that_fails_has_no_crash_window() {
    let chaos = memory();
    let handler = || async { Err::<Ack, Failure>("no".into()) };
    let app = Router::new().route("/", post(handler).layer(orders(&chaos)));
    crash_window(&app, &chaos, order()).await;
}

#[tokio::test]
#[should_panic(expected = "answered 200 OK (ran)")]
async fn a_layer_on_another_store_has_no_crash_window_here() {
    let app = Router::new().route("/", post(|| async { Ack }).layer(orders(&memory())));
    crash_window(&app, &memory(), order()).await;
}

#[tokio::test]
async fn a_lease_may_lapse_for_one_key_alone() {
    let chaos = memory();
    let echo = |PubSub(_): PubSub<Value>| async { Ack };
    let app = Router::new().route("/", post(echo).layer(orders(&chaos).ttl(Duration::from_secs(1))));
    assert_eq!(order().attribute("po_id", "po-2").send(&app).await.outcome, Some(Outcome::Ran));
    crash_window(&app, &chaos, order()).await;
    // Its ttl is shorter than the lease that lapsed, and still it stands.
    for order in [order(), order().attribute("po_id", "po-2")] {
        assert_eq!(order.send(&app).await.outcome, Some(Outcome::Duplicate));
    }
}
