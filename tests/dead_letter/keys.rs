//! Which key survives a redrive. // F103

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::{Router, routing::post};
use base64::Engine as _;
use http::HeaderMap;
use pushonce::dead_letter::{DeadLetters, receiver};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::record::{Progress, State};
use pushonce::store::{BoxFuture, Memory, Store as _};
use pushonce::testing::{ManualClock, Push};
use pushonce::{
    Ack, DEFAULT_LEASE, Delivery, Failure, IdempotentLayer, KeyRule, Outcome, attribute, message_id,
};

use crate::world::{TOPIC, Topics, order, plain, published};

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

/// A topic for dead letters that answers late: an operator has redriven what it was given by then, and the
/// lease of whoever rejected it is over.
#[derive(Debug)]
struct Late {
    store: Arc<Memory>,
    clock: ManualClock,
    again: Arc<dyn Publisher>,
}

impl Publisher for Late {
    fn publish<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let letter = pushed(message, "d-1").request::<bytes::Bytes>().into_parts();
            let letter = Delivery::decode(&letter.0.headers, letter.1).unwrap();
            let received = receiver(self.store.clone()).keep(&letter).await.unwrap();
            self.clock.advance(DEFAULT_LEASE);
            let letters = plain(self.store.clone());
            published(letters.redrive(&received.entry().id).to(&self.again, TOPIC).await.unwrap());
            Ok("d-1".into())
        })
    }
}

#[tokio::test]
async fn a_lapsed_key_is_reset_so_that_its_old_holder_rejects_nothing_more() {
    let clock = ManualClock::new();
    let store = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    let (topics, again) = Topics::new();
    let dead = Arc::new(Late { store: store.clone(), clock, again });
    let layer = || {
        let layer = IdempotentLayer::new("orders", store.clone()).key(attribute("po_id"));
        layer.dead_letters(dead.clone(), "projects/p/topics/orders-dead")
    };
    let rejects = || async { Failure::dead_letter("no such article") };
    let first: Router = Router::new().route("/", post(rejects).layer(layer()));
    let push = Push::json(&serde_json::json!({})).id("m-1").attribute("po_id", "po-1");
    // It is sent, and its key is not its own any more: what becomes of it is up to whoever has that.
    let answer = push.send(&first).await;
    assert_eq!((answer.status.as_u16(), answer.outcome), (500, Some(Outcome::DeadLettered)), "{answer:?}");
    let stood = store.read(&order("po-1")).await.unwrap().unwrap().record;
    assert_eq!((stood.state, stood.receipt.map(|told| told.progress)), (State::Released, None::<Progress>));

    // So the copy that was sent again runs.
    let second: Router = Router::new().route("/", post(async || Ack).layer(layer()));
    let outcome = pushed(&topics.messages()[0], "m-2").send(&second).await.outcome;
    assert_eq!((outcome, topics.count()), (Some(Outcome::Ran), 1));
}
