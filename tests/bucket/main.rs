//! The store on object storage: on a real S3 server, which `PUSHONCE_TEST_S3` names, and on the library's
//! store in memory.
#![cfg(test)]

mod age;
mod faults;
mod lists;
mod local;
mod races;
mod records;
#[cfg(feature = "submit")]
mod submitted;

#[path = "../support/fake_answers.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod fake_answers;
#[path = "../support/report.rs"]
mod report;
#[path = "../support/s3.rs"]
mod s3;

use std::sync::Arc;

use pushonce::store::record::{Id, Record};
use pushonce::store::{Standing, StoreError, Stored, Swap, Version};
use pushonce::{IntoKey, Key, Store};

fn key(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

/// A claim whose lease lapses after a millisecond.
fn record(token: u128) -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"holder":"0a","token":"01",
        "lease_us":1000,"ttl_us":604800000000,"ended":"fresh","written_us":1700000000000000,
        "expires_us":1800000000000001}"#;
    let mut record = Record::decode(document.as_bytes()).unwrap();
    record.token = Id::from_bits(token);
    record
}

fn written(swap: Swap) -> Version {
    let Swap::Written(version) = swap else { panic!("nothing was written: {swap:?}") };
    version
}

/// Lost, and the store does not pretend to know what stands.
fn is_lost(swap: &Swap) -> bool {
    matches!(swap, Swap::Lost(Standing::Unknown))
}

async fn standing(store: &impl Store, key: &Key) -> Stored {
    store.read(key).await.unwrap().expect("a record stands under the key")
}

/// The text of an error and of all its sources.
fn told(error: &StoreError) -> String {
    let error = error as &dyn std::error::Error;
    std::iter::successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

fn shared(store: impl Store) -> Arc<dyn Store> {
    Arc::new(store)
}
