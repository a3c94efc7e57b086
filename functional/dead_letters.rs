//! Dead letters: what a handler rejects at once looks as what Pub/Sub gives up by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use http::StatusCode;
use pushonce::publish::{self, PublishError, Publisher};
use pushonce::store::BoxFuture;
use pushonce::store::record::{Progress, State};
use pushonce::{Failure, IdempotentLayer};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::pubsub::{Message, PubSub, Push};
use crate::stage::{SOON, Stage, key, scenarios};

scenarios! {
    on both: ;
    on one:
        a_handler_dead_letters_as_pub_sub_itself_does
}

/// Publishes to the emulator over its REST interface.
#[derive(Debug)]
struct Rest(PubSub);

impl Publisher for Rest {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a publish::Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let sent = message
                .attributes
                .iter()
                .fold(Message::new(&message.data), |sent, (name, value)| sent.attribute(name, value));
            let sent = match &message.ordering_key {
                Some(key) => sent.ordering_key(key),
                None => sent,
            };
            Ok(self.0.publish(topic, sent).await.into())
        })
    }
}

/// Serves two routes until the scenario is over: one whose handler rejects, and one that fails for ever.
async fn serve(stage: &Stage) -> String {
    let publisher: Arc<dyn Publisher> = Arc::new(Rest(stage.pubsub.clone()));
    let layer = IdempotentLayer::new("messages", stage.store.clone()).dead_letters(publisher, "dead");
    let rejects = post(async || Failure::dead_letter("no such order")).layer(layer);
    let app = Router::new()
        .route("/rejects", rejects)
        .route("/fails", post(async || StatusCode::INTERNAL_SERVER_ERROR));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{at}")
}

async fn a_handler_dead_letters_as_pub_sub_itself_does(stage: &Stage) {
    let url = serve(stage).await;
    for topic in ["orders", "dead"] {
        stage.pubsub.topic(topic).await;
    }
    stage.pubsub.pull_from("dead-pull", "dead").await;
    // One message for both, so that what differs is only who gave it up. It has no ordering key, which the
    // emulator leaves out of what it pushes.
    for (subscription, path) in [("by-policy", "/fails"), ("by-handler", "/rejects")] {
        let options = Push::new().dead_letter("dead", 5);
        stage.subscribe(subscription, "orders", &format!("{url}{path}"), options).await;
    }
    let message = Message::new(b"\xff order").attribute("po_id", "po-1");
    let id = stage.pubsub.publish("orders", message).await;

    let one = stage.pubsub.pull("dead-pull", SOON).await;
    let other = stage.pubsub.pull("dead-pull", SOON).await;
    let of_handler = |letter: &Value| letter["attributes"].get("pushonce-dead-letter-reason").is_some();
    let (handlers, policys) = if of_handler(&one) { (one, other) } else { (other, one) };
    assert!(!of_handler(&policys), "{policys}");
    assert_eq!(handlers["data"], policys["data"]);
    assert!(handlers["data"].is_string(), "{handlers}");
    let (mut ours, mut theirs) = (attributes(&handlers), attributes(&policys));
    for (name, value) in [
        ("pushonce-dead-letter-reason", "no such order"),
        ("pushonce-dead-letter-consumer", "messages"),
        ("pushonce-dead-letter-key", &id),
        ("pushonce-source-message-id", &id),
    ] {
        assert_eq!(ours.remove(name).as_deref(), Some(value), "{name}");
    }
    for (name, of_ours, of_theirs) in [
        ("CloudPubSubDeadLetterSourceDeliveryCount", "1".to_owned(), "5".to_owned()),
        (
            "CloudPubSubDeadLetterSourceSubscription",
            stage.pubsub.name("by-handler"),
            stage.pubsub.name("by-policy"),
        ),
    ] {
        assert_eq!(ours.remove(name), Some(of_ours), "{name}");
        assert_eq!(theirs.remove(name), Some(of_theirs), "{name}");
    }
    // Pub/Sub writes the zone as `+00:00`, and the emulator as `Z`; it is the same instant, to the millisecond.
    let name = "CloudPubSubDeadLetterSourceTopicPublishTime";
    let (ours_at, theirs_at) = (ours.remove(name).expect(name), theirs.remove(name).expect(name));
    assert_eq!(ours_at.replace("+00:00", "Z"), theirs_at);
    // All else is the same.
    assert_eq!(ours, theirs);
    let record = stage.await_state(&key("messages", &id), State::Done).await.record;
    assert_eq!(record.receipt.map(|receipt| receipt.progress), Some(Progress::Rejected));
}

fn attributes(message: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(message["attributes"].clone()).expect("attributes are texts")
}
