//! A memory store that is broken in one chosen way.

mod maintain;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::key::Key;
use crate::lease::planted;
use crate::store::record::{DATA_LIMIT, Ended, Record, State, Verb};
use crate::store::{BoxFuture, Memory, Standing, Store, StoreError, Stored, Swap, Version};
use crate::time::{Clock, micros};

/// One way to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Not the store but the lease: a planted fault.
    Plants(planted::Fault),
    /// A read returns the record before the last.
    StaleReads,
    CreateOverwrites,
    /// An update writes whatever stands, and creates where nothing does.
    IgnoresVersion,
    /// A lost swap writes all the same, and says that it was lost.
    WritesWhenLost,
    LostIsWritten,
    /// A lost swap says that nothing stands.
    LiesAboutStanding,
    /// A lost swap does not say what stands, although the store promised.
    KeepsSilent,
    /// A write returns another version than a read does.
    OtherVersion,
    /// A record has one version for all its contents.
    VersionStuck,
    /// Versions are counted from one for each record, so they repeat after its deletion.
    VersionRepeats,
    /// Looks, and then writes without a condition.
    ChecksThenActs,
    Loses(Field),
    CutsData,
    /// A record of a newer format is taken for none.
    NewerIsAbsent,
    /// A record is a day old as it is written.
    AgesTooFast,
    NeverAges,
    /// Age is counted from the last read.
    YoungerByReading,
    AgeOfFirstWrite,
    AddsAged,
    /// Age is the reader's wall clock minus the writer's.
    AgesByClients,
    /// A key is cut to 1500 bytes.
    CutsKeys,
    FoldsCase,
    TrimsKeys,
    /// A key with a slash or a NUL byte is refused.
    RefusesOddKeys,
    /// The store looks at the lease: a lapsed claim cannot be written any more by its holder.
    RefusesLapsed,
    /// A release deletes the record.
    ForgetsOnRelease,
    /// A release is stored as a claim.
    KeepsReleased,
    /// Says that it keeps no records, although it does.
    FailsCheck,
    PurgesAll,
    PurgesNothing,
    PurgesOverLimit,
    /// Looks, and then deletes without a condition.
    PurgesBlindly,
    /// Refuses to purge, and does not say what collects the garbage.
    RefusesToPurge,
    ListsTwice,
    LeavesOut,
    ListsForEver,
    IgnoresPrefix,
    IgnoresState,
    /// A list ends at a record of a newer format.
    StopsAtNewer,
    /// A list leaves a record of a newer format out.
    HidesNewer,
}

/// A field that a store drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Verb,
    Fence,
    Holder,
    Lease,
    Ttl,
    Aged,
    Runs,
    Ended,
    Digest,
    Receipt,
    Data,
    Expires,
    Unknown,
}

impl Field {
    fn dropped_from(self, record: &mut Record) {
        match self {
            Self::Verb => record.verb = Verb::Lock,
            Self::Fence => record.fence = 0,
            Self::Holder => record.holder = None,
            Self::Lease => record.lease = Duration::ZERO,
            Self::Ttl => record.ttl = Duration::ZERO,
            Self::Aged => record.aged = Duration::ZERO,
            Self::Runs => record.runs = 0,
            Self::Ended => record.ended = Ended::Fresh,
            Self::Digest => record.digest = None,
            Self::Receipt => record.receipt = None,
            Self::Data => record.data.clear(),
            Self::Expires => record.expires = 0,
            Self::Unknown => record.unknown.clear(),
        }
    }
}

/// The clock of the runtime, so that paused time moves the store and its clients alike.
#[derive(Debug)]
struct Paused(tokio::time::Instant);

impl Clock for Paused {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + self.0.elapsed()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

pub(super) fn paused() -> Arc<dyn Clock> {
    Arc::new(Paused(tokio::time::Instant::now()))
}

/// What a broken store remembers beside its memory.
#[derive(Debug, Default)]
struct Notes {
    last: Option<Stored>,
    /// Versions as the store tells them, for those that it wrote: how many writes since the creation.
    told: HashMap<Version, Version>,
    count: u64,
    first: Option<Duration>,
    looked: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Flawed {
    pub(super) memory: Arc<Memory>,
    flaw: Option<Flaw>,
    pub(super) clock: Arc<dyn Clock>,
    notes: Mutex<HashMap<Key, Notes>>,
}

impl Flawed {
    pub(super) fn new(flaw: Option<Flaw>) -> Self {
        let clock = paused();
        Self { memory: Arc::new(Memory::with_clock(clock.clone())), flaw, clock, notes: Mutex::default() }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn note<T>(&self, key: &Key, note: impl FnOnce(&mut Notes) -> T) -> T {
        note(self.notes.lock().unwrap().entry(key.clone()).or_default())
    }

    pub(super) fn named(&self, key: &Key) -> Key {
        let text = key.text();
        let text = match self.flaw {
            Some(Flaw::CutsKeys) => text.chars().take(1500).collect(),
            Some(Flaw::FoldsCase) => text.to_lowercase(),
            Some(Flaw::TrimsKeys) => text.trim_end().to_owned(),
            _ => return key.clone(),
        };
        Key::new(key.consumer().clone(), text).unwrap()
    }

    /// The record as the flaw has it written.
    fn spoilt(&self, next: &Record) -> Record {
        let mut next = next.clone();
        match self.flaw {
            Some(Flaw::Loses(field)) => field.dropped_from(&mut next),
            Some(Flaw::CutsData) => next.data.truncate(DATA_LIMIT),
            Some(Flaw::KeepsReleased) if next.state == State::Released => next.state = State::Claimed,
            _ => {}
        }
        next
    }

    /// A version as the flaw tells it.
    fn told(&self, key: &Key, version: Version) -> Version {
        match self.flaw {
            Some(Flaw::VersionStuck) => Version::number(1),
            Some(Flaw::VersionRepeats) => {
                self.note(key, |notes| notes.told.get(&version).cloned().unwrap_or(version))
            }
            _ => version,
        }
    }

    /// The version that the memory knows, of one that was told.
    async fn meant(&self, key: &Key, seen: Option<&Version>) -> Result<Option<Version>, StoreError> {
        let stands = || async { Ok(self.memory.read(key).await?.map(|stored| stored.version)) };
        match (self.flaw, seen) {
            (Some(Flaw::IgnoresVersion), Some(_)) | (Some(Flaw::CreateOverwrites), None) => stands().await,
            (Some(Flaw::VersionStuck | Flaw::VersionRepeats), Some(seen)) => {
                let version = stands().await?;
                let same = version.clone().is_some_and(|version| self.told(key, version) == *seen);
                // A number that the memory never gives.
                Ok(if same { version } else { Some(Version::number(u64::MAX)) })
            }
            (Some(Flaw::ChecksThenActs), _) => {
                let before = stands().await?;
                // Others get in between.
                tokio::time::sleep(Duration::from_millis(1)).await;
                if before.as_ref() == seen { stands().await } else { Ok(seen.cloned()) }
            }
            _ => Ok(seen.cloned()),
        }
    }

    fn aged(&self, key: &Key, mut stored: Stored) -> Stored {
        let now = self.clock.monotonic();
        stored.age = match self.flaw {
            Some(Flaw::NeverAges) => Duration::ZERO,
            Some(Flaw::AgesTooFast) => stored.age + Duration::from_secs(24 * 60 * 60),
            Some(Flaw::AddsAged) => stored.age + stored.record.aged,
            Some(Flaw::AgesByClients) => {
                Duration::from_micros(micros(self.clock.wall()).saturating_sub(stored.record.written))
            }
            Some(Flaw::AgeOfFirstWrite) => now - self.note(key, |notes| notes.first.unwrap_or(now)),
            Some(Flaw::YoungerByReading) => self.note(key, |notes| {
                let since = now - notes.looked.unwrap_or(now);
                notes.looked = Some(now);
                since.min(stored.age)
            }),
            _ => stored.age,
        };
        stored.version = self.told(key, stored.version);
        stored
    }

    async fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let stored = match self.memory.read(key).await {
            Err(StoreError::NewerFormat { .. }) if self.is(Flaw::NewerIsAbsent) => None,
            answer => answer?,
        };
        if self.is(Flaw::StaleReads) {
            return Ok(self.note(key, |notes| std::mem::replace(&mut notes.last, stored)));
        }
        Ok(stored.map(|stored| self.aged(key, stored)))
    }

    async fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        if self.is(Flaw::RefusesLapsed)
            && let Some(stored) = self.memory.read(key).await?
            && stored.record.holder == next.holder
            && stored.record.state == State::Claimed
            && stored.age >= stored.record.lease
        {
            return Ok(Swap::Lost(Standing::Absent));
        }
        let condition = self.meant(key, seen).await?;
        let spoilt = self.spoilt(next);
        let answer = self.memory.swap(key, condition.as_ref(), &spoilt).await?;
        Ok(match answer {
            Swap::Written(version) => self.written(key, version, next, seen.is_none()),
            Swap::Lost(_) if self.is(Flaw::LostIsWritten) => Swap::Written(Version::number(u64::MAX)),
            Swap::Lost(_) if self.is(Flaw::LiesAboutStanding) => Swap::Lost(Standing::Absent),
            Swap::Lost(_) if self.is(Flaw::KeepsSilent) => Swap::Lost(Standing::Unknown),
            Swap::Lost(standing) => {
                if self.is(Flaw::WritesWhenLost) {
                    let version = self.memory.read(key).await?.map(|stored| stored.version);
                    let _ = self.memory.swap(key, version.as_ref(), next).await?;
                }
                Swap::Lost(match standing {
                    Standing::Is(stored) => Standing::Is(Box::new(self.aged(key, *stored))),
                    standing => standing,
                })
            }
        })
    }

    fn written(&self, key: &Key, version: Version, next: &Record, created: bool) -> Swap {
        let now = self.clock.monotonic();
        self.note(key, |notes| {
            notes.first = if created { Some(now) } else { notes.first };
            notes.count = if created { 1 } else { notes.count + 1 };
            notes.looked = Some(now);
            notes.told.insert(version.clone(), Version::number(notes.count));
        });
        if self.is(Flaw::ForgetsOnRelease) && next.state == State::Released {
            self.memory.forget(key);
        }
        if self.is(Flaw::OtherVersion) {
            return Swap::Written(Version::text("another"));
        }
        Swap::Written(self.told(key, version))
    }
}

fn odd(key: &Key) -> Result<(), StoreError> {
    if key.text().contains(['/', '\0']) {
        return Err(StoreError::Refused { what: "an odd key".into(), source: None });
    }
    Ok(())
}

impl Store for Flawed {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async move {
            if self.is(Flaw::RefusesOddKeys) {
                odd(key)?;
            }
            self.read_now(&self.named(key)).await
        })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            if self.is(Flaw::RefusesOddKeys) {
                odd(key)?;
            }
            self.swap_now(&self.named(key), seen, next).await
        })
    }
}
