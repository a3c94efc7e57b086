//! The ledger of uncertain keys: an entry for each key whose work succeeded although nobody recorded it, and their list.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::key::Consumer;
use crate::store::record::{Record, State};
use crate::store::{Filter, Maintain, Page, StoreError, Stored};

/// A key whose work succeeded, and of which the caller was told that nobody recorded it. Listed by
/// [`uncertain`]. Look whether its effect happened twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Uncertain {
    /// Whose key.
    pub consumer: String,
    /// The key's text; of one of more than 8 KiB the SHA-256 of `consumer:text`, by which stores name it too.
    pub key: String,
    /// Whether `key` is that hash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hashed: bool,
    /// Why it was not recorded.
    pub why: Why,
    /// When that was known, in microseconds since the Unix epoch, by the clock of the instance that did the work.
    #[serde(rename = "at_us")]
    pub at: u64,
    /// The fence of the run.
    pub fence: u64,
    /// The message that was worked on, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// The delivery that did it (its subscription).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Arc<str>>,
    /// What became of it after the answer. `None`: nothing is known, it is still tried, or the process has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// Why work that succeeded was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Why {
    /// The store did not take it in time. It is tried on, in the background.
    Unrecorded,
    /// The lease had lapsed and somebody else took the key over, who may repeat the work; or the record was gone.
    FencedOut,
}

/// What became of a completion that the store did not take in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settled {
    /// How it ended.
    pub how: How,
    /// When, in microseconds since the Unix epoch.
    #[serde(rename = "at_us")]
    pub at: u64,
}

/// How a completion ended that was tried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum How {
    /// It was recorded after all: nothing is left to be looked at.
    Recorded,
    /// Somebody else took the key over before, and may have repeated the work.
    FencedOut,
}

/// In one line, for people.
impl fmt::Display for Uncertain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.hashed { "#" } else { "" };
        let why = match self.why {
            Why::Unrecorded => "not recorded in time",
            Why::FencedOut => "fenced out",
        };
        let settled = match self.settled.map(|settled| settled.how) {
            None => "",
            Some(How::Recorded) => ", recorded later",
            Some(How::FencedOut) => ", then fenced out",
        };
        write!(f, "{}:{mark}{}: {why}{settled}", self.consumer, self.key)
    }
}

/// One page of the ledger.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct UncertainPage {
    /// The entries. One that cannot be understood is an error of its own, so that it hides no other.
    pub found: Vec<Result<Uncertain, StoreError>>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// One page of the keys whose work succeeded in the last 30 days although nobody recorded it, as far
/// as the store could be reached to say so. Each is in the log too, as the event `uncertain`, and the
/// log alone is complete.
///
/// ```
/// use pushonce::maintain::{Page, uncertain};
/// use pushonce::store::Memory;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Memory::new();
/// let mut page = Page::default();
/// loop {
///     let listed = uncertain(&store, &page).await?;
///     for entry in listed.found {
///         println!("{}", entry?);
///     }
///     let Some(next) = listed.next else { break };
///     page.after = Some(next);
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`StoreError`]. Ask for the same page again.
pub async fn uncertain<S: Maintain + ?Sized>(store: &S, page: &Page) -> Result<UncertainPage, StoreError> {
    let filter = Filter { prefix: format!("{}:", space()), state: Some(State::Done) };
    let listing = store.list(&filter, page).await?;
    let live = |stored: &Result<Stored, StoreError>| {
        stored.as_ref().map_or(true, |stored| Status::of(stored) != Status::Expired)
    };
    let entries = listing.found.into_iter().map(|found| found.stored).filter(live);
    Ok(UncertainPage { found: entries.map(|stored| read(&stored?.record)).collect(), next: listing.next })
}

/// The key space of the entries.
pub(super) fn space() -> Consumer {
    Consumer::reserved("uncertain")
}

/// The entry that a record holds.
pub(super) fn read(record: &Record) -> Result<Uncertain, StoreError> {
    serde_json::from_slice(&record.data)
        .map_err(|error| StoreError::Corrupt { what: format!("no entry of the ledger: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"{"consumer":"orders","key":"po-1","why":"unrecorded","at_us":1767484800000000,"fence":7,"message":"m-1","delivery":"projects/p/subscriptions/s","settled":{"how":"recorded","at_us":1767484801000000}}"#;
    const LEAST: &str = r#"{"consumer":"orders","key":"po-1","why":"fenced-out","at_us":1,"fence":7}"#;

    // Never edited: older and newer releases read what the other has written.
    #[test]
    fn an_entry_has_these_bytes() {
        for bytes in [FULL, LEAST] {
            let entry: Uncertain = serde_json::from_str(bytes).unwrap();
            assert_eq!(serde_json::to_string(&entry).unwrap(), bytes);
        }
        let newer = LEAST.replace("}", r#","colour":"blue"}"#);
        assert_eq!(
            serde_json::from_str::<Uncertain>(&newer).unwrap(),
            serde_json::from_str::<Uncertain>(LEAST).unwrap()
        );
        let words = |bytes| serde_json::from_str::<Uncertain>(bytes).unwrap().to_string();
        assert_eq!(words(FULL), "orders:po-1: not recorded in time, recorded later");
        assert_eq!(words(LEAST), "orders:po-1: fenced out");
    }
}
