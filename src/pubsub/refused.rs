//! What can be wrong with a push: a request that is none, and data that cannot be read.

use std::sync::Arc;

/// A request that cannot be read as a push. Nothing was claimed and the handler did not run.
///
/// Answer 400, which Pub/Sub takes for a nack: it delivers again until the retention ends or the
/// dead-letter policy takes the message. A 400 drops nothing. The text says what was expected and
/// never holds what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The body is not JSON, and no header says that this is an unwrapped push. Set `write_metadata`
    /// on a subscription that unwraps its payload.
    #[error(
        "not a push: expected a JSON object with a `message`, but the body is not JSON from line {line}, column {column}; if the subscription unwraps its payload, set `write_metadata` on it"
    )]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, in bytes; 0 at the end of the line before.
        column: usize,
    },
    /// The body is JSON, but no envelope with a message id. Send the envelope as Pub/Sub does, or set
    /// `write_metadata` on a subscription that unwraps its payload.
    #[error(
        "not a push: expected a JSON object whose `message` is an object with a `messageId`; if the subscription unwraps its payload, set `write_metadata` on it"
    )]
    NotAnEnvelope,
    /// A field has a type that Pub/Sub never sends. Correct the sender.
    #[error("not a push: expected `{field}` to be {expected}; whatever sent it is not Pub/Sub")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What it should have been.
        expected: &'static str,
    },
    /// A header's value is not UTF-8, which every header of an unwrapped push is. Correct the sender.
    #[error("not a push: expected the header `{name}` to be UTF-8; whatever sent it is not Pub/Sub")]
    Header {
        /// The name of the header.
        name: String,
    },
    /// One thing was given two values, and to choose one would let the sender choose the key. Look
    /// for an attribute that is named like one of Pub/Sub's own headers.
    #[error(
        "not a push: {name:?} has two different values; look for a message attribute that is named like a header of Pub/Sub's own"
    )]
    Twice {
        /// The name of the field, header or attribute; cut where it is longer than Pub/Sub lets one be.
        name: String,
    },
    /// More attributes than any message has. Correct the sender.
    #[error("not a push: more than {limit} attributes, where Pub/Sub allows 100")]
    TooMany {
        /// How many are read.
        limit: usize,
    },
    /// A CloudEvent without one of its required attributes. Correct the sender.
    #[error("not a CloudEvent: expected `{name}` to be a text that is not blank")]
    Event {
        /// The name of the attribute, without `ce-`.
        name: &'static str,
    },
}

impl Refused {
    /// An attribute's name is the sender's, so it is kept short (Pub/Sub allows 256 bytes).
    pub(super) fn twice(name: &str) -> Self {
        Self::Twice { name: name.chars().take(256).collect() }
    }
}

/// A message's data that cannot be read.
///
/// What to do: answer with a failure, so that the message is not acked and a corrected deploy can
/// still read it. Neither the text nor a source holds the data, so both may be logged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BadData {
    /// The envelope's `data` is not base64.
    #[error("the message's data is not base64, as the envelope promises")]
    Base64,
    /// The data is not the JSON that was asked for.
    #[error("the message's data is not JSON of a `{expected}` (line {line}, column {column})")]
    Json {
        /// The type that was asked for.
        expected: &'static str,
        /// The line, from 1.
        line: usize,
        /// The column, in bytes.
        column: usize,
        /// What exactly is wrong. It may quote a value of the data, so it is no source: do not log it
        /// where data must not reach a log.
        detail: Arc<serde_json::Error>,
    },
}
