//! What both the processes that are killed and those that go on do: submit one key, and work on its task.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::Request;
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::BoxFuture;
use pushonce::submit::{SubmitError, Submitted, Submitter, Tasks};
use pushonce::testing::Push;
use pushonce::{Ack, Failure, IdempotentLayer, Lease, Store};
use serde_json::{Value, json};

use crate::client;
use crate::site::Site;
use crate::supplier::{Effect, Supplier};

/// Who dies while it creates a task keeps others of its key out for so long.
pub(crate) const CREATING_LEASE: Duration = Duration::from_secs(1);
pub(crate) const CONSUMER: &str = "charge";
/// The name of the topic that is a supplier.
pub(crate) const TOPIC: &str = "projects/pushonce/topics/tasks";
const PUBLISHED: &str = "/published";
const EFFECTS: &str = "/effects";

/// Submits the same task under the same key, whoever calls it.
pub(crate) async fn submit(
    store: Arc<dyn Store>,
    publisher: Arc<dyn Publisher>,
    topic: &str,
    key: &str,
) -> Result<Submitted, SubmitError> {
    let submitter = Submitter::new(store, publisher, topic).creating_lease(CREATING_LEASE);
    submitter.submit("charge", &json!({ "order": key })).idempotency_key(key).send().await
}

/// The worker: one effect for each run, with the id that a supplier knows repeats by.
pub(crate) fn worker(store: Arc<dyn Store>, supplier: SocketAddr) -> Router {
    let layer = IdempotentLayer::new(CONSUMER, store.clone()).follow(Tasks::new(store));
    let handler = move |lease: Lease| async move {
        let effect = Request::post(EFFECTS).header("idempotency-key", lease.effect_id("charge"));
        let answer = client::send(supplier, effect.body(Bytes::new())?).await?;
        if !answer.status().is_success() {
            return Err(Failure::from("the supplier refused"));
        }
        Ok::<_, Failure>(Ack)
    };
    Router::new().route("/", post(handler).layer(layer))
}

/// When a key that is held by now is free, were its holder to die.
pub(crate) fn free(site: &Site) -> Instant {
    // An age may be told shorter than it is: the time of an object is in whole seconds.
    let coarse = if matches!(site.name, "s3" | "fake-gcs") { 2 } else { 0 };
    Instant::now() + CREATING_LEASE + Duration::from_secs(coarse)
}

/// Where a URL of the supplier leads.
pub(crate) fn address(url: &str) -> SocketAddr {
    url.parse::<http::Uri>().unwrap().authority().unwrap().as_str().parse().unwrap()
}

/// A topic that outlives who publishes to it: the supplier keeps what is published, too.
#[derive(Debug)]
pub(crate) struct Topic(pub(crate) SocketAddr);

impl Publisher for Topic {
    fn publish<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let data = std::str::from_utf8(&message.data).unwrap();
            let body = json!({ "data": data, "attributes": message.attributes }).to_string();
            let request = Request::post(PUBLISHED).body(body.into()).unwrap();
            match client::send(self.0, request).await {
                Ok(_) => Ok("published".into()),
                Err(error) => {
                    Err(PublishError::Unanswered { what: "the topic".to_owned(), source: Some(error) })
                }
            }
        })
    }
}

/// The pushes of what was published so far, each of a message of its own.
pub(crate) fn pushes(supplier: &Supplier) -> Vec<Push> {
    let is_message = |effect: &Effect| effect.path == PUBLISHED;
    let push = |(number, message): (usize, Effect)| {
        let message: Value = serde_json::from_slice(&message.body).unwrap();
        let push = Push::bytes(message["data"].as_str().unwrap().to_owned()).id(format!("m-{number}"));
        let attributes = message["attributes"].as_object().unwrap().clone();
        attributes.into_iter().fold(push, |push, (name, value)| push.attribute(name, value.as_str().unwrap()))
    };
    supplier.effects().into_iter().filter(is_message).enumerate().map(push).collect()
}

/// The ids of the effects so far, each as often as it was asked for.
pub(crate) fn effects(supplier: &Supplier) -> Vec<String> {
    let effects = supplier.effects();
    effects.iter().filter(|effect| effect.path == EFFECTS).map(|effect| effect.id().to_owned()).collect()
}
