//! What is written, under which name, and on which condition.

use std::collections::HashSet;

use http::Method;
use object_store::{Attribute, ObjectStore as _, ObjectStoreExt as _};
use pushonce::store::StoreError;
use pushonce::{Consumer, IntoKey as _, Key, Store as _, lock};
use serde_json::{Value, json};

use crate::fake_answers::FakeAnswers;
use crate::s3::{S3, name};
use crate::{is_lost, key, record, report, shared, standing, written};

#[tokio::test]
async fn a_key_is_one_readable_object_at_the_promised_place() {
    let s3 = S3::start().await;
    lock(key("po-1"), &shared(s3.store())).run(async { Ok(()) }).await.unwrap();
    let place = name(&s3.prefix, &key("po-1"));
    let object = s3.raw().get(&place).await.unwrap();
    let attribute = |name| object.attributes.get(&name).map(|value| value.as_ref().to_owned());
    assert_eq!(attribute(Attribute::ContentType).as_deref(), Some("application/json"));
    assert_eq!(attribute(Attribute::CacheControl).as_deref(), Some("no-store"));
    let document: Value = serde_json::from_slice(&object.bytes().await.unwrap()).unwrap();
    assert_eq!(document["key"], json!("orders:po-1"));
    let hash = place.filename().unwrap().trim_end_matches(".json").to_owned();
    assert_eq!(document["key_hash"], json!(format!("sha256:{hash}")));
    assert_eq!(document["state"], json!("done"));
    for (shown, counted) in [("written_at", "written_us"), ("expires_at", "expires_us")] {
        let time = chrono::DateTime::parse_from_rfc3339(document[shown].as_str().unwrap()).unwrap();
        assert_eq!(Some(time.timestamp_micros()), document[counted].as_i64(), "{shown}");
    }
    report::test("s3", "a_key_is_one_readable_object_at_the_promised_place");
}

#[tokio::test]
async fn a_record_is_created_once_and_swapped_on_its_version_only() {
    let s3 = S3::start().await;
    let (store, key) = (s3.store(), key("po-1"));
    assert!(store.read(&key).await.unwrap().is_none());
    let first = written(store.swap(&key, None, &record(1)).await.unwrap());
    let stored = standing(&store, &key).await;
    assert_eq!((stored.record, &stored.version), (record(1), &first));
    assert!(is_lost(&store.swap(&key, None, &record(2)).await.unwrap()));
    let second = written(store.swap(&key, Some(&first), &record(3)).await.unwrap());
    assert!(is_lost(&store.swap(&key, Some(&first), &record(4)).await.unwrap()));
    let stored = standing(&store, &key).await;
    assert_eq!((stored.record, &stored.version), (record(3), &second));

    // Of an object that is gone, and of one that was made anew.
    s3.delete(&key).await;
    assert!(is_lost(&store.swap(&key, Some(&second), &record(5)).await.unwrap()));
    assert!(store.read(&key).await.unwrap().is_none());
    let _ = written(store.swap(&key, None, &record(6)).await.unwrap());
    assert!(is_lost(&store.swap(&key, Some(&second), &record(7)).await.unwrap()));
    assert_eq!(standing(&store, &key).await.record, record(6));
    report::test("s3", "a_record_is_created_once_and_swapped_on_its_version_only");
}

#[tokio::test]
async fn a_call_is_one_request_and_a_message_costs_two_trips() {
    let s3 = S3::start().await;
    let wire = FakeAnswers::before(&s3.host).await;
    let store = shared(s3.builder(&wire.host()).build().unwrap());
    let once = || lock(key("po-1"), &store).run(async { Ok(()) });
    let methods = || wire.take().into_iter().map(|(method, _)| method).collect::<Vec<_>>();
    once().await.unwrap();
    assert_eq!(methods(), [Method::PUT, Method::PUT], "a first message");
    once().await.unwrap_err();
    assert_eq!(methods(), [Method::PUT, Method::GET], "a duplicate");
    let fails = async { Err::<(), _>("no".into()) };
    lock(key("po-2"), &store).run(fails).await.unwrap_err();
    assert_eq!(methods(), [Method::PUT, Method::PUT], "a failure");
    report::test("s3", "a_call_is_one_request_and_a_message_costs_two_trips");
}

// F68
#[tokio::test]
async fn every_key_round_trips_and_distinct_keys_stay_distinct() {
    let s3 = S3::start().await;
    let store = s3.store();
    let long = "x".repeat(1999);
    let texts = [
        "k".repeat(1500),
        "k".repeat(1501),
        "\u{20ac}".repeat(600),
        "__x__".to_owned(),
        "a/b".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        "nul\0".to_owned(),
        "nul".to_owned(),
        "a".to_owned(),
        "A".to_owned(),
        "a ".to_owned(),
        "\u{e9}".to_owned(),
        "e\u{301}".to_owned(),
        format!("{long}a"),
        format!("{long}b"),
        "z".repeat(300_000),
    ];
    let consumers = ["orders", "Orders", "..", ".", "check.json"];
    let keys: Vec<Key> = texts
        .iter()
        .map(|text| ("orders", text).into_key().unwrap())
        .chain(consumers[1..].iter().map(|name| Key::new(Consumer::new(name).unwrap(), "a").unwrap()))
        .collect();
    for (token, key) in (1..).zip(&keys) {
        let _ = written(store.swap(key, None, &record(token)).await.unwrap());
    }
    for (token, key) in (1..).zip(&keys) {
        assert_eq!(standing(&store, key).await.record, record(token));
    }
    let names: HashSet<_> = keys.iter().map(|key| name(&s3.prefix, key).to_string()).collect();
    assert_eq!(names.len(), keys.len());
    report::test("s3", "every_key_round_trips_and_distinct_keys_stay_distinct");
}

#[tokio::test]
async fn what_is_not_the_keys_record_is_corrupt_and_never_absent() {
    let s3 = S3::start().await;
    let store = s3.store();
    let _ = written(store.swap(&key("other"), None, &record(1)).await.unwrap());
    let raw = s3.raw();
    let others = raw.get(&name(&s3.prefix, &key("other"))).await.unwrap().bytes().await.unwrap();
    for body in ["", "{}", "no JSON", std::str::from_utf8(&others).unwrap()] {
        raw.put(&name(&s3.prefix, &key("po-1")), body.to_owned().into()).await.unwrap();
        let read = store.read(&key("po-1")).await;
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{body}: {read:?}");
        assert!(is_lost(&store.swap(&key("po-1"), None, &record(2)).await.unwrap()), "{body}");
    }
    raw.put(&name(&s3.prefix, &key("po-1")), r#"{"format":200}"#.into()).await.unwrap();
    let read = store.read(&key("po-1")).await;
    assert!(matches!(read, Err(StoreError::NewerFormat { .. })), "{read:?}");
    let whole = raw.get_opts(&name(&s3.prefix, &key("po-1")), object_store::GetOptions::default()).await;
    assert_eq!(whole.unwrap().bytes().await.unwrap(), r#"{"format":200}"#);
    report::test("s3", "what_is_not_the_keys_record_is_corrupt_and_never_absent");
}
