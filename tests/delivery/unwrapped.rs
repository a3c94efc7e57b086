//! Field cases of the unwrapped push.

use pushonce::pubsub::{Refused, Shape, attribute, json_pointer, message_id};
use serde_json::{Value, json};

use super::Push;

const ID: &str = "x-goog-pubsub-message-id";
const SUBSCRIPTION: &str = "x-goog-pubsub-subscription-name";

fn unwrapped(body: &'static str) -> Push {
    Push::json(body).header(SUBSCRIPTION, "projects/p1/subscriptions/s1").header(ID, "11")
}

#[test]
fn metadata_comes_from_headers_and_the_data_is_the_body() {
    let push = Push::file("13-unwrapped-with-metadata.http");
    let delivery = push.delivery();
    assert_eq!(delivery.message_id(), Some("10947777888899990"));
    assert_eq!(delivery.subscription(), Some("projects/kestrel-orders-demo/subscriptions/orders-unwrapped"));
    assert_eq!(delivery.ordering_key(), Some("PO-2026-000419"));
    assert_eq!(delivery.publish_time().unwrap().to_rfc3339(), "2026-01-02T12:05:00.500+00:00");
    assert_eq!(delivery.data().unwrap(), push.body);
    // Raw UTF-8 in a header, and a name whose case was lost on the way.
    assert_eq!(delivery.attribute("Origin"), Some("Zürich"));
    let all: Vec<_> = delivery.attributes().collect();
    assert_eq!(all, [("po_id", "PO-2026-000419"), ("origin", "Zürich")]);
    // The emulator's spelling.
    assert_eq!(unwrapped("{}").header("x-goog-ordering-key", "PO").delivery().ordering_key(), Some("PO"));
}

// F18
#[test]
fn no_content_type_is_needed() {
    let push = Push::file("14-unwrapped-no-content-type.http");
    assert!(!push.headers.contains_key("content-type"));
    assert_eq!(push.delivery().json::<Value>().unwrap()["status"], "SHIPPED");
}

// F19
#[test]
fn a_hundred_attributes_of_a_kilobyte_are_read() {
    let long = "v".repeat(1024);
    let push = (0..100).fold(unwrapped("{}"), |push, n| push.header(&format!("attr-{n:03}"), &long));
    assert_eq!(push.delivery().attributes().count(), 100);
    assert_eq!(push.key(&attribute("attr-099")).as_deref(), Some(&*long));
    let many = (0..1001).fold(unwrapped("{}"), |push, n| push.header(&format!("attr-{n}"), "v"));
    assert_eq!(many.refused(), Refused::TooMany { limit: 1000 });
}

// F20
#[test]
fn without_metadata_there_is_no_default_key_but_a_business_key() {
    let recorded = Push::file("negative/n06-unwrapped-no-metadata.http");
    let emulators = Push::json(r#"{"po":"1"}"#).replace("content-type", "application/x-www-form-urlencoded");
    for push in [recorded, emulators] {
        let delivery = push.delivery();
        assert_eq!((delivery.shape(), delivery.message_id()), (Shape::Bare, None));
        assert_eq!(delivery.data().unwrap(), push.body);
        assert_eq!(push.key(&message_id()), None);
        assert!(push.key(&json_pointer("/po")).is_some());
    }
    // Data that is not a JSON object cannot be told from rubbish: the error names the setting.
    let text = Push::json("plain text").refused().to_string();
    assert!(text.contains("write_metadata"), "{text}");
}

// F10, F22
#[test]
fn attributes_change_neither_mode_nor_subscription_nor_key() {
    let push = Push::file("15-unwrapped-ce-attributes.http");
    let plain = push.key(&message_id());
    let delivery = push.delivery();
    assert_eq!(delivery.shape(), Shape::Unwrapped);
    assert!(delivery.event().is_none());
    assert_eq!(delivery.data().unwrap(), push.body, "a body that looks like an envelope is data");
    assert_eq!(delivery.attribute("ce-id"), Some("spaces/AAAAkestrel/messages/m1"));
    for (name, value) in [
        ("ce-id", "other"),
        ("ce-type", "google.cloud.pubsub.topic.v1.messagePublished"),
        ("content-type", "application/cloudevents+json"),
        ("authorization", "Bearer other"),
        ("idempotency-key", "other"),
        ("traceparent", "00-0-0-00"),
        ("messageid", "other"),
    ] {
        let changed = push.clone().replace(name, value);
        assert_eq!(changed.key(&message_id()), plain, "{name}");
        assert_eq!(changed.delivery().shape(), Shape::Unwrapped, "{name}");
        assert_eq!(changed.delivery().subscription(), delivery.subscription(), "{name}");
    }
    for name in ["content-type", "authorization", "host", "user-agent", "Traceparent", ID] {
        assert_eq!(delivery.attribute(name), None, "{name}");
    }
}

// F22
#[test]
fn two_values_of_one_header_are_refused() {
    let push = unwrapped("{}").header("po_id", "1").header("x-goog-pubsub-ordering-key", "k");
    for name in [ID, SUBSCRIPTION, "po_id", "x-goog-pubsub-ordering-key"] {
        let refused = push.clone().header(name, "other").refused();
        assert_eq!(refused, Refused::Twice { name: name.to_owned() });
        let same = push.headers[name].clone();
        push.clone().header(name, same).delivery();
    }
    push.clone().header("x-goog-ordering-key", "other").refused();
    // What proxies add more than once is nothing of the message's.
    push.header("x-forwarded-for", "1.1.1.1").header("x-forwarded-for", "2.2.2.2").delivery();
}

// F22
#[test]
fn a_header_that_is_no_text_is_refused() {
    for name in [ID, "po_id"] {
        let refused = Push::json("{}").header(SUBSCRIPTION, "s").header(name, b"\xff\xfe").refused();
        assert_eq!(refused, Refused::Header { name: name.to_owned() });
    }
}

#[test]
fn an_attribute_whose_name_merely_begins_like_a_header_is_shown() {
    for name in ["accepted_by", "content-id", "hostname", "via-depot", "x-cloud-trace", "authorization-id"] {
        assert_eq!(unwrapped("{}").header(name, "v").delivery().attribute(name), Some("v"), "{name}");
    }
}

#[test]
fn one_of_pubsubs_headers_is_enough_to_decide() {
    let only_subscription =
        Push::wrapped(json!({ "messageId": "chosen-by-the-publisher" })).header(SUBSCRIPTION, "s");
    assert_eq!(only_subscription.delivery().shape(), Shape::Unwrapped);
    assert_eq!(only_subscription.key(&message_id()), None);
    let blank = Push::json("{}").header(ID, " ");
    assert_eq!(blank.key(&message_id()), None);
    // Any body will do, also none.
    assert_eq!(unwrapped("").delivery().data().unwrap(), "");
    assert_eq!(unwrapped("{}").header("x-goog-pubsub-publish-time", "soon").delivery().publish_time(), None);
}
