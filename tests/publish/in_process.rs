//! `InProcess`: the push that a service gets, its repetitions, its order, and when nothing waits any more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use pushonce::publish::{InProcess, Message, PublishError, Publisher};
use pushonce::store::Memory;
use pushonce::{Ack, Delivery, IdempotentLayer, Store};
use serde_json::Value;

const TOPIC: &str = "projects/p/topics/orders";

/// What was pushed, and what is answered: the planned statuses first, 200 after them.
#[derive(Clone, Default)]
struct Seen {
    bodies: Arc<Mutex<Vec<Value>>>,
    planned: Arc<Mutex<Vec<u16>>>,
}

impl Seen {
    fn planned(statuses: &[u16]) -> Self {
        Self { planned: Arc::new(Mutex::new(statuses.to_vec())), ..Self::default() }
    }

    fn router(&self, path: &str) -> Router {
        Router::new().route(path, post(seen)).with_state(self.clone())
    }

    fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    /// The data of what was pushed, in the order of the pushes.
    fn texts(&self) -> Vec<String> {
        self.bodies().iter().map(text).collect()
    }
}

async fn seen(State(seen): State<Seen>, body: String) -> StatusCode {
    seen.bodies.lock().unwrap().push(serde_json::from_str(&body).unwrap());
    let mut planned = seen.planned.lock().unwrap();
    if planned.is_empty() { StatusCode::OK } else { StatusCode::from_u16(planned.remove(0)).unwrap() }
}

fn text(body: &Value) -> String {
    use base64::Engine as _;
    let data = body["message"]["data"].as_str().unwrap();
    String::from_utf8(base64::prelude::BASE64_STANDARD.decode(data).unwrap()).unwrap()
}

fn message(data: &'static str) -> Message {
    Message { data: data.into(), ..Message::default() }
}

fn ordered(data: &'static str, key: &str) -> Message {
    Message { ordering_key: Some(key.to_owned()), ..message(data) }
}

#[tokio::test]
async fn a_message_is_pushed_as_pubsub_pushes_it() {
    let seen = Seen::default();
    let publisher = InProcess::new(seen.router("/push")).path("/push");
    let mut wanted = ordered("hello", "customer-7");
    wanted.attributes.insert("po_id".to_owned(), "PO-1".to_owned());
    let id = publisher.publish(TOPIC, &wanted).await.unwrap();
    publisher.idle().await;

    let bodies = seen.bodies();
    let [body] = bodies.as_slice() else { panic!("{bodies:?}") };
    let published = &body["message"]["publishTime"];
    assert!(chrono::DateTime::parse_from_rfc3339(published.as_str().unwrap()).is_ok(), "{published}");
    let expected = serde_json::json!({
        "message": {
            "data": "aGVsbG8=",
            "attributes": { "po_id": "PO-1" },
            "messageId": &*id, "message_id": &*id,
            "publishTime": published, "publish_time": published,
            "orderingKey": "customer-7",
        },
        "subscription": "projects/p/subscriptions/orders",
        "deliveryAttempt": 1,
    });
    assert_eq!(*body, expected);
}

#[tokio::test]
async fn what_is_empty_is_left_out() {
    let seen = Seen::default();
    let publisher = InProcess::new(seen.router("/"));
    let attributes = [("only".to_owned(), "this".to_owned())].into();
    publisher.publish(TOPIC, &Message { attributes, ..Message::default() }).await.unwrap();
    publisher.publish(TOPIC, &message("data")).await.unwrap();
    publisher.idle().await;

    let bodies = seen.bodies();
    let has = |name: &str| bodies.iter().filter(|body| body["message"].get(name).is_some()).count();
    assert_eq!((bodies.len(), has("data"), has("attributes"), has("orderingKey")), (2, 1, 1, 0));
}

#[tokio::test]
async fn two_messages_have_two_ids() {
    let publisher = InProcess::new(Seen::default().router("/"));
    let first = publisher.publish(TOPIC, &message("same")).await.unwrap();
    let second = publisher.publish(TOPIC, &message("same")).await.unwrap();
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_push_is_repeated_until_one_of_pubsubs_acks() {
    for ack in [102, 200, 201, 202, 204] {
        let seen = Seen::planned(&[500, 503, 404, 302, 206, ack]);
        let publisher = InProcess::new(seen.router("/"));
        let id = publisher.publish(TOPIC, &message("again")).await.unwrap();
        publisher.idle().await;

        let bodies = seen.bodies();
        let attempts: Vec<_> = bodies.iter().map(|body| body["deliveryAttempt"].as_u64().unwrap()).collect();
        assert_eq!(attempts, [1, 2, 3, 4, 5, 6], "{ack}");
        assert!(bodies.iter().all(|body| body["message"]["messageId"] == *id), "{ack}: the id stays");
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_that_hangs_is_hung_up_on_and_sent_again() {
    let calls = Arc::new(Mutex::new(0));
    let counted = calls.clone();
    let hangs_once = post(async move || {
        *counted.lock().unwrap() += 1;
        if *counted.lock().unwrap() == 1 {
            std::future::pending::<()>().await;
        }
    });
    let publisher = InProcess::new(Router::new().route("/", hangs_once)).ack_deadline(Duration::from_secs(5));
    publisher.publish(TOPIC, &message("slow")).await.unwrap();
    publisher.idle().await;
    assert_eq!(*calls.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_does_not_end_the_deliveries() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let counted = calls.clone();
    let panics_once = post(async move |body: String| {
        let mut calls = counted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        calls.push(text(&serde_json::from_str(&body).unwrap()));
        assert!(calls.len() > 1, "the first call panics");
    });
    let publisher = InProcess::new(Router::new().route("/", panics_once));
    publisher.publish(TOPIC, &ordered("first", "a")).await.unwrap();
    publisher.publish(TOPIC, &ordered("second", "a")).await.unwrap();
    publisher.idle().await;
    let calls = calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert_eq!(*calls, ["first", "first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_nobody_acks_is_given_up_and_the_next_of_its_order_goes_on() {
    let seen = Seen::planned(&[500, 500, 500]);
    let publisher = InProcess::new(seen.router("/")).attempts(3);
    publisher.publish(TOPIC, &ordered("poison", "a")).await.unwrap();
    publisher.publish(TOPIC, &ordered("next", "a")).await.unwrap();
    publisher.idle().await;
    assert_eq!(seen.texts(), ["poison", "poison", "poison", "next"]);
}

#[tokio::test(start_paused = true)]
async fn messages_of_one_ordering_key_go_one_at_a_time_in_the_order_of_their_publishes() {
    let seen = Seen::planned(&[500, 500]);
    let publisher = InProcess::new(seen.router("/"));
    for data in ["1", "2", "3"] {
        publisher.publish(TOPIC, &ordered(data, "a")).await.unwrap();
    }
    publisher.idle().await;
    assert_eq!(seen.texts(), ["1", "1", "1", "2", "3"]);
    // Once the line is empty the next message starts a new one.
    publisher.publish(TOPIC, &ordered("4", "a")).await.unwrap();
    publisher.idle().await;
    assert_eq!(seen.texts().last().unwrap(), "4");
}

#[tokio::test(start_paused = true)]
async fn another_key_and_another_topic_do_not_wait() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let ended = Arc::new(Mutex::new(Vec::new()));
    let (opened, noted) = (gate.clone(), ended.clone());
    let slow_first = post(async move |body: String| {
        let text = text(&serde_json::from_str(&body).unwrap());
        if text == "held" {
            drop(opened.acquire().await);
        }
        noted.lock().unwrap().push(text);
    });
    let publisher =
        InProcess::new(Router::new().route("/", slow_first)).ack_deadline(Duration::from_secs(3600));
    publisher.publish(TOPIC, &ordered("held", "a")).await.unwrap();
    publisher.publish(TOPIC, &ordered("behind", "a")).await.unwrap();
    publisher.publish(TOPIC, &ordered("other key", "b")).await.unwrap();
    publisher.publish("projects/p/topics/other", &ordered("other topic", "a")).await.unwrap();
    publisher.publish(TOPIC, &message("no key")).await.unwrap();
    while ended.lock().unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(!ended.lock().unwrap().contains(&"behind".to_owned()));
    gate.add_permits(1);
    publisher.idle().await;
    assert_eq!(ended.lock().unwrap()[3..], ["held", "behind"]);
}

#[tokio::test]
async fn a_service_that_publishes_is_connected_after_the_publisher_is_made() {
    let dead = Seen::default();
    let publisher = InProcess::unconnected().topic("projects/p/topics/dead", "/dead");
    // It waits for the service, which is none yet.
    publisher.publish(TOPIC, &message("early")).await.unwrap();
    let onward = publisher.clone();
    let forwards = post(async move |body: String| {
        let text = text(&serde_json::from_str(&body).unwrap());
        let message = Message { data: text.into(), ..Message::default() };
        onward.publish("projects/p/topics/dead", &message).await.unwrap();
    });
    publisher.connect(dead.router("/dead").route("/", forwards));
    publisher.idle().await;
    assert_eq!(dead.texts(), ["early"]);
}

#[tokio::test]
async fn the_layer_reads_the_push() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let read = Arc::new(Mutex::new(Vec::new()));
    let noted = read.clone();
    let handler = post(async move |delivery: Delivery| {
        noted.lock().unwrap().push((
            delivery.message_id().unwrap().to_owned(),
            delivery.attribute("kind").unwrap().to_owned(),
            delivery.data().unwrap().to_vec(),
        ));
        Ack
    });
    let router = Router::new().route("/", handler.layer(IdempotentLayer::new("orders", store)));
    let publisher = InProcess::new(router);
    let attributes = [("kind".to_owned(), "charge".to_owned())].into();
    let id = publisher.publish(TOPIC, &Message { attributes, ..message("{}") }).await.unwrap();
    publisher.idle().await;
    assert_eq!(*read.lock().unwrap(), [(id.to_string(), "charge".to_owned(), b"{}".to_vec())]);
}

#[tokio::test]
async fn what_pubsub_would_refuse_is_refused_and_not_pushed() {
    let seen = Seen::default();
    let publisher = InProcess::new(seen.router("/"));
    let refused = publisher.publish("orders", &message("x")).await;
    assert!(matches!(refused, Err(PublishError::Refused { .. })), "{refused:?}");
    let refused = publisher.publish(TOPIC, &Message::default()).await;
    assert!(matches!(refused, Err(PublishError::Refused { .. })), "{refused:?}");
    let refused = publisher.clone().path("no path").publish(TOPIC, &message("x")).await;
    assert!(matches!(refused, Err(PublishError::Refused { .. })), "{refused:?}");
    publisher.idle().await;
    assert!(seen.bodies().is_empty());
}
