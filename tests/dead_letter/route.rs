//! The receiver's route: every shape of a push, what it answers, and what it logs.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use http::{Request, StatusCode};
use pushonce::dead_letter::{DeadLetters, receiver};
use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::testing::{Push, Spelling};
use tower::ServiceExt as _;
use tracing::Level;

use crate::log::Log;
use crate::world::{all, forwarded, rejected};

fn world() -> (Router, DeadLetters) {
    let store = Arc::new(Memory::new());
    (receiver(store.clone()).router(), DeadLetters::new(store))
}

async fn sent(app: &Router, body: impl Into<Bytes>) -> StatusCode {
    let request = Request::post("/").body(axum::body::Body::from(body.into())).unwrap();
    app.clone().oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn every_shape_of_a_push_is_one_dead_letter() {
    let shapes: [fn(Push) -> Push; 6] = [
        |push| push,
        |push| push.spelling(Spelling::Camel),
        |push| push.spelling(Spelling::Snake),
        Push::unwrapped,
        Push::eventarc,
        Push::structured,
    ];
    for make in [forwarded as fn(&str) -> Push, |id| rejected("m-1", "po-1", id)] {
        let (app, letters) = world();
        let mut first = None;
        for shape in shapes {
            let push = shape(make("10950000123412341").ordering_key("po-1"));
            let answer = push.send(&app).await;
            assert_eq!((answer.status, answer.acked()), (StatusCode::NO_CONTENT, true), "{push:?}");
            let [entry] = &all(&letters).await[..] else { panic!("{push:?} is another dead letter") };
            assert_eq!(entry, first.get_or_insert(entry.clone()), "{push:?}");
        }
    }
}

// Each alone too: the first of several says what is kept.
#[tokio::test]
async fn every_shape_of_a_push_says_the_same() {
    let shapes: [fn(Push) -> Push; 4] = [|push| push, Push::unwrapped, Push::eventarc, Push::structured];
    let mut first = None;
    for shape in shapes {
        let (app, letters) = world();
        shape(rejected("m-1", "po-1", "10950000123412341").ordering_key("po-1")).send(&app).await;
        let mut entry = all(&letters).await.remove(0);
        entry.received_at = chrono::DateTime::UNIX_EPOCH;
        assert_eq!(&entry, first.get_or_insert(entry.clone()));
    }
}

#[tokio::test]
async fn the_forwarded_message_of_the_field_case_is_kept() {
    let (app, letters) = world();
    assert_eq!(
        sent(&app, include_str!("../payloads/19-dead-letter-forwarded.json")).await,
        StatusCode::NO_CONTENT
    );
    let entry = all(&letters).await.remove(0);
    let subscription = "projects/kestrel-orders-demo/subscriptions/orders-push";
    assert_eq!((entry.subscription.as_deref(), entry.attempts), (Some(subscription), Some(10)));
    assert_eq!(entry.attributes, [("po_id".to_owned(), "PO-2026-000417".to_owned())].into());
}

#[tokio::test]
async fn what_is_no_push_or_cannot_be_named_is_not_acked() {
    let (app, letters) = world();
    for body in ["", "x", "[]", r#"{"message":{}}"#, r#"{"message":{"messageId":"1","data":"%"}}"#] {
        assert_eq!(sent(&app, body).await, StatusCode::BAD_REQUEST, "{body}");
    }
    let bare = forwarded("d-1").unwrapped_without_metadata().send(&app).await;
    assert_eq!(bare.status, StatusCode::BAD_REQUEST);
    assert_eq!(sent(&app, vec![b' '; 16 * 1024 * 1024 + 1]).await, StatusCode::PAYLOAD_TOO_LARGE);
    let large = Push::bytes(vec![b'x'; 10_000_000]).send(&app).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE, "as large as Pub/Sub lets one be");
    assert_eq!(all(&letters).await.len(), 1, "the large one is listed");
    let get = Request::get("/").body(axum::body::Body::empty()).unwrap();
    assert_eq!(app.clone().oneshot(get).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_store_that_is_out_is_answered_503() {
    let chaos = Chaos::new(Arc::new(Memory::new()));
    let app = receiver(chaos.clone()).router();
    chaos.always(On::Any, Fault::Fail);
    assert_eq!(forwarded("d-1").send(&app).await.status, StatusCode::SERVICE_UNAVAILABLE);
    chaos.heal();
    assert_eq!(forwarded("d-1").send(&app).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn it_can_be_nested() {
    let (inner, letters) = world();
    let app = Router::new().nest("/dead-letters", inner);
    assert_eq!(forwarded("d-1").path("/dead-letters").send(&app).await.status, StatusCode::NO_CONTENT);
    assert_eq!(all(&letters).await.len(), 1);
}

#[tokio::test]
async fn each_push_is_one_line_without_payload_or_key() {
    let (log, _guard) = Log::capture();
    let (app, letters) = world();
    rejected("m-1", "vera@x.org", "d-1").send(&app).await;
    let line = log.outcome();
    let id = all(&letters).await.remove(0).id;
    assert_eq!((line.level, line.field("event")), (Level::WARN, "dead-letter-kept"));
    for (field, value) in [
        ("dead_letter", &*id),
        ("source", "handler"),
        ("consumer", "orders"),
        ("message_id", "d-1"),
        ("source_message_id", "m-1"),
        ("subscription", "projects/p/subscriptions/orders-push"),
        ("attempts", "2"),
    ] {
        assert_eq!(line.field(field), value, "{field}");
    }
    assert!(line.field("key").starts_with("orders:#"), "{line:?}");
    assert!(line.field("reason").starts_with("no such article in #"), "{line:?}");

    rejected("m-1", "vera@x.org", "d-2").send(&app).await;
    let copy = log.outcome();
    assert_eq!((copy.level, copy.field("event")), (Level::INFO, "dead-letter-copy"));
    sent(&app, r#"{"message":{"messageId":"1","data":"secret%"}}"#).await;
    let refused = log.outcome();
    assert_eq!((refused.level, refused.field("event")), (Level::ERROR, "dead-letter-not-kept"));
    sent(&app, "secret").await;
    let none = log.outcome();
    assert_eq!((none.level, none.field("event")), (Level::ERROR, "refused"));
    for line in [line, copy, refused, none] {
        let text = format!("{line:?}");
        assert!(!text.contains("vera") && !text.contains("secret") && !text.contains(r#"{"po"#), "{text}");
    }
}
