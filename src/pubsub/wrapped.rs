//! The wrapped push: an envelope of JSON around one message.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::json::{Object, either, known, object, present, quoted};
use super::payload::Payload;
use super::refused::Refused;

/// What every shape is read into.
pub(super) struct Message {
    pub(super) id: Option<Arc<str>>,
    /// As it was sent; read when somebody asks.
    pub(super) publish_time: Option<Bytes>,
    pub(super) ordering_key: Option<Arc<str>>,
    pub(super) attributes: Attributes,
    pub(super) payload: Payload,
    pub(super) subscription: Option<Arc<str>>,
    pub(super) attempt: Option<u32>,
}

impl Message {
    /// A message of which nothing but the data is known.
    pub(super) fn bare(data: Bytes) -> Self {
        Self {
            id: None,
            publish_time: None,
            ordering_key: None,
            attributes: Attributes::default(),
            payload: Payload::Raw(data),
            subscription: None,
            attempt: None,
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    message: Option<Object<Inner<'a>>>,
    #[serde(borrow, default, deserialize_with = "present")]
    subscription: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "deliveryAttempt")]
    attempt: Option<&'a RawValue>,
}

/// Pub/Sub sends both spellings of id and time at once, which serde's `alias` takes for a duplicate:
/// so they are fields of their own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inner<'a> {
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "message_id")]
    message_id_snake: Option<&'a RawValue>,
    #[serde(borrow)]
    publish_time: Option<&'a RawValue>,
    #[serde(borrow, rename = "publish_time")]
    publish_time_snake: Option<&'a RawValue>,
    #[serde(borrow)]
    ordering_key: Option<&'a RawValue>,
    #[serde(borrow, rename = "ordering_key")]
    ordering_key_snake: Option<&'a RawValue>,
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Reads an envelope; `None` for an object that has neither `message` nor `subscription`.
pub(super) fn decode(body: &Bytes) -> Result<Option<Message>, Refused> {
    let envelope: Envelope<'_> = object(body, Refused::NotAnEnvelope)?;
    let Some(Object(inner)) = envelope.message else {
        return match envelope.subscription {
            Some(_) => Err(Refused::NotAnEnvelope),
            None => Ok(None),
        };
    };
    let id = either("messageId", [inner.message_id, inner.message_id_snake])?;
    let attributes = match known(inner.attributes) {
        None => Attributes::default(),
        Some(fields) => {
            let otherwise =
                Refused::Field { field: "attributes", expected: "an object of at most 1000 strings" };
            Attributes::from_json(object(fields.get().as_bytes(), otherwise)?)?
        }
    };
    let data = match known(inner.data) {
        None => Bytes::new(),
        Some(data) => {
            quoted(body, data).ok_or(Refused::Field { field: "data", expected: "a string of base64" })?
        }
    };
    Ok(Some(Message {
        id: Some(id.ok_or(Refused::NotAnEnvelope)?),
        publish_time: inner.publish_time.or(inner.publish_time_snake).and_then(|time| quoted(body, time)),
        ordering_key: either("orderingKey", [inner.ordering_key, inner.ordering_key_snake])?,
        attributes,
        payload: Payload::Base64(data),
        subscription: either("subscription", [envelope.subscription, None])?,
        attempt: envelope.attempt.and_then(|attempt| attempt.get().parse().ok()),
    }))
}

/// A time that is not RFC 3339 is no reason to lose a message: nothing is decided by it.
pub(super) fn instant(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_message_stays_where_it_lies() {
        let data = "Wlpa".repeat(3_333_334);
        let body =
            Bytes::from(format!(r#"{{"message":{{"messageId":"1","data":"{data}"}},"subscription":"s"}}"#));
        let Payload::Base64(text) = decode(&body).unwrap().unwrap().payload else { panic!("not base64") };
        assert_eq!(text.len(), data.len());
        assert!(body.as_ptr_range().contains(&text.as_ptr()), "the data was copied");
    }
}
