//! What is refused before a claim, and what a set-up says of itself.

use std::sync::Arc;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use pushonce::store::{Bucket, InvalidBucket, Maintain as _, StoreError, connect};
use pushonce::{RunError, lock};
use serde_json::Value;

use crate::{key, shared};

#[tokio::test]
async fn a_folder_is_refused_before_it_takes_a_claim() {
    let folder = std::env::temp_dir().join(format!("pushonce-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let objects = Arc::new(LocalFileSystem::new_with_prefix(&folder).unwrap());
    let store = Bucket::new(objects, "pushonce").unwrap();
    let refused = store.check().await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("two holders could both win"), "{refused}");

    let ran = lock(key("po-1"), &shared(store)).run(async { Ok(()) }).await;
    assert!(matches!(ran, Err(RunError::Store(StoreError::Refused { .. }))), "{ran:?}");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_folders_address_is_refused_with_the_reason() {
    let refused = connect("file:///var/lib/orders").unwrap_err().to_string();
    assert!(refused.contains("a folder cannot replace") && refused.contains("`sqlite://file`"), "{refused}");
}

#[cfg(feature = "bucket-gcs")]
#[test]
fn an_address_names_bucket_prefix_and_where_it_is() {
    for (url, parts) in [
        ("s3://orders-ledger", ["AmazonS3(orders-ledger)", "prefix: pushonce,"]),
        ("s3://b-1/ledger/eu?region=eu-central-1", ["AmazonS3(b-1)", "prefix: ledger/eu,"]),
        ("s3://b-1/?endpoint=http://127.0.0.1:9000", ["AmazonS3(b-1)", "prefix: pushonce,"]),
        ("gs://b_1/ledger", ["GoogleCloudStorage(b_1)", "prefix: ledger,"]),
        ("gs://b_1?endpoint=http://127.0.0.1:9000", ["GoogleCloudStorage(b_1)", "prefix: pushonce,"]),
    ] {
        let shown = format!("{:?}", connect(url).unwrap_or_else(|error| panic!("{url}: {error:?}")));
        assert!(parts.iter().all(|part| shown.contains(part)), "{url}: {shown}");
    }
}

#[cfg(feature = "bucket-gcs")]
#[test]
fn a_wrong_part_of_an_address_is_named_and_no_secret_is_repeated() {
    for (url, expected) in [
        ("s3:bucket", "two slashes"),
        ("s3://", "the bucket is not one"),
        ("s3://Orders/x", "the bucket is not one"),
        ("gs://a/x", "the bucket is not one"),
        ("s3://b-1/a//b", "is not a prefix"),
        ("s3://b-1/../b", "is not a prefix"),
        ("s3://b-1?region=EU", "the region is not one"),
        ("gs://b_1?region=eu", "the parameter `region` is unknown"),
        ("s3://b-1?endpoint=host:9000", "the endpoint is not one"),
        ("s3://b-1?endpoint=http://u:pa55w0rd@host", "the endpoint is not one"),
        ("gs://b_1?endpoint=https://pa55w0rd@host", "the endpoint is not one"),
        ("s3://u:pa55w0rd@b-1", "no user and no password"),
        ("s3://b-1?secret=pa55w0rd", "the parameter `secret` is unknown"),
    ] {
        let error = connect(url).expect_err(url);
        let error = &error as &dyn std::error::Error;
        let causes = std::iter::successors(Some(error), |&error| error.source());
        let told = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        assert!(told.contains(expected) && !told.contains("pa55w0rd"), "{url}: {told}");
    }
}

#[test]
fn what_cannot_be_a_bucket_is_refused_when_built() {
    let builder = || Bucket::builder(Arc::new(InMemory::new()));
    assert!(matches!(builder().prefix("a//b").build(), Err(InvalidBucket::Prefix { .. })));
    assert!(matches!(builder().prefix("").build(), Err(InvalidBucket::Prefix { .. })));
    let margin = Duration::from_secs(3601);
    assert!(matches!(builder().clock_margin(margin).build(), Err(InvalidBucket::ClockMargin { .. })));
    for limit in [Duration::ZERO, Duration::from_secs(301)] {
        let built = builder().request_timeout(limit).build();
        assert!(matches!(built, Err(InvalidBucket::RequestTimeout { .. })), "{limit:?}");
    }
    let s3 = object_store::aws::AmazonS3Builder::new().with_bucket_name("b");
    let endpoint = s3.clone().with_endpoint("http://user:pa55w0rd@host");
    let refused = Bucket::s3(endpoint).build().unwrap_err();
    assert!(matches!(refused, InvalidBucket::Endpoint), "{refused:?}");
    let keys = s3.with_access_key_id("id").with_secret_access_key("pa55w0rd");
    let shown = format!("{:?}{:?}", Bucket::s3(keys.clone()), Bucket::s3(keys).build().unwrap());
    assert!(!shown.contains("pa55w0rd") && shown.contains("AmazonS3(b)"), "{shown}");
}

/// A rule must leave a record alone for longer than any default keeps it: lease, ttl and a day. A task's record
/// is kept as long as a key under a layer, an idempotency key for a day.
#[test]
fn the_lifecycle_rules_of_the_documentation_are_json_and_outlive_every_record() {
    let least = (pushonce::DEFAULT_LEASE + pushonce::DEFAULT_TTL).as_secs() / (24 * 60 * 60) + 2;
    let s3: Value = serde_json::from_str(include_str!("../../src/store/bucket/lifecycle-s3.json")).unwrap();
    let rule = &s3["Rules"][0];
    assert_eq!((&rule["Status"], &rule["Filter"]["Prefix"]), (&"Enabled".into(), &"pushonce/".into()));
    assert!(rule["Expiration"]["Days"].as_u64().unwrap() >= least, "{rule}");
    let gcs: Value = serde_json::from_str(include_str!("../../src/store/bucket/lifecycle-gcs.json")).unwrap();
    let rule = &gcs["rule"][0];
    assert_eq!(rule["action"]["type"], "Delete");
    assert_eq!(rule["condition"]["matchesPrefix"][0], "pushonce/");
    assert!(rule["condition"]["age"].as_u64().unwrap() >= least, "{rule}");
}
