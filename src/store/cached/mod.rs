//! A store that remembers which keys are done, so that a redelivery burst costs no trip.

mod places;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use self::places::{Places, Ticket};
use super::record::{Progress, Record, State};
use super::{
    BoxFuture, Commits, Completes, Filter, Listing, Maintain, Page, Standing, Store, StoreError, Stored,
    Swap, Version,
};
use crate::key::Key;
use crate::time::{Clock, Stopwatch, system_clock};

/// How many keys are remembered, unless it is told otherwise.
const ENTRIES: usize = 16_384;
/// How long a key is remembered: after that a reset is effective everywhere.
const LONGEST: Duration = Duration::from_secs(30);
/// The most bytes of text and data that are remembered with a key.
const ROOM: usize = 1024;

/// A [`Store`] that remembers done keys for another, so that duplicates of what was done a moment ago
/// cost no trip. It is the memory of one process, around any store.
///
/// ```
/// use std::sync::Arc;
/// use pushonce::{Store, store::{Cached, connect}};
///
/// let store: Arc<dyn Store> = Arc::new(Cached::new(connect("memory:")?));
/// # Ok::<(), pushonce::store::ConnectError>(())
/// ```
///
/// **What it remembers**: keys whose work succeeded, as a [read](Store::read) found them or as this
/// process recorded them itself, for at most 30 seconds and never past their ttl. So after a
/// [reset](crate::maintain::reset) other processes may skip duplicates for up to 30 seconds more; in
/// its own the key is free at once. Never a claim, a mark whose work is not known to have succeeded,
/// or a rejected message.
///
/// **What it answers**: a claim, which then finds the key done. Reads, and all other writes, go to the
/// store, so nobody takes a key over, completes it or is fenced out by what is only remembered.
///
/// **What it costs**: room for 16,384 keys ([`entries`](Self::entries)), usually half a KiB each. A key
/// may push another out before its time, so a flood of keys costs trips, and never memory. A record
/// with more than 1 KiB of key and data, or with fields of a newer version, is not remembered.
pub struct Cached<S> {
    inner: S,
    places: Places,
    clock: Arc<dyn Clock>,
}

impl<S: Store> Cached<S> {
    /// Around that store, on the machine's clock.
    pub fn new(inner: S) -> Self {
        Self { inner, places: Places::new(ENTRIES), clock: system_clock() }
    }

    /// How many keys it remembers at most. Default 16,384.
    #[must_use]
    pub fn entries(self, entries: NonZeroUsize) -> Self {
        Self { places: Places::new(entries.get()), ..self }
    }

    /// The clock by which it forgets. Default: the machine's.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The store that it stands around.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Remembers what was found or written since then, if it is of the kind that may be.
    fn remember(&self, key: &Key, stored: &Stored, since: Stopwatch, ticket: Ticket) -> bool {
        let age = stored.record.aged.saturating_add(stored.age);
        let keep = stored.record.ttl.saturating_sub(age).min(LONGEST);
        is_finished(&stored.record)
            && fits(key, &stored.record)
            && self.places.remember(key, stored.clone(), since, keep, ticket)
    }

    fn writing<'a>(&'a self, key: &'a Key) -> Writing<'a, S> {
        let since = Stopwatch::start(&self.clock);
        Writing { cached: self, key, since, ticket: self.places.outdate(key), known: false }
    }

    async fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let (since, ticket) = (Stopwatch::start(&self.clock), self.places.ticket(key));
        let found = self.inner.read(key).await?;
        let known = found.as_ref().is_some_and(|stored| self.remember(key, stored, since, ticket));
        if !known {
            self.places.forget(key);
        }
        Ok(found)
    }

    async fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        // Only a claim is answered from memory. A released record is created to undo one that may still
        // land, and that needs to know what stands.
        if seen.is_none()
            && next.state != State::Released
            && let Some(known) = self.places.known(key)
        {
            return Ok(Swap::Lost(Standing::Is(Box::new(known))));
        }
        let writing = self.writing(key);
        let swap = self.inner.swap(key, seen, next).await?;
        // What a lost swap says of the standing record is not remembered. No law demands of it what is
        // demanded of a read, that it sees every write which was answered before: a cache below answers
        // it from a memory of its own, and the two would add up to more than the bound.
        if let Swap::Written(version) = &swap {
            writing.wrote(next, version);
        }
        Ok(swap)
    }
}

/// A write under way. It ends, also where its caller gives up, with the key forgotten, since a read may
/// meanwhile have found what it overwrites; unless what it wrote is known.
struct Writing<'a, S: Store> {
    cached: &'a Cached<S>,
    key: &'a Key,
    since: Stopwatch,
    ticket: Ticket,
    known: bool,
}

impl<S: Store> Writing<'_, S> {
    fn wrote(mut self, record: &Record, version: &Version) {
        if !is_finished(record) {
            return;
        }
        let stored = Stored { record: record.clone(), version: version.clone(), age: Duration::ZERO };
        self.known = self.cached.remember(self.key, &stored, self.since.clone(), self.ticket);
    }
}

impl<S: Store> Drop for Writing<'_, S> {
    fn drop(&mut self) {
        if !self.known {
            self.cached.places.outdate(self.key);
        }
    }
}

/// Whether duplicates may be told so without asking: the work has succeeded, and that is final.
fn is_finished(record: &Record) -> bool {
    record.state == State::Done
        && record.receipt.as_ref().is_some_and(|receipt| receipt.progress == Progress::Finished)
}

/// Whether it is small, and says nothing that this version does not understand.
fn fits(key: &Key, record: &Record) -> bool {
    let names = record.receipt.iter().flat_map(|receipt| [&receipt.message, &receipt.delivery]).flatten();
    let room = key.text().len() + record.data.len() + names.map(|name| name.len()).sum::<usize>();
    room <= ROOM && record.unknown.is_empty()
}

impl<S: Store> Store for Cached<S> {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.read_now(key))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.swap_now(key, seen, next))
    }
}

impl<Tx: Send, S: Completes<Tx>> Completes<Tx> for Cached<S> {
    fn swap_in<'a>(
        &'a self,
        tx: &'a mut Tx,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            // Forgotten, and not remembered as done: it is not, until the transaction is committed.
            let _writing = self.writing(key);
            self.inner.swap_in(tx, key, seen, next).await
        })
    }
}

impl<Tx: Send + 'static, S: Commits<Tx>> Commits<Tx> for Cached<S> {
    /// Nothing is remembered by it: a transaction does not say which keys it completed, nor under which
    /// versions. The first duplicate asks the store.
    fn commit(&self, tx: Tx) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.commit(tx)
    }
}

impl<S: Maintain> Maintain for Cached<S> {
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.check()
    }

    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.purge_expired(limit)
    }

    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        self.inner.list(filter, page)
    }
}

impl<S: fmt::Debug> fmt::Debug for Cached<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner, places, clock: _ } = self;
        f.debug_struct("Cached").field("inner", inner).field("entries", &places.len()).finish()
    }
}
