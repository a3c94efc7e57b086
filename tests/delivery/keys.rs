//! Field cases of keys: which deliveries are the same, and which have none.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use pushonce::pubsub::{KeyRule, KeyRuleError, attribute, json_pointer, key_fn, message_id};
use pushonce::{Consumer, Key};
use serde_json::{Value, json};

use super::Push;

/// The same file under another message id.
fn republished(file: &str, id: &str) -> Push {
    let mut body: Value = serde_json::from_slice(&Push::file(file).body).unwrap();
    body["message"]["messageId"] = id.into();
    body["message"].as_object_mut().unwrap().remove("message_id");
    Push::json(body.to_string())
}

fn data(data: impl AsRef<[u8]>) -> Push {
    Push::wrapped(json!({ "messageId": "5", "data": BASE64_STANDARD.encode(data) }))
}

fn attributes(attributes: Value) -> Push {
    Push::wrapped(json!({ "messageId": "5", "attributes": attributes }))
}

// F12
#[test]
fn one_storage_event_with_two_message_ids_is_two_messages_and_one_change() {
    let file = "01-gcs-object-finalize.json";
    let (first, second) = (Push::file(file), republished(file, "2"));
    let change = attribute("bucketId")
        .and(attribute("objectId"))
        .and(attribute("objectGeneration"))
        .and(attribute("eventType"));
    assert_ne!(first.key(&message_id()), second.key(&message_id()));
    assert_eq!(first.key(&change), second.key(&change));
    assert!(first.key(&change).is_some());
    assert_ne!(first.key(&change), Push::file("02-gcs-object-delete-no-data.json").key(&change));
}

// F12
#[test]
fn joined_parts_stay_apart_and_long_ones_are_keys_too() {
    let rule = attribute("bucket").and(attribute("object"));
    let key = |bucket: &str, object: &str| {
        attributes(json!({ "bucket": bucket, "object": object })).key(&rule).unwrap()
    };
    assert_ne!(key("a", "b/c"), key("a/b", "c"));
    assert_ne!(key("a", "bc"), key("ab", "c"));
    let (long, other) = (key("b", &"é".repeat(1024)), key("b", &format!("{}x", "é".repeat(1023))));
    let name = |text: &str| Key::new(Consumer::new("files").unwrap(), text).unwrap().stored_name(1500);
    assert_ne!(name(&long), name(&other));
}

// F13
#[test]
fn several_states_of_one_entity_need_a_key_of_both() {
    let states = ["04a-cloud-build-queued.json", "04b-cloud-build-success.json"].map(Push::file);
    let entity = attribute("buildId");
    assert_eq!(states[0].key(&entity), states[1].key(&entity), "by design");
    for rule in
        [attribute("buildId").and(attribute("status")), json_pointer("/id").and(json_pointer("/status"))]
    {
        assert_ne!(states[0].key(&rule), states[1].key(&rule));
        assert_eq!(states[0].key(&rule), republished("04a-cloud-build-queued.json", "2").key(&rule));
    }
}

// F14
#[test]
fn equal_bodies_are_different_messages() {
    let file = "03-scheduler-tick.json";
    let (first, second) = (Push::file(file), republished(file, "2"));
    assert_eq!(first.delivery().data().unwrap(), second.delivery().data().unwrap());
    assert_ne!(first.key(&KeyRule::default()), second.key(&KeyRule::default()));
}

// F17
#[test]
fn a_producers_own_retry_is_caught_by_the_business_key_alone() {
    let push = |id| Push::wrapped(json!({ "messageId": id, "attributes": { "po_id": "PO-1" } }));
    assert_ne!(push("1").key(&message_id()), push("2").key(&message_id()));
    assert_eq!(push("1").key(&attribute("po_id")), push("2").key(&attribute("po_id")));
}

// F103
#[test]
fn a_dead_letter_is_a_new_message_and_the_same_order() {
    let (order, dead) =
        (Push::file("10-eventarc-pubsub-binary.http"), Push::file("19-dead-letter-forwarded.json"));
    assert_ne!(order.key(&message_id()), dead.key(&message_id()));
    assert_eq!(order.key(&attribute("po_id")), dead.key(&attribute("po_id")));
    assert_eq!(dead.delivery().attribute("CloudPubSubDeadLetterSourceDeliveryCount"), Some("10"));
}

// F27
#[test]
fn an_absent_or_blank_part_is_no_key_at_all() {
    let blank_id = Push::file("negative/n03-empty-message-id.json");
    for rule in [message_id(), attribute("po_id"), attribute("none"), message_id().and(attribute("po_id"))] {
        assert_eq!(blank_id.key(&rule), None, "{rule:?}");
        assert_eq!(blank_id.key(&rule.clone().scope("orders")), None, "{rule:?}");
    }
    for part in ["", "  ", "\t\n", "\u{a0}"] {
        let push = attributes(json!({ "region": "eu", "po_id": part }));
        for rule in [
            attribute("po_id"),
            attribute("region").and(attribute("po_id")),
            attribute("po_id").and(attribute("region")),
            key_fn(|delivery| Ok(delivery.attribute("po_id").map(str::to_owned))),
        ] {
            assert_eq!(push.key(&rule), None, "{part:?} {rule:?}");
        }
    }
    assert_eq!(attributes(json!({})).key(&key_fn(|_| Ok(None))), None);
}

// F27
#[test]
fn a_closure_that_fails_or_panics_is_an_error_and_no_absent_key() {
    let delivery = attributes(json!({})).delivery();
    let failing = key_fn(|_| Err("no such order".into()));
    let error = failing.resolve(&delivery).unwrap_err();
    assert!(matches!(error, KeyRuleError::Failed { .. }));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no such order");
    let panicking = key_fn(|delivery| Ok(Some(delivery.attribute("none").unwrap().to_owned())));
    assert!(matches!(panicking.resolve(&delivery), Err(KeyRuleError::Panicked)));
    assert!(matches!(attribute("none").and(panicking).resolve(&delivery), Ok(None)), "not even asked");
}

#[test]
fn a_rule_that_can_find_nothing_is_an_error_and_no_absent_key() {
    let delivery = attributes(json!({})).delivery();
    for rule in [json_pointer("order/id"), json_pointer("/a~2"), attribute(" "), message_id().scope(" ")] {
        assert!(matches!(rule.resolve(&delivery), Err(KeyRuleError::Rule { .. })), "{rule:?}");
    }
}

#[test]
fn a_pointer_finds_strings_numbers_and_booleans() {
    let push =
        data(r#"{"order":{"id":"PO-1","n":5,"f":5.0,"yes":true,"none":null,"lines":[{"sku":"é"}]},"n":"5"}"#);
    let at = |pointer: &str| push.key(&json_pointer(pointer));
    assert_eq!(at("/order/id").as_deref(), Some("PO-1"));
    assert_eq!(at("/order/lines/0/sku").as_deref(), Some("é"));
    assert_eq!(at("/order/yes").as_deref(), Some("true"));
    assert_eq!(at("/order/n"), at("/n"), "a number and a string of the same digits name the same thing");
    assert_ne!(at("/order/n"), at("/order/f"));
    for pointer in ["", "/order", "/order/none", "/order/lines", "/order/lines/1/sku", "/missing", "/n/x"] {
        assert_eq!(at(pointer), None, "{pointer}");
    }
}

#[test]
fn a_pointer_into_data_that_is_no_json_finds_nothing() {
    for bytes in [&b""[..], b"plain", b"\xff\x00", b"{\"a\":1", b"{\"a\":1}}", b"\xef\xbb\xbf{\"a\":1}"] {
        assert_eq!(data(bytes).key(&json_pointer("/a")), None, "{bytes:?}");
    }
    assert_eq!(Push::wrapped(json!({ "messageId": "5", "data": "!" })).key(&json_pointer("/a")), None);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(data(deep).key(&json_pointer("/0/0")), None);
}

#[test]
fn a_scope_sets_keys_apart() {
    let push = attributes(json!({ "po_id": "PO-1" }));
    let keys = [
        push.key(&attribute("po_id")),
        push.key(&attribute("po_id").scope("orders")),
        push.key(&attribute("po_id").scope("refunds")),
    ];
    assert!(keys.iter().all(Option::is_some));
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2], "{keys:?}");
    assert_eq!(keys[1], push.key(&attribute("po_id").scope("orders")));
    // A scope on a later part is the rule's.
    let whole = attribute("po_id").and(message_id()).scope("orders");
    assert_eq!(push.key(&whole), push.key(&attribute("po_id").and(message_id().scope("orders"))));
}

#[test]
fn a_rule_can_be_read() {
    let rule = attribute("po_id").and(json_pointer("/a")).and(key_fn(|_| Ok(None))).and(message_id());
    let text = format!("{rule:?}");
    for part in ["attribute(\"po_id\")", "json_pointer(\"/a\")", "key_fn(..)", "message_id()"] {
        assert!(text.contains(part), "{text}");
    }
}
