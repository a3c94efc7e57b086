//! What a push looks like on the wire: the fields that the emulator does not send, and those that may be absent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use pushonce::testing::{Push, PushSimulator, Spelling};
use pushonce::{Delivery, Outcome};
use serde_json::{Value, json};

use crate::world::{World, app, outcomes, secs};

type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A service that fails all pushes and keeps them.
fn keeping() -> (Router, Seen) {
    let seen = Seen::default();
    let kept = seen.clone();
    let route = post(async move |headers: HeaderMap, body: Bytes| {
        kept.lock().unwrap().push((headers, body));
        StatusCode::SERVICE_UNAVAILABLE
    });
    (Router::new().route("/", route), seen)
}

fn envelope(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_counted_push_has_all_fields_and_says_which_attempt_it_is() {
    let (app, seen) = keeping();
    let mut simulator = PushSimulator::new(app)
        .subscription("projects/kestrel/subscriptions/orders-push")
        .retry_policy(secs(10), secs(600))
        .dead_letter_after(2);
    simulator.run_for(secs(3723)).await;
    let push = Push::bytes("x").id("m-1").attribute("po_id", "po-1").ordering_key("po-1").attempt(9);
    simulator.publish(push).run().await;
    let seen = seen.lock().unwrap();
    for (at, attempt) in [1, 2].into_iter().enumerate() {
        let expected = json!({
            "message": {
                "data": "eA==",
                "attributes": { "po_id": "po-1" },
                "orderingKey": "po-1",
                "messageId": "m-1",
                "message_id": "m-1",
                "publishTime": "2026-01-01T01:02:03.000Z",
                "publish_time": "2026-01-01T01:02:03.000Z",
            },
            "deliveryAttempt": attempt,
            "subscription": "projects/kestrel/subscriptions/orders-push",
        });
        assert_eq!(envelope(&seen[at].1), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_policy_no_attempt_is_told_and_what_is_empty_is_absent() {
    let (app, seen) = keeping();
    let mut simulator = PushSimulator::new(app).delivery_limit(3);
    simulator.publish(Push::empty().id("m-1").attempt(4)).run().await;
    for (_, body) in &*seen.lock().unwrap() {
        let envelope = envelope(body);
        let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&envelope), ["message", "subscription"]);
        assert_eq!(names(&envelope["message"]), ["messageId", "message_id", "publishTime", "publish_time"]);
    }
}

#[tokio::test(start_paused = true)]
async fn every_shape_and_spelling_is_one_message_to_the_layer() {
    let world = World::new();
    let route = post(async |delivery: Delivery| {
        assert_eq!((delivery.ordering_key(), delivery.attribute("origin")), (Some("k"), Some("Zürich")));
        assert!(delivery.publish_time().is_some());
        if delivery.attempt() < Some(2) { StatusCode::BAD_GATEWAY } else { StatusCode::OK }
    });
    let mut simulator =
        PushSimulator::new(app(route, world.layer())).retry_policy(secs(10), secs(600)).dead_letter_after(5);
    let push = |id: &str| Push::json("x").id(id).ordering_key("k").attribute("origin", "Zürich");
    simulator.publish(push("both")).publish(push("camel").spelling(Spelling::Camel));
    simulator.publish(push("snake").spelling(Spelling::Snake)).publish(push("unwrapped").unwrapped());
    simulator.publish(push("binary").eventarc()).publish(push("structured").structured());
    let report = simulator.run().await;
    assert!(report.all_acked(), "{report}");
    for id in ["both", "camel", "snake", "unwrapped", "binary", "structured"] {
        assert_eq!(outcomes(&report, id), [Some(Outcome::Failed), Some(Outcome::Ran)], "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_spelling_alone_is_sent_as_asked() {
    let names = |spelling| {
        let body = envelope(&Push::empty().spelling(spelling).body());
        body["message"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(Spelling::Camel), ["messageId", "publishTime"]);
    assert_eq!(names(Spelling::Snake), ["message_id", "publish_time"]);
    assert_eq!(names(Spelling::default()), ["messageId", "message_id", "publishTime", "publish_time"]);
}

#[tokio::test(start_paused = true)]
async fn each_delivery_asks_for_its_own_token() {
    let (app, seen) = keeping();
    let mut made = 0;
    let token = move |push: &Push| {
        made += 1;
        format!("{made}-{}", push.body().len() > 10)
    };
    let mut simulator =
        PushSimulator::new(app).token(token).retry_policy(secs(1), secs(1)).dead_letter_after(2);
    simulator.publish(Push::empty().header("x-test", "1")).publish(Push::empty().unwrapped()).run().await;
    let seen = seen.lock().unwrap();
    let tokens: Vec<_> = seen.iter().map(|(headers, _)| headers["authorization"].to_str().unwrap()).collect();
    assert_eq!(tokens, ["Bearer 1-true", "Bearer 2-false", "Bearer 3-true", "Bearer 4-false"]);
    assert_eq!(seen[0].0["x-test"], "1");
    assert_eq!(seen[1].0["x-goog-pubsub-delivery-attempt"], "1");
    assert_eq!(seen[3].0["x-goog-pubsub-delivery-attempt"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_router_or_fails_is_pushed_to_all_the_same() {
    let service = tower::service_fn(|request: http::Request<axum::body::Body>| async move {
        if request.uri() == "/broken" {
            Err("no route")
        } else {
            Ok(http::Response::new(axum::body::Body::empty()))
        }
    });
    let mut simulator = PushSimulator::new(service).dead_letter_after(2);
    let report = simulator
        .publish(Push::empty().id("m-1"))
        .publish(Push::empty().id("m-2").path("/broken"))
        .run()
        .await;
    assert_eq!(
        (report.acked.as_slice(), report.dead_letters.len()),
        (["m-1".to_owned()].as_slice(), 1),
        "{report}"
    );
    assert!(report.to_string().contains("m-2 #2, broken: no route"), "{report}");

    let panicking = Router::new().route(
        "/",
        post(async || {
            if true {
                panic!("in a bare handler")
            }
        }),
    );
    let report =
        PushSimulator::new(panicking).dead_letter_after(2).publish(Push::empty().id("m-1")).run().await;
    assert!(report.to_string().contains("m-1 #2, broken: the service panicked"), "{report}");
}
