//! Which key survives a redrive. // F103

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{Router, routing::post};
use base64::Engine as _;
use http::HeaderMap;
use pushonce::dead_letter::{DeadLetters, receiver};
use pushonce::publish::Message;
use pushonce::store::Memory;
use pushonce::testing::Push;
use pushonce::{Ack, Delivery, Failure, IdempotentLayer, KeyRule, Outcome, attribute, message_id};

use crate::world::{TOPIC, Topics, published};

/// The dead letter that Pub/Sub forwarded, under that id.
fn payload(id: &str) -> Delivery {
    let body = include_str!("../payloads/19-dead-letter-forwarded.json").replace("10950000123412341", id);
    Delivery::decode(&HeaderMap::new(), body.into()).unwrap()
}

/// The message as Pub/Sub pushes it to its worker.
fn pushed(message: &Message, id: &str) -> Push {
    let push = Push::bytes(message.data.clone()).id(id);
    message.attributes.iter().fold(push, |push, (name, value)| push.attribute(name, value))
}

/// A message whose first two runs fail halfway is forwarded twice; both dead letters are redriven. Gives
/// the outcomes of the two copies, and how often the work was begun.
async fn redriven(rule: KeyRule) -> ([Option<Outcome>; 2], usize) {
    let store = Arc::new(Memory::new());
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let charge = move || async move {
        if counted.fetch_add(1, Ordering::Relaxed) < 2 { Err(Failure::from("not yet")) } else { Ok(Ack) }
    };
    let layer = IdempotentLayer::new("orders", store.clone()).key(rule);
    let app: Router = Router::new().route("/", post(charge).layer(layer));
    let first = Push::json(&serde_json::json!({ "po": "PO-2026-000417", "qty": 3 }))
        .id("m-1")
        .attribute("po_id", "PO-2026-000417");
    for _ in 0..2 {
        assert_eq!(first.send(&app).await.outcome, Some(Outcome::Failed));
    }

    let letters = DeadLetters::new(store.clone());
    let (topics, publisher) = Topics::new();
    for id in ["10950000123412341", "10950000123412342"] {
        let received = receiver(store.clone()).keep(&payload(id)).await.unwrap();
        published(letters.redrive(&received.entry().id).to(&publisher, TOPIC).await.unwrap());
    }
    let messages = topics.messages();
    let data = base64::engine::general_purpose::STANDARD
        .decode("eyJwbyI6IlBPLTIwMjYtMDAwNDE3IiwicXR5IjozfQ==")
        .unwrap();
    assert!(messages.iter().all(|message| message.data == data && message.attributes.len() == 2));
    let mut outcomes = [None, None];
    for (at, message) in messages.iter().enumerate() {
        outcomes[at] = pushed(message, &format!("m-{}", at + 2)).send(&app).await.outcome;
    }
    (outcomes, runs.load(Ordering::Relaxed) - 2)
}

#[tokio::test]
async fn a_business_key_survives_and_catches_the_second_copy() {
    let outcomes = redriven(attribute("po_id")).await;
    assert_eq!(outcomes, ([Some(Outcome::Ran), Some(Outcome::Duplicate)], 1));
}

#[tokio::test]
async fn under_the_message_id_each_copy_is_a_new_message() {
    let outcomes = redriven(message_id()).await;
    assert_eq!(outcomes, ([Some(Outcome::Ran), Some(Outcome::Ran)], 2));
}
