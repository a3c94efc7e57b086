//! The ledger of uncertain keys: an entry for each key whose work succeeded although nobody recorded it.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::machine::higher;
use super::status::Status;
use super::{Commit, Note, Place, TRIES, pause};
use crate::chain::chain_about;
use crate::key::{Consumer, Key, hex, join};
use crate::store::record::{Record, State, Verb};
use crate::store::{Filter, Maintain, Page, Standing, StoreError, Stored, Swap};
use crate::time::{micros, within};

/// How long an entry is kept: 30 days.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long one write of an entry is tried. After that the log line is the ledger.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest key that an entry has in full, in bytes. As JSON it may be six times as long, and with
/// what stands beside it must fit the data of a record.
const KEY_LIMIT: usize = 8 * 1024;
/// The longest name of a message or subscription that it has, in bytes.
const NAME_LIMIT: usize = 1024;

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

fn space() -> Consumer {
    Consumer::reserved("uncertain")
}

fn read(record: &Record) -> Result<Uncertain, StoreError> {
    serde_json::from_slice(&record.data)
        .map_err(|error| StoreError::Corrupt { what: format!("no entry of the ledger: {error}") })
}

/// An entry that is being written.
pub(crate) struct Entry {
    place: Place,
    /// For the log.
    key: Key,
    uncertain: Uncertain,
}

impl Entry {
    /// Of a run under that fence, which has succeeded.
    pub(crate) fn of(place: &Place, fence: u64, why: Why, note: &Note) -> Option<Self> {
        let Place { store, key, clock } = place;
        let parts = [key.consumer().to_string(), key.text().to_owned()];
        let hashed = key.text().len() > KEY_LIMIT;
        let short = |name: &Option<Arc<str>>| name.clone().filter(|name| name.len() <= NAME_LIMIT);
        let uncertain = Uncertain {
            consumer: key.consumer().to_string(),
            key: if hashed { hex(&Sha256::digest(key.in_full())) } else { key.text().to_owned() },
            hashed,
            why,
            at: micros(clock.wall()),
            fence,
            message: short(&note.message),
            delivery: short(&note.delivery),
            settled: None,
        };
        // Joined so that no two keys have one entry. It is never blank.
        let place =
            Place { store: store.clone(), key: Key::new(space(), join(&parts)).ok()?, clock: clock.clone() };
        Some(Self { place, key: key.clone(), uncertain })
    }

    /// Writes it, for a short time. It changes nothing for anybody if that cannot be.
    pub(crate) async fn write(&self) {
        let failed = match within(PATIENCE, pin!(self.put())).await {
            Some(Ok(())) => return,
            Some(Err(error)) => error,
            None => StoreError::unanswered("no answer within ten seconds"),
        };
        tracing::warn!(
            key = self.key.to_string(),
            error = chain_about(&self.key, &failed),
            "the entry of an uncertain key is not written: the log is its ledger"
        );
    }

    /// Writes what became of it, once that is known.
    pub(crate) async fn settle(mut self, commit: Commit) {
        let how = match commit {
            Commit::Recorded | Commit::AlreadyDone => How::Recorded,
            Commit::FencedOut => How::FencedOut,
        };
        self.uncertain.settled = Some(Settled { how, at: micros(self.place.clock.wall()) });
        self.write().await;
    }

    async fn put(&self) -> Result<(), StoreError> {
        let mut standing: Option<Stored> = None;
        let mut failed = None;
        for tries in 0..TRIES {
            if standing.as_ref().is_some_and(|stored| self.is_told_by(stored)) {
                return Ok(());
            }
            let next = self.record(standing.as_ref())?;
            let swap = self.place.swap(standing.as_ref().map(|stored| &stored.version), &next).await;
            let found = match swap {
                Ok(Swap::Written(_)) => return Ok(()),
                Ok(Swap::Lost(Standing::Is(stored))) => Ok(Some(*stored)),
                Ok(Swap::Lost(Standing::Absent)) => Ok(None),
                Ok(Swap::Lost(Standing::Unknown)) => self.place.read().await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => standing = found,
                Err(error) if error.is_transient() => {
                    failed = Some(error);
                    pause(tries).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| StoreError::unanswered(format!("not stored in {TRIES} tries"))))
    }

    /// Whether what stands says as much: it is this entry, or that of a later run of the key.
    fn is_told_by(&self, stored: &Stored) -> bool {
        let rank = |entry: &Uncertain| (entry.fence, entry.settled.is_some());
        stored.record.state == State::Done
            && read(&stored.record).is_ok_and(|stands| rank(&stands) >= rank(&self.uncertain))
    }

    fn record(&self, standing: Option<&Stored>) -> Result<Record, StoreError> {
        let data = serde_json::to_vec(&self.uncertain).map_err(|error| StoreError::Refused {
            what: "an entry of the ledger cannot be encoded".to_owned(),
            source: Some(error.into()),
        })?;
        let blank = || Record::blank(Verb::Lock, Duration::ZERO, KEPT);
        let stamp = self.place.stamp();
        let found = standing.map_or_else(blank, |stored| stored.record.clone());
        let next = Record { state: State::Done, ttl: KEPT, data: Bytes::from(data), ..higher(found, stamp) };
        Ok(next.stamped(stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyInLogs;
    use crate::store::record::DATA_LIMIT;
    use crate::store::{Memory, Store};
    use crate::time::system_clock;

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

    fn entry(consumer: &str, text: &str, name: &str) -> Entry {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let key = Key::new(Consumer::new(consumer).unwrap(), text).unwrap();
        let note = Note { message: Some(name.into()), delivery: Some(name.into()) };
        let place = Place { store, key, clock: system_clock() };
        Entry::of(&place, u64::MAX, Why::Unrecorded, &note).unwrap()
    }

    #[tokio::test]
    async fn an_entry_fits_a_record_whatever_its_key_and_its_message() {
        for (text, hashed) in [("\u{1}".repeat(KEY_LIMIT), false), ("\u{1}".repeat(KEY_LIMIT + 1), true)] {
            for name in ["\u{1}".repeat(NAME_LIMIT), "\u{1}".repeat(NAME_LIMIT + 1)] {
                let mut entry = entry(&"c".repeat(64), &text, &name);
                let settled = Settled { how: How::FencedOut, at: u64::MAX };
                entry.uncertain = Uncertain { at: u64::MAX, settled: Some(settled), ..entry.uncertain };
                assert_eq!((entry.uncertain.hashed, entry.uncertain.key == text), (hashed, !hashed));
                assert_eq!(entry.uncertain.message.is_some(), name.len() == NAME_LIMIT);
                assert!(entry.record(None).unwrap().data.len() <= DATA_LIMIT);
                entry.put().await.unwrap();
            }
        }
    }

    #[test]
    fn the_hash_of_a_long_key_is_the_one_that_stores_name_it_by() {
        let entry = entry("orders", &"k".repeat(KEY_LIMIT + 1), "m");
        assert!(entry.key.stored_name(160).ends_with(&format!("#orders:{}", entry.uncertain.key)));
        assert!(entry.uncertain.to_string().starts_with("orders:#"));
        // Hashed in logs is not hashed in the ledger, which is in the store beside the keys themselves.
        let place = Place { key: entry.key.clone().in_logs(KeyInLogs::Hashed), ..entry.place.clone() };
        let quiet = Entry::of(&place, u64::MAX, Why::Unrecorded, &Note::default()).unwrap();
        assert_eq!((quiet.uncertain.key, quiet.place.key), (entry.uncertain.key, entry.place.key));
    }

    #[test]
    fn no_two_keys_have_one_entry() {
        let one = entry("a", "b|1.c", "m");
        let other = entry("a", "b", "m");
        let third = entry("a.b", "1.c", "m");
        assert!(one.place.key != other.place.key && one.place.key != third.place.key);
    }
}
