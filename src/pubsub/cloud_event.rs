//! CloudEvents over HTTP, as Eventarc sends them: attributes in headers, or all in one JSON object.

use std::fmt;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::attributes::Attributes;
use super::json::{Fields, known, object, quoted, text};
use super::payload::Payload;
use super::refused::Refused;
use super::unwrapped::utf8;
use super::wrapped::{self, Message, instant};

/// The type under which Eventarc's Pub/Sub trigger delivers: its data is an envelope.
const PUBLISHED: &str = "google.cloud.pubsub.topic.v1.messagePublished";
const REQUIRED: [&str; 4] = ["ce-specversion", "ce-id", "ce-source", "ce-type"];

/// The attributes of a CloudEvent (specification 1.0.2), as they were sent: nothing is trimmed or
/// percent-decoded, since id and source are compared as they are.
///
/// `Debug` shows id, source and type only.
#[derive(Clone)]
pub struct CloudEvent {
    id: String,
    source: String,
    kind: String,
    others: Attributes,
}

impl CloudEvent {
    /// The id, unique within its source.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the event came from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What kind of event it is: the attribute `type`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What the event is about, in its source.
    pub fn subject(&self) -> Option<&str> {
        self.attribute("subject")
    }

    /// When it happened; `None` where that is absent or cannot be read.
    pub fn time(&self) -> Option<DateTime<Utc>> {
        self.attribute("time").and_then(instant)
    }

    /// Every other attribute and extension, by its name without `ce-`: `datacontenttype`, `dataschema`, ...
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.others.get(name)
    }

    /// Whether it carries a message of Pub/Sub.
    pub(super) fn is_published(&self) -> bool {
        self.kind == PUBLISHED
    }

    /// Required ones checked, all others kept.
    fn new(all: &Attributes) -> Result<Self, Refused> {
        let required = |name| match all.get(name) {
            Some(value) if !value.trim().is_empty() => Ok(value.to_owned()),
            _ => Err(Refused::Event { name }),
        };
        let mut others = Attributes::default();
        for (name, value) in all.iter().filter(|(name, _)| !matches!(*name, "id" | "source" | "type")) {
            others.insert(name, value.to_owned())?;
        }
        required("specversion")?;
        Ok(Self { id: required("id")?, source: required("source")?, kind: required("type")?, others })
    }

    /// What the event carries: a message where it is Pub/Sub's, else data without one.
    fn message(&self, data: Payload) -> Result<Message, Refused> {
        if !self.is_published() {
            return Ok(Message { payload: data, ..Message::bare(Bytes::new()) });
        }
        let envelope = data.decode().map_err(|_| Refused::NotAnEnvelope)?;
        wrapped::decode(&envelope)?.ok_or(Refused::NotAnEnvelope)
    }
}

impl fmt::Debug for CloudEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudEvent")
            .field("id", &self.id)
            .field("source", &self.source)
            .field("type", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Reads a CloudEvent, if the request is one. The content type decides first, as the HTTP binding
/// has it: a structured event may repeat its attributes as headers.
pub(super) fn decode(headers: &HeaderMap, body: &Bytes) -> Result<Option<(CloudEvent, Message)>, Refused> {
    if is_structured(headers) {
        return structured(body).map(Some);
    }
    // One without its version is refused by name, and not taken for some other kind of request.
    if !headers.keys().any(|name| REQUIRED.contains(&name.as_str())) {
        return Ok(None);
    }
    let mut all = Attributes::default();
    for (header, value) in headers {
        if let Some(name) = header.as_str().strip_prefix("ce-") {
            all.insert(name, utf8(header, value)?.to_owned())?;
        }
    }
    let event = CloudEvent::new(&all)?;
    let message = event.message(Payload::Raw(body.clone()))?;
    Ok(Some((event, message)))
}

fn is_structured(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/cloudevents+json")
}

fn structured(body: &Bytes) -> Result<(CloudEvent, Message), Refused> {
    let otherwise = Refused::Field { field: "the event", expected: "an object of at most 1000 members" };
    let Fields(members) = object(body, otherwise)?;
    let mut all = Attributes::default();
    let (mut data, mut base64) = (None, None);
    for (name, value) in members {
        let Some(value) = known(Some(value)) else { continue };
        match (name.as_str(), value.get().as_bytes().first()) {
            ("data", _) if data.is_none() => data = Some(value),
            ("data_base64", _) if base64.is_none() => base64 = Some(value),
            ("data" | "data_base64", _) => return Err(Refused::twice(&name)),
            (_, Some(b'"')) => all.insert(&name, text("attribute", value)?.into_owned())?,
            (_, Some(b'{' | b'[')) => {
                return Err(Refused::Field {
                    field: "attribute",
                    expected: "a string, a number or a boolean",
                });
            }
            _ => all.insert(&name, value.get().to_owned())?,
        }
    }
    let event = CloudEvent::new(&all)?;
    let payload = match (data, base64) {
        (None, None) => Payload::Raw(Bytes::new()),
        (Some(_), Some(_)) => return Err(Refused::twice("data")),
        (None, Some(value)) => Payload::Base64(
            quoted(body, value)
                .ok_or(Refused::Field { field: "data_base64", expected: "a string of base64" })?,
        ),
        (Some(value), None) => match quoted(body, value).filter(|_| !event.carries_json()) {
            None => Payload::Raw(body.slice_ref(value.get().as_bytes())),
            Some(plain) if !plain.contains(&b'\\') => Payload::Raw(plain),
            Some(_) => Payload::Raw(text("data", value)?.into_owned().into()),
        },
    };
    let message = event.message(payload)?;
    Ok((event, message))
}

impl CloudEvent {
    /// Whether a string in `data` is JSON itself, or the text of another media type.
    fn carries_json(&self) -> bool {
        let media = self.attribute("datacontenttype").unwrap_or("application/json");
        let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence.ends_with("/json") || essence.ends_with("+json")
    }
}
