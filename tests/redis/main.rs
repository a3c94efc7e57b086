//! The Redis store: what it asks of the server, what it keeps there, and what it makes of servers that
//! fall silent, restart, fail over, move slots, or cannot keep records.
//!
//! `PUSHONCE_TEST_REDIS` names a server that is shared, as `redis://host:port`. Servers that have to
//! be hurt are started by their test; `redis-server` must be installed.
#![cfg(test)]

mod cluster;
mod kept;
mod lines;
mod listed;
mod raced;
mod refused;
mod restarted;

#[path = "../support/fake_redis.rs"]
mod fake_redis;
#[path = "../support/forwarder.rs"]
mod forwarder;
#[path = "../support/redis_server.rs"]
mod redis_server;
#[path = "../support/report.rs"]
mod report;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use pushonce::store::record::{Id, Record};
use pushonce::store::{Redis, RedisBuilder, StoreError, Stored, Swap, Version};
use pushonce::{IntoKey, Key, Store};

/// The address of the shared server.
fn shared() -> String {
    let url = std::env::var("PUSHONCE_TEST_REDIS").ok().filter(|url| !url.is_empty());
    url.expect("set PUSHONCE_TEST_REDIS=redis://host:port of a server that does not evict")
}

/// A prefix that nobody else has.
fn fresh() -> String {
    format!("t-{:016x}", RandomState::new().hash_one(0))
}

fn at(url: impl Into<String>) -> RedisBuilder {
    Redis::builder(url).prefix(fresh())
}

fn store_at(url: impl Into<String>) -> Arc<dyn Store> {
    Arc::new(at(url).build().unwrap())
}

fn key(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

/// A claim as it is first written, kept for a hundred seconds.
fn record(token: u128) -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"holder":"0a","token":"01",
        "lease_us":900000000,"ttl_us":604800000000,"ended":"fresh","written_us":1700000000000000,
        "expires_us":1700000100000000}"#;
    let mut record = Record::decode(document.as_bytes()).unwrap();
    record.token = Id::from_bits(token);
    record
}

#[track_caller]
fn written(swap: Result<Swap, StoreError>) -> Version {
    match swap.unwrap() {
        Swap::Written(version) => version,
        lost => panic!("nothing was written: {lost:?}"),
    }
}

async fn standing(store: &dyn Store, key: &Key) -> Stored {
    store.read(key).await.unwrap().expect("a record stands under the key")
}

/// The name under which a store of that prefix keeps the key.
fn name(prefix: &str, key: &Key) -> String {
    let name = key.stored_name(256);
    format!("{prefix}:{{{}}}{}", &name[..4], &name[4..])
}

/// The next call fails and has, or has not, left a write open; so the one after it can tell more.
#[track_caller]
fn passes(error: &StoreError, may_have_written: bool) {
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(error.may_have_written(), may_have_written, "{error:?}");
}

#[track_caller]
fn is_refused(error: &StoreError, remedy: &str) {
    let text = error.to_string();
    assert!(matches!(error, StoreError::Refused { .. }) && text.contains(remedy), "{error:?}");
}
