//! What an operator sees: pages of records, narrowed by consumer and state.

use std::sync::Arc;

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use pushonce::store::record::{Record, State};
use pushonce::store::{Bucket, Filter, Maintain, Page, StoreError};
use pushonce::{IntoKey as _, Key, Store as _};

use crate::s3::{S3, name};
use crate::{record, report, written};

/// Ten of one consumer, every third of them done, and three of others, of which one begins like the first.
async fn filled(store: &Bucket) -> Vec<Key> {
    let orders = (0..10).map(|at| ("orders", at.to_string()));
    let others = ["orders-2", "..", "mail"].map(|consumer| (consumer, "a".to_owned()));
    let keys: Vec<Key> = orders.chain(others).map(|key| key.into_key().unwrap()).collect();
    for (at, key) in keys.iter().enumerate() {
        let state = if at % 3 == 0 { State::Done } else { State::Claimed };
        let _ = written(store.swap(key, None, &Record { state, ..record(1) }).await.unwrap());
    }
    keys
}

/// All that the filter takes, by pages of that many objects, sorted.
async fn pages(store: &Bucket, filter: &Filter, limit: usize) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let listing = store.list(filter, &Page { after, limit }).await.unwrap();
        assert!(listing.found.len() <= limit, "{listing:?}");
        all.extend(listing.found.into_iter().map(|found| {
            assert_eq!(found.stored.unwrap().record.token, record(1).token);
            found.key
        }));
        after = listing.next;
        if after.is_none() {
            all.sort();
            return all;
        }
    }
}

async fn lists(store: &Bucket) {
    let keys = filled(store).await;
    let shown = |takes: &dyn Fn(usize, &Key) -> bool| {
        let taken = keys.iter().enumerate().filter(|(at, key)| takes(*at, key));
        let mut shown: Vec<_> = taken.map(|(_, key)| key.to_string()).collect();
        shown.sort();
        shown
    };
    let prefix = |prefix: &str| Filter { prefix: prefix.to_owned(), ..Filter::default() };
    for limit in [1, 4, 13, 100] {
        assert_eq!(pages(store, &Filter::default(), limit).await, shown(&|_, _| true), "{limit}");
        let orders = shown(&|_, key| key.consumer().as_str() == "orders");
        assert_eq!(pages(store, &prefix("orders:"), limit).await, orders, "{limit}");
    }
    assert_eq!(pages(store, &prefix("orders:7"), 4).await, ["orders:7"]);
    assert_eq!(pages(store, &prefix("..:"), 4).await, ["..:a"]);
    assert_eq!(pages(store, &prefix("order"), 4).await, shown(&|at, _| at < 11));
    let done = Filter { state: Some(State::Done), ..prefix("orders:") };
    assert_eq!(pages(store, &done, 4).await, shown(&|at, _| at < 10 && at % 3 == 0));
    assert!(pages(store, &prefix("nobody:"), 4).await.is_empty());
}

#[tokio::test]
async fn pages_bring_every_record_once_and_a_consumer_is_a_folder() {
    let s3 = S3::start().await;
    lists(&s3.store()).await;
    report::test("s3", "pages_bring_every_record_once_and_a_consumer_is_a_folder");
}

#[tokio::test]
async fn pages_in_memory_are_the_same_and_what_is_no_record_hides_no_other() {
    let objects = Arc::new(InMemory::new());
    let store = Bucket::new(objects.clone(), "lists").unwrap();
    lists(&store).await;
    // Not a key's, so not looked at; and a key's that cannot be understood.
    objects.put(&Path::from("lists/orders/readme.txt"), "hello".into()).await.unwrap();
    objects.put(&Path::from("elsewhere/orders/0.json"), "{}".into()).await.unwrap();
    let broken = name("lists", &("orders", "broken").into_key().unwrap());
    objects.put(&broken, "no record".into()).await.unwrap();
    let listing = store.list(&Filter::default(), &Page::default()).await.unwrap();
    assert_eq!(listing.found.len(), 14);
    let unread: Vec<_> = listing.found.iter().filter(|found| found.stored.is_err()).collect();
    assert_eq!(unread.len(), 1, "{unread:?}");
    assert_eq!(unread[0].key, broken.as_ref());
    assert!(matches!(unread[0].stored, Err(StoreError::Corrupt { .. })));
    report::test("object-store-memory", "pages_in_memory_are_the_same_and_what_is_no_record_hides_no_other");
}

#[tokio::test]
async fn a_purge_is_refused_and_says_what_collects() {
    let store = Bucket::new(Arc::new(InMemory::new()), "purge").unwrap();
    let keys = filled(&store).await;
    let refused = store.purge_expired(100).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("lifecycle rule"), "{refused}");
    for key in &keys {
        assert!(store.read(key).await.unwrap().is_some(), "{key}");
    }
    report::test("object-store-memory", "a_purge_is_refused_and_says_what_collects");
}
