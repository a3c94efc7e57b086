//! Writing an entry of the ledger of uncertain keys: for ten seconds, and over no entry of a later run.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::ledger::{read, space};
use super::machine::higher;
use super::{Commit, How, Note, Place, Settled, TRIES, Uncertain, Why, pause};
use crate::chain::chain_about;
use crate::key::{Key, hex, join};
use crate::store::record::{Record, State, Verb};
use crate::store::{Standing, StoreError, Stored, Swap};
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
        let mut failed = StoreError::unanswered("no answer within ten seconds");
        let put = within(PATIENCE, pin!(self.put(&mut failed))).await;
        let failed = match put {
            Some(Ok(())) => return,
            Some(Err(error)) => error,
            None => failed,
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

    /// Tries for as long as the store's faults may pass: it may be out, or take one write a second of an
    /// object, as Google Cloud Storage does. Keeps the last of them, since the caller decides how long that is.
    async fn put(&self, failed: &mut StoreError) -> Result<(), StoreError> {
        let mut standing: Option<Stored> = None;
        let mut lost = 0;
        for tries in 0.. {
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
                Ok(Some(stored)) if self.is_told_by(&stored) => return Ok(()),
                Ok(found) => {
                    standing = found;
                    lost += 1;
                }
                Err(error) if error.is_transient() => *failed = error,
                Err(error) => return Err(error),
            }
            if lost == TRIES {
                break;
            }
            pause(tries).await;
        }
        Err(StoreError::unanswered(format!("others wrote it first, {TRIES} times")))
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
        let next = Record { state: State::Done, data: Bytes::from(data), ..higher(found, stamp) };
        Ok(next.stamped(stamp))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::key::{Consumer, KeyInLogs};
    use crate::lease::{Force, Reset, reset};
    use crate::store::record::DATA_LIMIT;
    use crate::store::{BoxFuture, Memory, Store, Version};
    use crate::time::system_clock;

    fn entry(consumer: &str, text: &str, name: &str) -> Entry {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let key = Key::new(Consumer::new(consumer).unwrap(), text).unwrap();
        let note = Note { message: Some(name.into()), delivery: Some(name.into()) };
        let place = Place { store, key, clock: system_clock() };
        Entry::of(&place, u64::MAX, Why::Unrecorded, &note).unwrap()
    }

    #[tokio::test]
    async fn an_entry_fits_a_record_whatever_its_key_and_its_message() {
        let mut failed = StoreError::unanswered("");
        for (length, hashed) in [(8 * 1024, false), (8 * 1024 + 1, true)] {
            let text = "\u{1}".repeat(length);
            for name in ["\u{1}".repeat(NAME_LIMIT), "\u{1}".repeat(NAME_LIMIT + 1)] {
                let mut entry = entry(&"c".repeat(64), &text, &name);
                let settled = Settled { how: How::FencedOut, at: u64::MAX };
                entry.uncertain = Uncertain { at: u64::MAX, settled: Some(settled), ..entry.uncertain };
                assert_eq!((entry.uncertain.hashed, entry.uncertain.key == text), (hashed, !hashed));
                assert_eq!(entry.uncertain.message.is_some(), name.len() == NAME_LIMIT);
                assert!(entry.record(None).unwrap().data.len() <= DATA_LIMIT);
                entry.put(&mut failed).await.unwrap();
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
        // Nor does any of a user's keys.
        assert!(Consumer::new(one.place.key.consumer().as_str()).is_err());
    }

    /// What stands in the ledger: the fence of its run, and whether its end is known.
    async fn stands(entry: &Entry) -> (u64, bool) {
        let stands = entry.place.read().await.unwrap().unwrap();
        assert_eq!((stands.record.state, stands.record.ttl), (State::Done, Duration::from_secs(30 * 86_400)));
        let stands = read(&stands.record).unwrap();
        (stands.fence, stands.settled.is_some())
    }

    fn run(fence: u64, settled: bool) -> impl Fn(Entry) -> Entry {
        let settled = settled.then_some(Settled { how: How::Recorded, at: 1 });
        move |entry| Entry { uncertain: Uncertain { fence, settled, ..entry.uncertain }, ..entry }
    }

    #[tokio::test]
    async fn an_entry_gives_way_to_that_of_a_later_run_and_to_its_own_end() {
        for (first, then, kept) in [
            ((1, false), (2, false), (2, false)),
            ((1, true), (2, false), (2, false)),
            ((2, false), (1, true), (2, false)),
            ((2, false), (2, true), (2, true)),
            ((2, true), (2, false), (2, true)),
        ] {
            let first = run(first.0, first.1)(entry("orders", "k", "m"));
            first.write().await;
            let (place, key) = (first.place.clone(), first.key.clone());
            let uncertain = first.uncertain.clone();
            run(then.0, then.1)(Entry { place, key, uncertain }).write().await;
            assert_eq!(stands(&first).await, kept, "{then:?}");
        }
    }

    #[tokio::test]
    async fn an_entry_that_was_reset_is_written_anew() {
        let entry = entry("orders", "k", "m");
        entry.write().await;
        let reset = reset(&*entry.place.store, &entry.place.key, Force::No);
        assert_eq!(reset.await.unwrap(), Reset::Freed);
        entry.write().await;
        assert_eq!(stands(&entry).await, (u64::MAX, false));
    }

    /// Somebody who writes an entry of an earlier run before each write of ours.
    #[derive(Debug, Default)]
    struct Rival {
        memory: Memory,
        tries: AtomicU32,
    }

    impl Store for Rival {
        fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
            self.memory.read(key)
        }

        fn swap<'a>(
            &'a self,
            key: &'a Key,
            seen: Option<&'a Version>,
            next: &'a Record,
        ) -> BoxFuture<'a, Result<Swap, StoreError>> {
            Box::pin(async move {
                self.tries.fetch_add(1, Ordering::Relaxed);
                let theirs = Record { data: Bytes::from_static(b"{}"), ..next.clone() };
                let first = self.memory.swap(key, seen, &theirs).await?;
                assert!(matches!(first, Swap::Written(_)));
                self.memory.swap(key, seen, next).await
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_always_loses_gives_up_since_the_log_has_it() {
        let rival = Arc::new(Rival::default());
        let mut entry = entry("orders", "k", "m");
        entry.place.store = rival.clone();
        let given_up = entry.put(&mut StoreError::unanswered("")).await;
        assert!(given_up.is_err_and(|error| error.is_transient()));
        assert_eq!(rival.tries.load(Ordering::Relaxed), TRIES);
    }

    #[cfg(feature = "testing")]
    #[tokio::test(start_paused = true)]
    async fn a_fault_that_passes_is_waited_out_and_another_is_not() {
        use crate::store::chaos::{Chaos, Fault, On};
        for (fault, written) in [(Fault::Fail, true), (Fault::LoseAnswer, true), (Fault::Refuse, false)] {
            let chaos = Chaos::new(Arc::new(Memory::new()));
            chaos.next(On::Swap, fault);
            let mut entry = entry("orders", "k", "m");
            entry.place.store = chaos.clone();
            let put = entry.put(&mut StoreError::unanswered("")).await;
            assert_eq!(put.is_ok(), written, "{fault:?}");
            assert_eq!(chaos.trips().swaps, if written { 2 } else { 1 }, "{fault:?}");
        }
    }
}
