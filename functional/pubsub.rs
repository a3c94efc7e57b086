//! Sets up the Pub/Sub emulator over its REST interface: topics, push subscriptions, messages.

use std::env;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::client;

const PROJECT: &str = "pushonce";

/// The emulator, with names that no other test uses.
#[derive(Debug, Clone)]
pub(crate) struct PubSub {
    at: SocketAddr,
    prefix: String,
}

impl PubSub {
    /// The emulator that `PUBSUB_EMULATOR_HOST` names. Its absence is a failure, never a skipped test.
    pub(crate) async fn from_env(test: &str) -> Self {
        let Ok(host) = env::var("PUBSUB_EMULATOR_HOST") else {
            panic!("PUBSUB_EMULATOR_HOST is not set; run `make functional`")
        };
        let found = tokio::net::lookup_host(&host).await.expect("PUBSUB_EMULATOR_HOST is host:port").next();
        Self { at: found.expect("PUBSUB_EMULATOR_HOST has an address"), prefix: fresh(test) }
    }

    /// A name of this test's own.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Creates a topic.
    pub(crate) async fn topic(&self, name: &str) {
        self.call(Method::PUT, &self.path("topics", name), Some(&json!({}))).await;
    }

    /// Creates a push subscription to `endpoint`.
    pub(crate) async fn push(&self, name: &str, topic: &str, endpoint: &str, options: Push) {
        let mut subscription = options.0;
        subscription["topic"] = self.resource("topics", topic).into();
        subscription["pushConfig"]["pushEndpoint"] = endpoint.into();
        if let Some(topic) = subscription["deadLetterPolicy"]["deadLetterTopic"].as_str() {
            subscription["deadLetterPolicy"]["deadLetterTopic"] = self.resource("topics", topic).into();
        }
        self.call(Method::PUT, &self.path("subscriptions", name), Some(&subscription)).await;
    }

    /// Creates a subscription to pull from, such as that of a dead-letter topic.
    pub(crate) async fn pull_from(&self, name: &str, topic: &str) {
        let subscription = json!({ "topic": self.resource("topics", topic) });
        self.call(Method::PUT, &self.path("subscriptions", name), Some(&subscription)).await;
    }

    /// The same, in the order of the ordering key.
    pub(crate) async fn pull_in_order_from(&self, name: &str, topic: &str) {
        let subscription = json!({ "topic": self.resource("topics", topic), "enableMessageOrdering": true });
        self.call(Method::PUT, &self.path("subscriptions", name), Some(&subscription)).await;
    }

    /// Publishes one message and gives its id.
    pub(crate) async fn publish(&self, topic: &str, message: Message) -> String {
        self.publish_all(topic, vec![message]).await.remove(0)
    }

    /// Publishes messages in one call and gives their ids, in the same order.
    pub(crate) async fn publish_all(&self, topic: &str, messages: Vec<Message>) -> Vec<String> {
        let path = format!("{}:publish", self.path("topics", topic));
        let messages: Vec<_> = messages.into_iter().map(|message| message.0).collect();
        let answer = self.call(Method::POST, &path, Some(&json!({ "messages": messages }))).await;
        let ids = answer["messageIds"].as_array().expect("published messages have ids");
        ids.iter().map(|id| id.as_str().expect("an id is text").to_owned()).collect()
    }

    /// Waits for the next message of a pull subscription and acks it.
    pub(crate) async fn pull(&self, subscription: &str, limit: Duration) -> Value {
        let path = self.path("subscriptions", subscription);
        let pulled = tokio::time::timeout(limit, async {
            loop {
                let wanted = json!({ "maxMessages": 1 });
                let mut answer = self.call(Method::POST, &format!("{path}:pull"), Some(&wanted)).await;
                if let Some(first) = answer["receivedMessages"].get_mut(0) {
                    break first.take();
                }
            }
        });
        let received =
            pulled.await.unwrap_or_else(|_| panic!("no message came to {subscription} in {limit:?}"));
        let ack = json!({ "ackIds": [received["ackId"]] });
        self.call(Method::POST, &format!("{path}:acknowledge"), Some(&ack)).await;
        received["message"].clone()
    }

    /// Ends the pushes of a subscription, and gives what it holds that was not acked and may be delivered now.
    pub(crate) async fn left(&self, subscription: &str) -> Vec<Value> {
        let path = self.path("subscriptions", subscription);
        let silent = json!({ "pushConfig": {} });
        self.call(Method::POST, &format!("{path}:modifyPushConfig"), Some(&silent)).await;
        let wanted = json!({ "maxMessages": 1000, "returnImmediately": true });
        let mut answer = self.call(Method::POST, &format!("{path}:pull"), Some(&wanted)).await;
        match answer["receivedMessages"].take() {
            Value::Array(messages) => messages,
            _ => Vec::new(),
        }
    }

    /// Deletes a subscription: the emulator would push what was not acked for as long as it runs.
    pub(crate) async fn delete(&self, subscription: &str) {
        self.call(Method::DELETE, &self.path("subscriptions", subscription), None).await;
    }

    /// The full name of a topic or a subscription.
    pub(crate) fn resource(&self, kind: &str, name: &str) -> String {
        format!("projects/{PROJECT}/{kind}/{}", self.name(name))
    }

    fn path(&self, kind: &str, name: &str) -> String {
        format!("/v1/{}", self.resource(kind, name))
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) =
            client::json(self.at, method, path, body).await.expect("the Pub/Sub emulator answers");
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }
}

/// A push subscription's options.
#[derive(Debug)]
pub(crate) struct Push(Value);

impl Push {
    /// Wrapped pushes, an ack deadline of 10 s, retries after 1 s.
    pub(crate) fn new() -> Self {
        Self(json!({ "ackDeadlineSeconds": 10 }))
    }

    /// How long the emulator waits for an answer; 5 s at least (10 s at Google).
    pub(crate) fn ack_deadline(mut self, seconds: u32) -> Self {
        self.0["ackDeadlineSeconds"] = seconds.into();
        self
    }

    /// The bounds of the pause before a redelivery.
    pub(crate) fn retry(mut self, minimum: Duration, maximum: Duration) -> Self {
        let seconds = |bound: Duration| format!("{}s", bound.as_secs_f64());
        self.0["retryPolicy"] =
            json!({ "minimumBackoff": seconds(minimum), "maximumBackoff": seconds(maximum) });
        self
    }

    /// After so many attempts, 5 to 100, the message goes to this topic, which must exist.
    pub(crate) fn dead_letter(mut self, topic: &str, attempts: u32) -> Self {
        self.0["deadLetterPolicy"] = json!({ "deadLetterTopic": topic, "maxDeliveryAttempts": attempts });
        self
    }

    /// The body is the message's data, without an envelope; metadata go into headers.
    pub(crate) fn unwrapped(mut self) -> Self {
        self.0["pushConfig"]["noWrapper"] = json!({ "writeMetadata": true });
        self
    }

    /// One message at a time for each ordering key.
    pub(crate) fn ordered(mut self) -> Self {
        self.0["enableMessageOrdering"] = true.into();
        self
    }
}

/// A message to publish.
#[derive(Debug)]
pub(crate) struct Message(Value);

impl Message {
    /// A message with these bytes.
    pub(crate) fn new(data: impl AsRef<[u8]>) -> Self {
        Self(json!({ "data": STANDARD.encode(data) }))
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, name: &str, value: &str) -> Self {
        self.0["attributes"][name] = value.into();
        self
    }

    /// Sets the ordering key.
    pub(crate) fn ordering_key(mut self, key: &str) -> Self {
        self.0["orderingKey"] = key.into();
        self
    }

    /// The push request that Pub/Sub would send for it: for a test that is its own pusher.
    pub(crate) fn request(mut self, path: &str, message_id: &str, attempt: u32) -> Request<Bytes> {
        self.0["messageId"] = message_id.into();
        self.0["publishTime"] = "2026-11-29T12:00:00.000Z".into();
        let subscription = format!("projects/{PROJECT}/subscriptions/by-hand");
        let body = json!({ "message": self.0, "subscription": subscription, "deliveryAttempt": attempt })
            .to_string();
        Request::post(path).header("content-type", "application/json").body(body.into()).expect("a request")
    }
}

/// An id that no other test, process or run has: the emulator may outlive a run.
pub(crate) fn fresh(test: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since_epoch = SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("{test}-{:x}-{process:x}-{next:x}", since_epoch.as_millis())
}
