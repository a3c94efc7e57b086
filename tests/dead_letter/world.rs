//! What the tests work with: dead letters as they are pushed, a publisher that can fail, keys that were rejected.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pushonce::dead_letter::{DeadLetterEntry, DeadLetters, Redriven, Republished, receiver};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::record::{Id, Progress, Record};
use pushonce::store::{BoxFuture, Maintain, Page, Swap};
use pushonce::testing::Push;
use pushonce::{Delivery, IntoKey, Key, Store, lock};

use crate::site::Site;

/// Where the messages came from, and go again.
pub(crate) const TOPIC: &str = "projects/p/topics/orders";
const DATA: &str = r#"{"po":"po-1"}"#;

/// A message that Pub/Sub forwarded after ten attempts, under this id.
pub(crate) fn forwarded(message_id: &str) -> Push {
    of_source(Push::bytes(DATA).id(message_id), "10")
}

/// A message that the handler of `orders` gave up as `source`, published under this id.
pub(crate) fn rejected(source: &str, key: &str, message_id: &str) -> Push {
    of_source(Push::bytes(DATA).id(message_id), "2")
        .attribute("pushonce-dead-letter-reason", format!("no such article in {key}"))
        .attribute("pushonce-dead-letter-consumer", "orders")
        .attribute("pushonce-dead-letter-key", key)
        .attribute("pushonce-source-message-id", source)
}

fn of_source(push: Push, attempts: &str) -> Push {
    push.attribute("po_id", "po-1")
        .attribute("CloudPubSubDeadLetterSourceDeliveryCount", attempts)
        .attribute("CloudPubSubDeadLetterSourceSubscription", "orders-push")
        .attribute("CloudPubSubDeadLetterSourceSubscriptionProject", "p")
        .attribute("CloudPubSubDeadLetterSourceTopicPublishTime", "2026-01-02T11:22:33.044+00:00")
        .subscription("projects/p/subscriptions/orders-dead-push")
}

pub(crate) fn delivery(push: &Push) -> Delivery {
    let (parts, body) = push.request::<bytes::Bytes>().into_parts();
    Delivery::decode(&parts.headers, body).unwrap()
}

/// Keeps it, and gives its id.
pub(crate) async fn keep(store: &Arc<dyn Store>, push: &Push) -> String {
    receiver(store.clone()).keep(&delivery(push)).await.unwrap().entry().id.clone()
}

/// The dead letters of a site, by connections of their own.
pub(crate) fn letters(site: &Site) -> DeadLetters {
    DeadLetters::new(site.operated())
}

/// The dead letters of a store that has no operator of its own: nothing is listed by it.
pub(crate) fn plain(store: Arc<dyn Store>) -> DeadLetters {
    DeadLetters::new(Arc::new(Plain(store)))
}

/// All that are listed, page by page.
pub(crate) async fn all(letters: &DeadLetters) -> Vec<DeadLetterEntry> {
    let mut page = Page { after: None, limit: 2 };
    let mut all = Vec::new();
    loop {
        let listed = letters.list(&page).await.unwrap();
        all.extend(listed.found.into_iter().map(Result::unwrap));
        match listed.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    all.sort_by(|a, b| a.message_id.cmp(&b.message_id));
    all
}

pub(crate) async fn shown(letters: &DeadLetters, id: &str) -> DeadLetterEntry {
    letters.show(id).await.unwrap().expect("it is kept")
}

#[track_caller]
pub(crate) fn published(redriven: Redriven) -> Republished {
    let Redriven::Published(republished) = redriven else { panic!("not published: {redriven:?}") };
    republished
}

/// A publisher that keeps what is published, and can fail.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    published: Mutex<Vec<(String, Message)>>,
    failures: Mutex<VecDeque<Fails>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fails {
    /// It is not published.
    Unavailable,
    Refused,
    /// It is published, and nobody is told.
    Unanswered,
}

impl Topics {
    pub(crate) fn new() -> (Arc<Self>, Arc<dyn Publisher>) {
        let topics = Arc::new(Self::default());
        (topics.clone(), topics)
    }

    pub(crate) fn fail(&self, how: Fails) {
        self.failures.lock().unwrap().push_back(how);
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.published.lock().unwrap().iter().map(|(_, message)| message.clone()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.published.lock().unwrap().len()
    }

    fn take(&self, topic: &str, message: &Message) -> Arc<str> {
        let mut published = self.published.lock().unwrap();
        published.push((topic.to_owned(), message.clone()));
        format!("again-{}", published.len()).into()
    }
}

impl Publisher for Topics {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            // So that two at once would both be here.
            tokio::task::yield_now().await;
            let what = || "the test says so".to_owned();
            match self.failures.lock().unwrap().pop_front() {
                None => Ok(self.take(topic, message)),
                Some(Fails::Unavailable) => Err(PublishError::Unavailable { what: what(), source: None }),
                Some(Fails::Refused) => Err(PublishError::Refused { what: what(), source: None }),
                Some(Fails::Unanswered) => {
                    self.take(topic, message);
                    Err(PublishError::Unanswered { what: what(), source: None })
                }
            }
        })
    }
}

pub(crate) fn order(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

/// A key of `orders` whose work is recorded.
pub(crate) async fn done(store: &Arc<dyn Store>, text: &str) -> Key {
    let key = order(text);
    lock(&key, store).run(async { Ok(()) }).await.unwrap();
    key
}

/// A key of `orders` whose message was given up.
pub(crate) async fn given_up(store: &Arc<dyn Store>, text: &str) -> Key {
    let key = done(store, text).await;
    let stored = store.read(&key).await.unwrap().unwrap();
    let mut record = Record { token: Id::from_bits(7), ..stored.record };
    record.receipt.as_mut().unwrap().progress = Progress::Rejected;
    assert!(matches!(store.swap(&key, Some(&stored.version), &record).await, Ok(Swap::Written(_))));
    key
}

#[derive(Debug)]
struct Plain(Arc<dyn Store>);

impl Store for Plain {
    fn read<'a>(
        &'a self,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<pushonce::store::Stored>, pushonce::store::StoreError>> {
        self.0.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a pushonce::store::Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, pushonce::store::StoreError>> {
        self.0.swap(key, seen, next)
    }
}

impl Maintain for Plain {
    fn check(&self) -> BoxFuture<'_, Result<(), pushonce::store::StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn purge_expired(&self, _: usize) -> BoxFuture<'_, Result<usize, pushonce::store::StoreError>> {
        Box::pin(async { Ok(0) })
    }

    fn list<'a>(
        &'a self,
        _: &'a pushonce::store::Filter,
        _: &'a Page,
    ) -> BoxFuture<'a, Result<pushonce::store::Listing, pushonce::store::StoreError>> {
        Box::pin(async { Ok(pushonce::store::Listing::default()) })
    }
}
