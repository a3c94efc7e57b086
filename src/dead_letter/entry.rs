//! `DeadLetterEntry`: what is kept of a dead letter.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::key::{Consumer, Key};

/// A dead letter, as it is kept: the message as its handler saw it, and why it was given up. `Debug` shows
/// neither data nor the values of attributes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeadLetterEntry {
    /// Its id in the store: `dl-` and 32 hex digits. A copy of the same dead letter has the same.
    pub id: String,
    /// What became of it.
    pub state: DeadLetterState,
    /// Who gave the message up.
    pub source: Source,
    /// Why, in the words of the handler that gave it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The consumer whose handler gave it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// The text of the key that is done as rejected, until a redrive resets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The message's id where it came from; Pub/Sub does not tell it of a message that it forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_message_id: Option<String>,
    /// The message's id in the dead-letter topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The subscription that gave it up, by its full name where its project is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// How often it was delivered before, as far as Pub/Sub counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// When the message was published first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<DateTime<Utc>>,
    /// When it came here.
    pub received_at: DateTime<Utc>,
    /// The message's own attributes, without those of the dead letter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// The message's ordering key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<String>,
    /// The message's data; `None` where it is too large to be kept, or was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "as_base64")]
    pub data: Option<Bytes>,
    /// How long the data is, in bytes, also where it is not kept.
    pub data_len: u64,
    /// How it was published again, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven: Option<Republished>,
    /// When it was discarded, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_at: Option<DateTime<Utc>>,
    /// Fields of a newer release, written back as they came.
    #[serde(flatten)]
    pub(super) unknown: Map<String, Value>,
}

/// What became of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DeadLetterState {
    /// It waits for somebody to decide.
    Kept,
    /// It was published again.
    Redriven,
    /// Nobody wants it. It stays listed, without its data, until its 30 days are over.
    Discarded,
}

/// Who gave a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Source {
    /// Pub/Sub, after the attempts that the subscription allows.
    Attempts,
    /// A handler, by [`Failure::dead_letter`](crate::Failure::dead_letter).
    Handler,
}

/// How a dead letter was published again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Republished {
    /// The id that Pub/Sub gave the new message.
    pub message_id: String,
    /// To which topic.
    pub topic: String,
    /// When, by the clock of whoever redrove it.
    pub at: DateTime<Utc>,
}

impl DeadLetterEntry {
    /// Whether the whole message is kept, so that it can be published again.
    pub fn is_whole(&self) -> bool {
        self.data.is_some()
    }

    /// The key that its handler gave up, if it names one.
    pub(super) fn named_key(&self) -> Option<Key> {
        Key::new(Consumer::new(self.consumer.as_ref()?).ok()?, self.key.as_ref()?).ok()
    }
}

impl fmt::Debug for DeadLetterEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetterEntry")
            .field("id", &self.id)
            .field("state", &self.state)
            .field("source", &self.source)
            .field("consumer", &self.consumer)
            .field("subscription", &self.subscription)
            .field("attempts", &self.attempts)
            .field("received_at", &self.received_at)
            .field("attributes", &self.attributes.keys())
            .field("data_len", &self.data_len)
            .field("redriven", &self.redriven)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for DeadLetterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Redriven => "redriven",
            Self::Discarded => "discarded",
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attempts => "attempts",
            Self::Handler => "handler",
        })
    }
}

mod as_base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(data: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
        data.as_ref().map(|data| STANDARD.encode(data)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let data = STANDARD.decode(text).map_err(|_| D::Error::custom("expected base64"))?;
        Ok(Some(data.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLER: &str = r#"{"id":"dl-00112233445566778899aabbccddeeff","state":"redriven","source":"handler","reason":"no such article","consumer":"orders","key":"po-1","source_message_id":"m-1","message_id":"d-1","subscription":"projects/p/subscriptions/orders-push","attempts":2,"published_at":"2026-01-02T11:22:33.044Z","received_at":"2026-01-02T15:30:00.700Z","attributes":{"po_id":"po-1","task-id":"t"},"ordering_key":"po-1","data":"eyJwbyI6MX0=","data_len":8,"redriven":{"message_id":"m-2","topic":"projects/p/topics/orders","at":"2026-01-03T08:00:00Z"}}"#;
    const DISCARDED: &str = r#"{"id":"dl-00112233445566778899aabbccddeeff","state":"discarded","source":"attempts","received_at":"2026-01-02T15:30:00Z","data_len":8,"discarded_at":"2026-01-03T08:00:00Z"}"#;
    const LEAST: &str = r#"{"id":"dl-00112233445566778899aabbccddeeff","state":"kept","source":"attempts","received_at":"2026-01-02T15:30:00Z","data":"","data_len":0}"#;

    // Never edited: older and newer releases read what the other has written.
    #[test]
    fn an_entry_has_these_bytes() {
        for bytes in [HANDLER, DISCARDED, LEAST] {
            let entry: DeadLetterEntry = serde_json::from_str(bytes).unwrap();
            assert_eq!(serde_json::to_string(&entry).unwrap(), bytes);
            // A field of a newer release is written back.
            let newer = bytes.replacen("\"data_len\":", "\"data_len\":8,\"colour\":\"blue\",\"x\":", 1);
            let entry: DeadLetterEntry = serde_json::from_str(&newer).unwrap();
            assert!(serde_json::to_string(&entry).unwrap().contains(r#""colour":"blue""#));
        }
        let entry: DeadLetterEntry = serde_json::from_str(HANDLER).unwrap();
        assert_eq!((entry.data.as_deref(), entry.is_whole()), (Some(&br#"{"po":1}"#[..]), true));
        assert_eq!(entry.named_key().unwrap().to_string(), "orders:po-1");
    }

    #[test]
    fn debug_shows_no_payload() {
        let entry: DeadLetterEntry = serde_json::from_str(HANDLER).unwrap();
        let text = format!("{entry:?}");
        assert!(text.contains("po_id") && !text.contains("po-1") && !text.contains("eyJ"), "{text}");
    }

    #[test]
    fn a_key_that_nobody_can_have_is_none() {
        for consumer in ["pushonce-tasks", "a b", ""] {
            let other = HANDLER.replace("orders\",\"key", &format!("{consumer}\",\"key"));
            let entry: DeadLetterEntry = serde_json::from_str(&other).unwrap();
            assert_eq!(entry.named_key(), None, "{consumer}");
        }
    }
}
