//! No input to the decoder panics, and the rules hold for whatever decodes.

use std::cell::Cell;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use pushonce::pubsub::{attribute, json_pointer, message_id};
use serde_json::{Value, json};

use super::Push;

const CASES: u32 = 4000;
const VALID: [&str; 10] = [
    "01-gcs-object-finalize.json",
    "02-gcs-object-delete-no-data.json",
    "04b-cloud-build-success.json",
    "10-eventarc-pubsub-binary.http",
    "13-unwrapped-with-metadata.http",
    "15-unwrapped-ce-attributes.http",
    "16-forms-watch-attributes-only.json",
    "17-ordering-key-no-attributes.json",
    "20-emulator-minimal.json",
    "negative/n06-unwrapped-no-metadata.http",
];
const NAMES: [&str; 12] = [
    "x-goog-pubsub-message-id",
    "x-goog-pubsub-subscription-name",
    "x-goog-pubsub-publish-time",
    "x-goog-ordering-key",
    "ce-specversion",
    "ce-id",
    "ce-source",
    "ce-type",
    "ce-time",
    "content-type",
    "po_id",
    "authorization",
];
const VALUES: [&str; 6] =
    ["", " ", "1", "application/cloudevents+json", "google.cloud.pubsub.topic.v1.messagePublished", "Zürich"];

/// One change to a valid push.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    /// Puts a value where some member of the JSON stands, at whatever depth.
    Member(Index, Value),
    Remove(Index),
    Rename(Index, &'static str),
    Header(&'static str, Vec<u8>),
    HeaderGone(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let text =
        || prop_oneof![select(&VALUES[..]).prop_map(|text| text.as_bytes().to_vec()), vec(any::<u8>(), 0..8)];
    let value = select(vec![
        json!(null),
        json!(5),
        json!(true),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!({ "a": "b" }),
    ]);
    let name = select(vec![
        "messageId",
        "message_id",
        "message",
        "data",
        "data_base64",
        "attributes",
        "subscription",
        "x",
    ]);
    prop_oneof![
        2 => (any::<Index>(), 1..=255u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => any::<Index>().prop_map(Change::Cut),
        2 => (any::<Index>(), text()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        3 => (any::<Index>(), value).prop_map(|(at, value)| Change::Member(at, value)),
        2 => any::<Index>().prop_map(Change::Remove),
        2 => (any::<Index>(), name).prop_map(|(at, name)| Change::Rename(at, name)),
        2 => (select(&NAMES[..]), text()).prop_map(|(name, value)| Change::Header(name, value)),
        1 => any::<Index>().prop_map(Change::HeaderGone),
    ]
}

fn mutated() -> impl Strategy<Value = Push> {
    (select(&VALID[..]), vec(change(), 1..4)).prop_map(|(file, changes)| {
        let mut push = Push::file(file);
        changes.into_iter().for_each(|change| apply(&mut push, change));
        push
    })
}

fn arbitrary() -> impl Strategy<Value = Push> {
    let body = prop_oneof![
        vec(any::<u8>(), 0..200),
        "[\\[\\]{}\",:a-z0-9\\\\ ]{0,60}".prop_map(String::into_bytes),
        "\\{\"message\":\\{\"messageId\":[\"0-9a\\\\]{0,6},\"data\":\"[A-Za-z0-9+/=\\\\_-]{0,12}\"\\}\\}"
            .prop_map(String::into_bytes),
    ];
    let header = (select(&NAMES[..]), vec(any::<u8>(), 0..12));
    (body, vec(header, 0..5)).prop_map(|(body, headers)| {
        let mut push = Push { headers: HeaderMap::new(), body: body.into() };
        headers.into_iter().for_each(|(name, value)| apply(&mut push, Change::Header(name, value)));
        push
    })
}

fn apply(push: &mut Push, change: Change) {
    let mut body = push.body.to_vec();
    match change {
        Change::Flip(at, bits) if !body.is_empty() => *at.get_mut(&mut body) ^= bits,
        Change::Cut(at) => body.truncate(at.index(body.len() + 1)),
        Change::Insert(at, bytes) => {
            let at = at.index(body.len() + 1);
            body.splice(at..at, bytes);
        }
        Change::Member(at, value) => edit(&mut body, at, |object, name| {
            object.insert(name, value);
        }),
        Change::Remove(at) => edit(&mut body, at, |object, name| {
            object.remove(&name);
        }),
        Change::Rename(at, new) => edit(&mut body, at, |object, name| {
            let value = object.remove(&name).unwrap_or_default();
            object.insert(new.to_owned(), value);
        }),
        // Whatever HTTP would not let through does not reach the decoder.
        Change::Header(name, value) => {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                push.headers.append(HeaderName::from_static(name), value);
            }
        }
        Change::HeaderGone(at) if !push.headers.is_empty() => {
            let name = push.headers.keys().nth(at.index(push.headers.keys_len())).cloned();
            name.map(|name| push.headers.remove(name));
        }
        Change::Flip(..) | Change::HeaderGone(_) => {}
    }
    push.body = body.into();
}

/// Changes one member of the JSON, if it is JSON and has any.
fn edit(body: &mut Vec<u8>, at: Index, change: impl FnOnce(&mut serde_json::Map<String, Value>, String)) {
    fn names(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            found.push((path.to_owned(), name.clone()));
            names(inner, &format!("{path}/{name}"), found);
        }
    }
    let Ok(mut json) = serde_json::from_slice::<Value>(body) else { return };
    let mut found = Vec::new();
    names(&json, "", &mut found);
    if found.is_empty() {
        return;
    }
    let (path, name) = at.get(&found).clone();
    if let Some(object) = json.pointer_mut(&path).and_then(Value::as_object_mut) {
        change(object, name);
        *body = json.to_string().into_bytes();
    }
}

/// Asks everything that can be asked; whether it decoded.
fn ask(push: &Push) -> Result<bool, TestCaseError> {
    let delivery = match push.decode() {
        Ok(delivery) => delivery,
        Err(refused) => {
            prop_assert!(!refused.to_string().is_empty());
            return Ok(false);
        }
    };
    prop_assert_eq!(delivery.body(), &push.body);
    prop_assert!(delivery.message_id().is_none_or(|id| !id.trim().is_empty()));
    let rules = [message_id(), attribute("po_id"), json_pointer("/po"), message_id().and(attribute("po_id"))];
    for rule in rules {
        let key = rule.resolve(&delivery).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(key.is_none_or(|key| !key.trim().is_empty()));
    }
    let _ = (format!("{delivery:?}"), delivery.publish_time(), delivery.ordering_key(), delivery.attempt());
    for (name, value) in delivery.attributes() {
        prop_assert_eq!(delivery.attribute(name), Some(value));
    }
    let _ = (
        delivery.subscription(),
        delivery.event().map(|event| (event.time().is_some(), event.subject().is_some())),
    );
    let _ = delivery.json::<Value>();
    prop_assert_eq!(delivery.data().ok(), delivery.data().ok());
    Ok(true)
}

/// How many of the cases decode.
fn decoding(pushes: &impl Strategy<Value = Push>) -> u32 {
    let decoded = Cell::new(0);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(pushes, |push| {
            decoded.set(decoded.get() + u32::from(ask(&push)?));
            Ok(())
        })
        .unwrap_or_else(|failed| panic!("{failed}"));
    decoded.get()
}

#[test]
fn no_input_panics() {
    let (from_valid, from_nothing) = (decoding(&mutated()), decoding(&arbitrary()));
    println!("{CASES} mutated valid pushes: {}% decode", from_valid * 100 / CASES);
    println!("{CASES} arbitrary pushes: {}% decode", from_nothing * 100 / CASES);
    assert!(from_valid * 100 > CASES * 20, "too few of the mutated pushes decode to show anything");
}
