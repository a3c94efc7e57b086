//! `Delivery`: one push, whatever shape it came in.

use std::any::type_name;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::HeaderMap;
use serde::de::DeserializeOwned;

use super::cloud_event::{self, CloudEvent};
use super::refused::{BadData, Refused};
use super::unwrapped;
use super::wrapped::{self, Message};
use crate::lease::Note;

/// How a delivery was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// Pub/Sub's envelope of JSON.
    Wrapped,
    /// The data as body, all else as headers: payload unwrapping with `write_metadata`.
    Unwrapped,
    /// The data as body and nothing else: payload unwrapping without `write_metadata`. It has no
    /// message id. Only a JSON object is taken for one, and one that looks like an envelope is read
    /// as an envelope, so that whoever publishes chooses its id: set `write_metadata`.
    Bare,
    /// A CloudEvent, as Eventarc sends it.
    CloudEvent,
}

/// One push: what Pub/Sub or Eventarc sent, read once.
///
/// The data stays as it lies in the body until [`data`](Self::data) is asked for; a message that
/// nobody reads is never decoded. `Debug` shows neither data nor the values of attributes. A handle:
/// clones share one push, and one decoding of its data.
#[derive(Clone)]
pub struct Delivery(Arc<Inner>);

struct Inner {
    shape: Shape,
    body: Bytes,
    message: Message,
    event: Option<CloudEvent>,
    data: OnceLock<Result<Bytes, BadData>>,
}

impl Delivery {
    /// Reads a push from its headers and its whole body.
    ///
    /// Pub/Sub's own headers decide first, then a CloudEvent's, then the body. Whatever is not told
    /// here is ignored, so that a field that Google adds tomorrow does no harm.
    ///
    /// # Errors
    /// [`Refused`] if this is no push: answer 400, claim nothing, and log the error once.
    pub fn decode(headers: &HeaderMap, body: Bytes) -> Result<Self, Refused> {
        let (shape, event, message) = if unwrapped::is_unwrapped(headers) {
            (Shape::Unwrapped, None, unwrapped::decode(headers, &body)?)
        } else if let Some((event, message)) = cloud_event::decode(headers, &body)? {
            (Shape::CloudEvent, Some(event), message)
        } else if let Some(message) = wrapped::decode(&body)? {
            (Shape::Wrapped, None, message)
        } else {
            (Shape::Bare, None, Message::bare(body.clone()))
        };
        Ok(Self(Arc::new(Inner { shape, body, message, event, data: OnceLock::new() })))
    }

    /// How it was sent.
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// The id that Pub/Sub gave the message: unique within its topic, and the same on every delivery.
    /// `None` where it is absent or blank.
    pub fn message_id(&self) -> Option<&str> {
        self.0.message.id.as_deref().filter(|id| !id.trim().is_empty())
    }

    /// When the message was published; `None` where that is absent or cannot be read.
    pub fn publish_time(&self) -> Option<DateTime<Utc>> {
        let time = std::str::from_utf8(self.0.message.publish_time.as_deref()?).ok()?;
        wrapped::instant(time)
    }

    /// The ordering key; `None` where the message has none.
    pub fn ordering_key(&self) -> Option<&str> {
        self.0.message.ordering_key.as_deref().filter(|key| !key.is_empty())
    }

    /// The full name of the subscription that sent it.
    pub fn subscription(&self) -> Option<&str> {
        self.0.message.subscription.as_deref()
    }

    /// Which delivery of the message this is, from 1: `deliveryAttempt`, which Pub/Sub counts only
    /// for a subscription with a dead-letter topic, and approximately.
    pub fn attempt(&self) -> Option<u32> {
        self.0.message.attempt
    }

    /// An attribute of the message.
    ///
    /// An unwrapped push loses the case of names, so there case is ignored. There, too, an attribute
    /// that is named like a header of the request itself (`content-type`, `authorization`,
    /// `traceparent`, ...) or `x-goog-` something cannot be told from that header and is not shown.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        match self.0.shape {
            Shape::Unwrapped => self.0.message.attributes.get(&name.to_ascii_lowercase()),
            _ => self.0.message.attributes.get(name),
        }
    }

    /// The attributes of the message, names and values, in the order in which they came.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.message.attributes.iter()
    }

    /// The CloudEvent that it is, if it is one.
    pub fn event(&self) -> Option<&CloudEvent> {
        self.0.event.as_ref()
    }

    /// The body of the request, as it was sent.
    pub fn body(&self) -> &Bytes {
        &self.0.body
    }

    /// The message's data (a CloudEvent's, where it is not Pub/Sub's): any bytes, up to 10 MB, empty
    /// where the message has none. Decoded on the first call and kept.
    ///
    /// # Errors
    /// [`BadData`] if the envelope does not hold base64: answer with a failure, never with an ack.
    pub fn data(&self) -> Result<Bytes, BadData> {
        self.0.data.get_or_init(|| self.0.message.payload.decode()).clone()
    }

    /// The message's data, as JSON. No content type is asked for, since many senders give none or a wrong one.
    ///
    /// # Errors
    /// [`BadData`] if it is not JSON of a `T`: answer with a failure, so that a corrected deploy can
    /// still read the message.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, BadData> {
        serde_json::from_slice(&self.data()?).map_err(|error| BadData::Json {
            expected: type_name::<T>(),
            line: error.line(),
            column: error.column(),
            detail: Arc::new(error),
        })
    }

    /// Who works on its key, for the key's duplicates to be told.
    pub(crate) fn note(&self) -> Note {
        let message = self.0.message.id.clone().filter(|_| self.message_id().is_some());
        let event = || self.event().map(|event| event.id().into());
        Note { message: message.or_else(event), delivery: self.0.message.subscription.clone() }
    }

    /// The SHA-256 of the data, never of attributes. Holds no decoded copy.
    pub(crate) fn digest(&self) -> Result<[u8; 32], BadData> {
        self.0.message.payload.digest()
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("shape", &self.0.shape)
            .field("message_id", &self.message_id())
            .field("subscription", &self.subscription())
            .field("attempt", &self.attempt())
            .field("attributes", &self.0.message.attributes)
            .field("event", &self.0.event)
            .field("body_len", &self.0.body.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::message_id;

    #[test]
    fn data_is_decoded_once_and_only_when_somebody_asks() {
        let body = r#"{"message":{"messageId":"1","data":"eA==","attributes":{"a":"b"}}}"#;
        let delivery = Delivery::decode(&HeaderMap::new(), body.into()).unwrap();
        assert_eq!(message_id().resolve(&delivery).unwrap().as_deref(), Some("1"));
        delivery.digest().unwrap();
        assert!(delivery.0.data.get().is_none(), "decoded although nobody asked");
        assert_eq!(delivery.data().unwrap().as_ptr(), delivery.data().unwrap().as_ptr());
    }

    #[test]
    fn the_digest_is_over_the_data_and_not_over_what_surrounds_it() {
        let digest = |body: &str| {
            Delivery::decode(&HeaderMap::new(), body.to_owned().into()).unwrap().digest().unwrap()
        };
        let first = digest(r#"{"message":{"messageId":"1","data":"/w==","attributes":{"a":"b"}}}"#);
        assert_eq!(first, digest(r#"{"message":{"messageId":"2","data":"\/w","attributes":null}}"#));
        assert_ne!(first, digest(r#"{"message":{"messageId":"1","data":"/g==","attributes":{"a":"b"}}}"#));
        assert_eq!(
            digest(r#"{"message":{"messageId":"1"}}"#),
            digest(r#"{"po":1,"message":{"messageId":"1","data":""}}"#)
        );
    }
}
