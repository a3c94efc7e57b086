//! The in-memory store: for tests, demos and one process. Nothing survives a restart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::record::understood;
use super::{
    BoxFuture, Filter, Found, Listing, Maintain, Page, Record, Standing, Store, StoreError, Stored, Swap,
    Version,
};
use crate::key::Key;
use crate::time::{Clock, micros, system_clock};

/// Many small maps, so that growing one never stalls a claim: at a million keys each holds a few thousand.
const SHARDS: usize = 256;

/// A [`Store`] in this process's memory.
///
/// Every law of a store holds, but for as long as the process lives: on Cloud Run an instance can go
/// at any time and others do not see its memory. Expired records are dropped when their map grows.
#[derive(Debug)]
pub struct Memory {
    shards: Vec<Mutex<HashMap<Key, Entry>>>,
    // Of the whole store and never reused, so that no version names two contents, also across deletion.
    versions: AtomicU64,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct Entry {
    // Behind a pointer, so that a map that grows moves little.
    record: Box<Record>,
    version: u64,
    written: Duration,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// An empty store on the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(system_clock())
    }

    /// An empty store that counts ages by `clock`.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, versions: AtomicU64::new(0), clock }
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Deletes a record, as garbage collection or an operator would.
    #[cfg(feature = "testing")]
    pub fn forget(&self, key: &Key) {
        lock(self.shard(key)).remove(key);
    }

    /// Spreads rising ids; a sender that aims at one shard gets a map like any other, only larger.
    fn shard(&self, key: &Key) -> &Mutex<HashMap<Key, Entry>> {
        &self.shards[shard_of(key.text())]
    }

    fn stored(&self, entry: &Entry) -> Result<Stored, StoreError> {
        understood(entry.record.format)?;
        let age = self.clock.monotonic().saturating_sub(entry.written);
        Ok(Stored { record: (*entry.record).clone(), version: Version::number(entry.version), age })
    }

    fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        lock(self.shard(key)).get(key).map(|entry| self.stored(entry)).transpose()
    }

    fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        next.fits()?;
        let mut shard = lock(self.shard(key));
        let now = self.clock.monotonic();
        match (shard.get_mut(key), seen) {
            (None, None) => {}
            (None, Some(_)) => return Ok(Swap::Lost(Standing::Absent)),
            (Some(entry), seen) => {
                if seen.and_then(Version::as_number) != Some(entry.version) {
                    return Ok(Swap::Lost(Standing::Is(Box::new(self.stored(entry)?))));
                }
                let version = self.next_version();
                next.clone_into(&mut entry.record);
                (entry.version, entry.written) = (version, now);
                return Ok(Swap::Written(Version::number(version)));
            }
        }
        if shard.len() == shard.capacity() {
            let now = micros(self.clock.wall());
            shard.retain(|_, entry| entry.record.expires > now);
        }
        let version = self.next_version();
        shard.insert(key.clone(), Entry { record: Box::new(next.clone()), version, written: now });
        Ok(Swap::Written(Version::number(version)))
    }

    fn next_version(&self) -> u64 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Store for Memory {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(std::future::ready(self.read_now(key)))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move { self.swap_now(key, seen, next) })
    }
}

impl Maintain for Memory {
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(std::future::ready(Ok(self.purge(limit))))
    }

    /// Shard by shard, and in each by key.
    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(std::future::ready(Ok(self.page(filter, page))))
    }
}

impl Memory {
    fn purge(&self, limit: usize) -> usize {
        let now = micros(self.clock.wall());
        let mut left = limit;
        for shard in &self.shards {
            lock(shard).retain(|_, entry| {
                let stays = left == 0 || entry.record.expires > now;
                left -= usize::from(!stays);
                stays
            });
        }
        limit - left
    }

    fn page(&self, filter: &Filter, page: &Page) -> Listing {
        let mut listing = Listing::default();
        let mut left = page.limit.max(1);
        let mut after = page.after.as_deref();
        let first = after.map_or(0, |shown| shard_of(shown.split_once(':').map_or(shown, |(_, text)| text)));
        for shard in &self.shards[first..] {
            let shard = lock(shard);
            let mut rest: Vec<_> = shard
                .iter()
                .map(|(key, entry)| (key.in_full(), key, entry))
                .filter(|(shown, ..)| after.is_none_or(|after| shown.as_str() > after))
                .collect();
            rest.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
            for (shown, key, entry) in rest {
                if left == 0 {
                    return listing;
                }
                left -= 1;
                if filter.takes(&shown, &entry.record) {
                    listing.found.push(Found { key: key.shown(), stored: self.stored(entry) });
                }
                // Where this is the last one, the page after it is empty.
                listing.next = Some(shown);
            }
            after = None;
        }
        listing.next = None;
        listing
    }
}

/// Which map has the keys of that text.
fn shard_of(text: &str) -> usize {
    text.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % SHARDS
}

/// A panic while the lock was held cannot leave a map half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
