//! The unwrapped push: the message's data is the body, everything else is a header.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use super::attributes::Attributes;
use super::payload::Payload;
use super::refused::Refused;
use super::wrapped::Message;

const MESSAGE_ID: &str = "x-goog-pubsub-message-id";
const SUBSCRIPTION: &str = "x-goog-pubsub-subscription-name";
const PUBLISH_TIME: &str = "x-goog-pubsub-publish-time";
const ATTEMPT: &str = "x-goog-pubsub-delivery-attempt";
/// Pub/Sub's own spelling, and the emulator's.
const ORDERING_KEY: [&str; 2] = ["x-goog-pubsub-ordering-key", "x-goog-ordering-key"];

/// Headers that belong to the request and not to the message. No more than HTTP, a proxy or Cloud Run
/// adds: one that is listed hides the attribute of its name.
const TRANSPORT: [&str; 21] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-cloud-trace-context",
    "x-serverless-authorization",
];
/// Families of such headers.
const PREFIXES: [&str; 2] = ["x-forwarded-", "x-goog-"];

/// Whether Pub/Sub itself says that this is an unwrapped push. It comes before everything else: an
/// attribute becomes a header under its own name, so no other header may decide.
pub(super) fn is_unwrapped(headers: &HeaderMap) -> bool {
    // Names are looked through and not looked up: a push has few, and most have none of these.
    headers.keys().any(|name| matches!(name.as_str(), MESSAGE_ID | SUBSCRIPTION))
}

/// Reads the headers; the body is the data as it is.
pub(super) fn decode(headers: &HeaderMap, body: &Bytes) -> Result<Message, Refused> {
    let mut attributes = Attributes::default();
    for (name, value) in headers.iter().filter(|(name, _)| !is_transport(name.as_str())) {
        attributes.insert(name.as_str(), utf8(name, value)?.to_owned())?;
    }
    Ok(Message {
        id: single(headers, &[MESSAGE_ID])?,
        publish_time: single(headers, &[PUBLISH_TIME])?.map(|time| Bytes::copy_from_slice(time.as_bytes())),
        ordering_key: single(headers, &ORDERING_KEY)?,
        attributes,
        payload: Payload::Raw(body.clone()),
        subscription: single(headers, &[SUBSCRIPTION])?,
        attempt: single(headers, &[ATTEMPT])?.and_then(|attempt| attempt.parse().ok()),
    })
}

/// The one value that all headers of these names have. Two would let an attribute choose.
pub(super) fn single(headers: &HeaderMap, names: &[&str]) -> Result<Option<Arc<str>>, Refused> {
    let mut found: Option<&str> = None;
    for name in names {
        for value in headers.get_all(*name) {
            let value = utf8(name, value)?;
            if found.is_some_and(|found| found != value) {
                return Err(Refused::twice(name));
            }
            found = Some(value);
        }
    }
    Ok(found.map(Arc::from))
}

/// Attributes are UTF-8, also where HTTP would have headers ASCII.
pub(super) fn utf8<'a>(name: &impl ToString, value: &'a HeaderValue) -> Result<&'a str, Refused> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| Refused::Header { name: name.to_string() })
}

fn is_transport(name: &str) -> bool {
    TRANSPORT.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
