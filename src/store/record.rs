//! The record: what a store keeps under a key, and its one encoding.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::StoreError;
use crate::key::hex;
pub use crate::random::Id;
use crate::time::duration_micros;

/// The format that this version writes: major × 100 + minor.
const FORMAT: u16 = 100;
/// The first format of the next major version, which this one does not understand.
const NEXT_MAJOR: u16 = 200;
/// The most that [`Record::data`] may hold, in bytes: a record is a ledger entry, not a payload.
pub const DATA_LIMIT: usize = 64 * 1024;

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Held by the claim that `holder` names, until its lease lapses.
    Claimed,
    /// Given back, by a failed work or an operator. May be claimed at once.
    Released,
    /// Recorded; duplicates are skipped until the ttl has passed.
    Done,
}

/// The verb that wrote the record. Checked only while the record is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Once: recorded, then skipped.
    Lock,
    /// One at a time: always released, never done.
    Mutex,
    /// Marked before it runs, and never run again.
    AtMostOnce,
}

impl Verb {
    /// Whether a live record of one verb may not be claimed by the other.
    pub(crate) fn excludes(self, other: Self) -> bool {
        (self == Self::Mutex) != (other == Self::Mutex)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::AtMostOnce => "at_most_once",
        })
    }
}

/// How the last run of a key ended, as far as anybody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// There was none, or it is over and done with.
    Fresh,
    /// It returned an error.
    Failed,
    /// It crashed, panicked, was cancelled, or its lease lapsed; or an operator reset its key.
    Unknown,
}

/// How far a recorded key came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Marked by `at_most_once` before the work; nobody knows whether it ran.
    Started,
    /// The work succeeded.
    Finished,
    /// The message was terminal and went to the dead-letter topic.
    Rejected,
}

/// What a duplicate is told: which delivery did the work, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// How far it came.
    pub progress: Progress,
    /// When it was recorded, in microseconds since the Unix epoch, by the clock of the instance that did it.
    #[serde(rename = "at_us")]
    pub at: u64,
    /// The message or task that was worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// The delivery that did it (its subscription).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Arc<str>>,
}

/// What a store keeps under a key.
///
/// Lease and ttl are durations that are compared with the record's age, so no client clock decides
/// who may take a key over. Fields of a newer minor format are kept in `unknown` and written back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Major × 100 + minor.
    pub format: u16,
    /// Where the key stands.
    pub state: State,
    /// The verb of the last claim.
    pub verb: Verb,
    /// Rises with every claim and release. For fencing downstream; the store's own test is the version.
    pub fence: u64,
    /// Whose claim it is, or was. `None` after a reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Id>,
    /// Fresh for each write, so that every write changes the content; also the version of a store
    /// that counts none.
    pub token: Id,
    /// How long a claim excludes others.
    #[serde(rename = "lease_us", with = "as_micros")]
    pub lease: Duration,
    /// How long a recorded key skips duplicates.
    #[serde(rename = "ttl_us", with = "as_micros")]
    pub ttl: Duration,
    /// The age that the record had when it was rewritten without sliding its window.
    #[serde(rename = "aged_us", with = "as_micros", default, skip_serializing_if = "Duration::is_zero")]
    pub aged: Duration,
    /// Runs that began before this claim and were not recorded.
    #[serde(default)]
    pub runs: u32,
    /// How the last of them ended.
    pub ended: Ended,
    /// SHA-256 of the payload, if it is checked.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "as_hex")]
    pub digest: Option<[u8; 32]>,
    /// What a duplicate is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Opaque to the lease: task records, small results. At most [`DATA_LIMIT`] bytes.
    #[serde(default, skip_serializing_if = "Bytes::is_empty", with = "as_base64")]
    pub data: Bytes,
    /// When it was written, in microseconds since the Unix epoch, by the writer's clock. For people,
    /// and for the one emulator that tells no time.
    #[serde(rename = "written_us")]
    pub written: u64,
    /// When the store's garbage collection may delete it, in microseconds since the Unix epoch.
    /// Nothing else looks at it.
    #[serde(rename = "expires_us")]
    pub expires: u64,
    /// Fields of a newer minor format.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl Record {
    /// A record that was never written, for a key of which nothing is known: released, fresh.
    pub(crate) fn blank(verb: Verb, lease: Duration, ttl: Duration) -> Self {
        Self {
            format: FORMAT,
            state: State::Released,
            verb,
            fence: 0,
            holder: None,
            token: Id::from_bits(0),
            lease,
            ttl,
            aged: Duration::ZERO,
            runs: 0,
            ended: Ended::Fresh,
            digest: None,
            receipt: None,
            data: Bytes::new(),
            written: 0,
            expires: 0,
            unknown: Map::new(),
        }
    }

    /// The record as a JSON document: the one encoding, for every store.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if `data` is over [`DATA_LIMIT`].
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        self.fits()?;
        serde_json::to_vec(self).map_err(|error| StoreError::Refused {
            what: "the record cannot be encoded".into(),
            source: Some(error.into()),
        })
    }

    /// The record of a JSON document.
    ///
    /// # Errors
    /// [`StoreError::NewerFormat`] or [`StoreError::Corrupt`]: leave it as it is and answer 503.
    pub fn decode(document: &[u8]) -> Result<Self, StoreError> {
        readable(document)?;
        serde_json::from_slice(document).map_err(|error| corrupt(&error))
    }

    /// Whether a store may take it: for a store that keeps records as they are.
    pub(super) fn fits(&self) -> Result<(), StoreError> {
        if self.data.len() > DATA_LIMIT {
            let what = format!("a record keeps at most {DATA_LIMIT} bytes of data, not {}", self.data.len());
            return Err(StoreError::Refused { what, source: None });
        }
        Ok(())
    }
}

/// Whether this version understands the document. The format is looked at alone, and first: the rest
/// of a newer major version need not look like ours at all.
pub(super) fn readable(document: &[u8]) -> Result<(), StoreError> {
    #[derive(Deserialize)]
    struct Format {
        format: u16,
    }
    let Format { format } = serde_json::from_slice(document).map_err(|error| corrupt(&error))?;
    understood(format)
}

fn corrupt(error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt { what: error.to_string() }
}

/// Whether this version understands records of that format.
pub(super) fn understood(format: u16) -> Result<(), StoreError> {
    if format >= NEXT_MAJOR {
        return Err(StoreError::NewerFormat { found: format, limit: NEXT_MAJOR });
    }
    Ok(())
}

mod as_micros {
    use super::{Deserialize, Deserializer, Duration, Serializer, duration_micros};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration_micros(*duration))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

mod as_hex {
    use super::{D32, Deserialize, Deserializer, Serializer, hex};
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(digest: &D32, serializer: S) -> Result<S::Ok, S::Error> {
        match digest {
            Some(digest) => serializer.serialize_str(&hex(digest)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<D32, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let bad = || D::Error::custom("expected 64 hex digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        let mut digest = [0; 32];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| bad())?;
        }
        Ok(Some(digest))
    }
}

type D32 = Option<[u8; 32]>;

mod as_base64 {
    use super::{Bytes, Deserialize, Deserializer, Serializer};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes::from).map_err(|_| D::Error::custom("expected base64"))
    }
}
