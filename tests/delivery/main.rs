//! What a delivery is read as, and which key it gets, for everything that senders were seen to send.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]
#![expect(clippy::needless_pass_by_value, reason = "a message that is written in place reads best by value")]

mod events;
mod keys;
mod payloads;
mod properties;
mod unwrapped;
mod wrapped;

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use pushonce::pubsub::{Delivery, KeyRule, Refused};
use serde_json::{Value, json};

/// A request as a layer sees it.
#[derive(Clone, Debug)]
struct Push {
    headers: HeaderMap,
    body: Bytes,
}

impl Push {
    /// A body that is sent as JSON, without any other header.
    fn json(body: impl Into<Bytes>) -> Self {
        Self { headers: HeaderMap::new(), body: body.into() }.header("content-type", "application/json")
    }

    /// A wrapped push of that message.
    fn wrapped(message: Value) -> Self {
        Self::json(json!({ "message": message, "subscription": "projects/p1/subscriptions/s1" }).to_string())
    }

    /// A file of `tests/payloads`.
    fn file(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payloads").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if name.ends_with(".json") {
            return Self::json(bytes);
        }
        let mut rest = &bytes[..];
        let mut line = || {
            let (line, after) = rest.split_at(rest.iter().position(|byte| *byte == b'\n').expect("a line"));
            rest = &after[1..];
            line.trim_ascii()
        };
        line();
        let mut push = Self { headers: HeaderMap::new(), body: Bytes::new() };
        loop {
            let line = line();
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { break };
            let name = std::str::from_utf8(&line[..colon]).expect("a name");
            push = push.header(name, line[colon + 1..].trim_ascii());
        }
        push.body = Bytes::copy_from_slice(rest);
        push
    }

    /// One more header.
    fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name: HeaderName = name.parse().expect("a header name");
        self.headers.append(name, HeaderValue::from_bytes(value.as_ref()).expect("a header value"));
        self
    }

    /// The same push with another value of a header.
    fn replace(mut self, name: &str, value: &str) -> Self {
        self.headers.remove(name);
        self.header(name, value)
    }

    fn decode(&self) -> Result<Delivery, Refused> {
        Delivery::decode(&self.headers, self.body.clone())
    }

    fn delivery(&self) -> Delivery {
        self.decode().unwrap_or_else(|refused| panic!("{refused}"))
    }

    fn refused(&self) -> Refused {
        match self.decode() {
            Err(refused) => refused,
            Ok(delivery) => panic!("not refused: {delivery:?}"),
        }
    }

    fn key(&self, rule: &KeyRule) -> Option<String> {
        rule.resolve(&self.delivery()).unwrap_or_else(|error| panic!("{error}"))
    }
}
