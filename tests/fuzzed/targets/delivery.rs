//! The decoder: what it takes says one thing, and says the same in every other shape.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue};
use pushonce::Delivery;
use pushonce::pubsub::Shape;
use pushonce::testing::Push;
use serde_json::Value;

use super::input::Input;

/// All that a delivery says of its message.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    id: Option<String>,
    data: Option<Bytes>,
    attributes: BTreeMap<String, String>,
    ordering_key: Option<String>,
    subscription: Option<String>,
    attempt: Option<u32>,
    published: Option<DateTime<Utc>>,
}

impl Message {
    fn of(delivery: &Delivery) -> Self {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let attributes = delivery.attributes().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            id: text(delivery.message_id()),
            data: delivery.data().ok(),
            attributes: attributes.collect(),
            ordering_key: text(delivery.ordering_key()),
            subscription: text(delivery.subscription()),
            attempt: delivery.attempt(),
            published: delivery.publish_time(),
        }
    }
}

pub(crate) fn run(input: &[u8]) -> &'static str {
    let Input { headers, body, .. } = Input::read(input);
    let decode = || Delivery::decode(&headers, body.clone());
    let (delivery, again) = match (decode(), decode()) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            assert!(!one.to_string().is_empty());
            return "refused";
        }
        (one, other) => panic!("read in two ways: {one:?} {other:?}"),
    };
    let message = Message::of(&delivery);
    assert_eq!(message, Message::of(&again));
    assert_eq!(delivery.body(), &body);
    asked(&delivery, &message);
    told_apart(&delivery, &headers);
    if delivery.shape() == Shape::Wrapped {
        by_another_reader(&body, &message);
    }
    in_every_shape(&message);
    match delivery.shape() {
        Shape::Wrapped => "wrapped",
        Shape::Unwrapped => "unwrapped",
        Shape::Bare => "bare",
        Shape::CloudEvent => "event",
        other => panic!("a new shape: {other:?}"),
    }
}

/// No answer is one that a caller would stumble over.
fn asked(delivery: &Delivery, message: &Message) {
    assert!(message.id.as_deref().is_none_or(|id| !id.trim().is_empty()));
    assert_ne!(message.ordering_key.as_deref(), Some(""));
    assert_eq!(message.attributes.len(), delivery.attributes().count(), "a name comes twice");
    for (name, value) in &message.attributes {
        assert_eq!(delivery.attribute(name), Some(value.as_str()));
    }
    assert!(!format!("{delivery:?}").is_empty());
    if let Ok(json) = delivery.json::<Value>() {
        assert_eq!(serde_json::from_slice::<Value>(&delivery.data().unwrap()).unwrap(), json);
    }
    if let Some(event) = delivery.event() {
        let required = [event.id(), event.source(), event.kind()];
        assert!(required.iter().all(|text| !text.trim().is_empty()), "{required:?}");
        let _ = (event.time(), event.subject());
    }
}

/// A shape is what its name says, and Pub/Sub's own headers decide before all others.
fn told_apart(delivery: &Delivery, headers: &HeaderMap) {
    let (shape, data) = (delivery.shape(), delivery.data());
    let ours = ["x-goog-pubsub-message-id", "x-goog-pubsub-subscription-name"];
    assert_eq!(shape == Shape::Unwrapped, ours.iter().any(|name| headers.contains_key(*name)));
    assert_eq!(shape == Shape::CloudEvent, delivery.event().is_some());
    if matches!(shape, Shape::Unwrapped | Shape::Bare) {
        assert_eq!(&data.unwrap(), delivery.body());
    }
    if shape == Shape::Bare {
        let none = (delivery.message_id(), delivery.subscription(), delivery.attempt());
        assert_eq!(none, (None, None, None));
        assert!(serde_json::from_slice::<Value>(delivery.body()).map_or(true, |json| json.is_object()));
    }
}

/// What a plain reading of the whole JSON finds. It refuses numbers and texts that nobody looks at, and then has no say.
fn by_another_reader(body: &Bytes, message: &Message) {
    let Ok(envelope) = serde_json::from_slice::<Value>(body) else { return };
    let inner = &envelope["message"];
    let text = |names: [&str; 2]| names.iter().find_map(|name| inner[name].as_str()).map(str::to_owned);
    let named = |text: &String| !text.trim().is_empty();
    assert_eq!(message.id, text(["messageId", "message_id"]).filter(named));
    assert_eq!(message.ordering_key, text(["orderingKey", "ordering_key"]).filter(|key| !key.is_empty()));
    assert_eq!(message.subscription.as_deref(), envelope["subscription"].as_str());
    let attributes = inner["attributes"].as_object().into_iter().flatten();
    let attributes = attributes.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    assert_eq!(message.attributes, attributes.collect());
    let base64 = inner["data"].as_str().unwrap_or_default();
    match &message.data {
        Some(data) => {
            let standard = base64.replace('-', "+").replace('_', "/");
            assert_eq!(BASE64_STANDARD_NO_PAD.encode(data), standard.trim_end_matches('='));
        }
        None => assert!(BASE64_STANDARD.decode(base64).is_err(), "not read: {base64:?}"),
    }
}

/// A message that was read is sent anew in each shape that can hold it, and read as the same.
fn in_every_shape(message: &Message) {
    let (Some(id), Some(data)) = (&message.id, &message.data) else { return };
    let mut push = Push::bytes(data.clone()).id(id);
    for (name, value) in &message.attributes {
        push = push.attribute(name, value);
    }
    if let Some(key) = &message.ordering_key {
        push = push.ordering_key(key);
    }
    if let Some(attempt) = message.attempt {
        push = push.attempt(attempt);
    }
    let subscription = message.subscription.clone().unwrap_or_default();
    let time = message.published.unwrap_or_default();
    push = push.subscription(&subscription).publish_time(time.to_rfc3339());
    let sent = Message { subscription: Some(subscription.clone()), published: Some(time), ..message.clone() };
    let read = |push: Push| {
        let (parts, body) = push.request::<Bytes>().into_parts();
        Message::of(&Delivery::decode(&parts.headers, body).unwrap())
    };
    assert_eq!(read(push.clone()), sent);
    assert_eq!(read(push.clone().structured()), sent);
    let fits = |value: &str| HeaderValue::from_bytes(value.as_bytes()).is_ok();
    if fits(id) {
        assert_eq!(read(push.clone().eventarc()), sent);
    }
    let known = [id, &subscription].into_iter().chain(&message.ordering_key);
    if known.chain(message.attributes.values()).all(|value| fits(value))
        && message.attributes.keys().all(|name| is_shown_unwrapped(name))
    {
        assert_eq!(read(push.unwrapped()), sent);
    }
}

/// Whether an attribute of that name keeps it as a header, and cannot be taken for one of the request's own.
fn is_shown_unwrapped(name: &str) -> bool {
    let same = HeaderName::from_bytes(name.as_bytes()).is_ok_and(|header| header.as_str() == name);
    let Input { headers, .. } = Input::read(format!("\n{name}: 1\nx-goog-pubsub-message-id: 1").as_bytes());
    same && Delivery::decode(&headers, Bytes::new()).is_ok_and(|delivery| delivery.attribute(name).is_some())
}
