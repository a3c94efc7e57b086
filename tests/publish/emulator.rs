//! `CloudPubSub` against the real emulator: what a subscriber gets, also where the publisher's answer is lost.

use std::env;
use std::time::Duration;

use futures_util::future::join_all;
use pushonce::publish::{CloudPubSub, Message, PublishError, Publisher};
use serde_json::Value;

use crate::proxy::{Proxy, Speech};
use crate::pubsub::PubSub;
use crate::report;

const LIMIT: Duration = Duration::from_secs(30);

/// A topic with an ordered pull subscription.
struct Site {
    pubsub: PubSub,
    topic: String,
}

impl Site {
    async fn new(test: &str) -> Self {
        let pubsub = PubSub::from_env(test).await;
        pubsub.topic("t").await;
        pubsub.pull_in_order_from("s", "t").await;
        Self { topic: pubsub.resource("topics", "t"), pubsub }
    }

    /// The next so many messages.
    async fn pulled(&self, count: usize) -> Vec<Value> {
        let mut pulled = Vec::new();
        while pulled.len() < count {
            pulled.push(self.pubsub.pull("s", LIMIT).await);
        }
        pulled
    }
}

fn ordered(data: &'static str) -> Message {
    Message { data: data.into(), ordering_key: Some("customer-7".to_owned()), ..Message::default() }
}

fn data(message: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::prelude::BASE64_STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn data_attributes_and_ordering_key_arrive_under_the_id_that_was_answered() {
    let site = Site::new("publish-whole").await;
    let mut message = ordered("{\"order\":\"PO-1\"}");
    message.attributes.insert("po_id".to_owned(), "PO-1".to_owned());
    message.attributes.insert("task-type".to_owned(), "charge".to_owned());
    let id = CloudPubSub::from_env().unwrap().publish(&site.topic, &message).await.unwrap();

    let pulled = site.pulled(1).await.remove(0);
    assert_eq!(data(&pulled), "{\"order\":\"PO-1\"}");
    assert_eq!(pulled["attributes"], serde_json::json!({ "po_id": "PO-1", "task-type": "charge" }));
    assert_eq!(pulled["orderingKey"], "customer-7");
    assert_eq!(pulled["messageId"], *id);
    report::test("pubsub-emulator", "data_attributes_and_ordering_key_arrive_under_the_id_that_was_answered");
}

#[tokio::test]
async fn bytes_that_are_no_text_and_attributes_without_data_arrive() {
    let site = Site::new("publish-bytes").await;
    let publisher = CloudPubSub::from_env().unwrap();
    let bytes = Message { data: vec![0, 255, 254, 10].into(), ..Message::default() };
    let bare = Message { attributes: [("only".to_owned(), "this".to_owned())].into(), ..Message::default() };
    publisher.publish(&site.topic, &bytes).await.unwrap();
    publisher.publish(&site.topic, &bare).await.unwrap();
    let mut pulled = site.pulled(2).await;
    pulled.sort_by_key(|message| message.get("data").is_some());
    assert_eq!(pulled[0]["attributes"]["only"], "this");
    assert_eq!(pulled[1]["data"], "AP/+Cg==");
    report::test("pubsub-emulator", "bytes_that_are_no_text_and_attributes_without_data_arrive");
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_refused() {
    let site = Site::new("publish-no-topic").await;
    let elsewhere = site.pubsub.resource("topics", "elsewhere");
    let error = CloudPubSub::from_env().unwrap().publish(&elsewhere, &ordered("x")).await.unwrap_err();
    assert!(matches!(error, PublishError::Refused { .. }), "{error:?}");
    report::test("pubsub-emulator", "a_topic_that_is_not_there_is_refused");
}

/// The subscription is ordered, so that a copy would stand between the two.
#[tokio::test]
async fn an_answer_that_is_lost_leaves_one_message_and_the_key_goes_on() {
    let site = Site::new("publish-answer-lost").await;
    let proxy = Proxy::start(&env::var("PUBSUB_EMULATOR_HOST").unwrap(), Speech::Streams).await.unwrap();
    let publisher = CloudPubSub::builder().emulator(proxy.address()).build().unwrap();
    proxy.cut_after("lost-answer");
    let error = publisher.publish(&site.topic, &ordered("lost-answer")).await.unwrap_err();
    assert!(!proxy.is_waiting(), "the answer was cut off");
    assert!(matches!(error, PublishError::Unanswered { .. }), "{error:?}");
    publisher.publish(&site.topic, &ordered("next")).await.unwrap();

    let pulled = site.pulled(2).await;
    assert_eq!([data(&pulled[0]), data(&pulled[1])], ["lost-answer", "next"]);
    report::test("pubsub-emulator", "an_answer_that_is_lost_leaves_one_message_and_the_key_goes_on");
}

#[tokio::test]
async fn a_request_that_is_lost_leaves_no_message_and_is_not_sent_again_by_itself() {
    let site = Site::new("publish-request-lost").await;
    let proxy = Proxy::start(&env::var("PUBSUB_EMULATOR_HOST").unwrap(), Speech::Streams).await.unwrap();
    let publisher = CloudPubSub::builder().emulator(proxy.address()).build().unwrap();
    publisher.publish(&site.topic, &ordered("first")).await.unwrap();
    proxy.cut_before("lost-request");
    let error = publisher.publish(&site.topic, &ordered("lost-request")).await.unwrap_err();
    assert!(!proxy.is_waiting(), "the request was cut off");
    // It was on its way, so that nobody can know.
    assert!(matches!(error, PublishError::Unanswered { .. }), "{error:?}");
    publisher.publish(&site.topic, &ordered("next")).await.unwrap();

    let pulled = site.pulled(2).await;
    assert_eq!([data(&pulled[0]), data(&pulled[1])], ["first", "next"]);
    report::test(
        "pubsub-emulator",
        "a_request_that_is_lost_leaves_no_message_and_is_not_sent_again_by_itself",
    );
}

#[tokio::test]
async fn many_at_once_share_one_connection_and_each_is_a_message_of_its_own() {
    let site = Site::new("publish-many").await;
    let proxy = Proxy::start(&env::var("PUBSUB_EMULATOR_HOST").unwrap(), Speech::Streams).await.unwrap();
    let publisher = CloudPubSub::builder().emulator(proxy.address()).build().unwrap();
    let messages: Vec<_> =
        (0..50).map(|n: usize| Message { data: n.to_string().into(), ..Message::default() }).collect();
    let published = join_all(messages.iter().map(|message| publisher.publish(&site.topic, message))).await;
    let mut ids: Vec<_> = published.into_iter().map(|id| id.unwrap().to_string()).collect();
    let mut pulled: Vec<_> = site
        .pulled(50)
        .await
        .iter()
        .map(|message| message["messageId"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    pulled.sort();
    assert_eq!(ids, pulled);
    assert_eq!(proxy.connections(), 1);
    report::test("pubsub-emulator", "many_at_once_share_one_connection_and_each_is_a_message_of_its_own");
}
