//! A store that counts its trips, and the time that they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{
    BoxFuture, Commits, Completes, Filter, Listing, Maintain, Page, Record, Store, StoreError, Stored, Swap,
    Version,
};
use crate::key::Key;
use crate::meter;
use crate::time::{Clock, duration_micros, system_clock};

/// A [`Store`] that counts the trips to another, by what was asked and what came of it. It stands
/// around any store; inside of a [`Cached`](super::Cached) one it counts what the cache lets through.
///
/// ```
/// use std::sync::Arc;
/// use pushonce::{Store, lock, store::{Memory, Metered}};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pushonce::RunError> {
/// let metered = Arc::new(Metered::new(Memory::new()));
/// let store: Arc<dyn Store> = metered.clone();
/// lock("po-1", &store).run(async { Ok(()) }).await?;
/// assert_eq!(metered.totals().creates.made.count, 1);
/// assert_eq!(metered.totals().updates.made.count, 1);
/// # Ok(()) }
/// ```
///
/// It counts and times whether a recorder is installed or not, which costs two readings of the clock and
/// three atomic additions for each trip. Totals only grow, as those of a metrics
/// exporter do: ask for them as often as you like, and take differences. Maintenance is not counted.
///
/// Where a recorder of the facade `metrics` is installed, each trip is told to it too
/// ([`TRIPS`](crate::measure::TRIPS), [`TRIP`](crate::measure::TRIP)); so put one `Metered` around a store, not two.
#[derive(Debug)]
pub struct Metered<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    meters: [Meters; 4],
}

/// All trips since the store was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Reads.
    pub reads: Trips,
    /// Writes on the condition that nothing stands: first claims.
    pub creates: Trips,
    /// Writes on the condition of a version, also those in a transaction of somebody else.
    pub updates: Trips,
    /// Commits of transactions in which a record was written.
    pub commits: Trips,
}

/// The trips of one kind, by what came of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trips {
    /// Read, written, or committed.
    pub made: Tally,
    /// Not written, since the condition did not hold. Zero for reads and commits.
    pub lost: Tally,
    /// Ended in a [`StoreError`], or were given up by their caller.
    pub failed: Tally,
}

/// How many trips, and how long they took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// All of their times together.
    pub time: Duration,
    /// The longest of them.
    pub longest: Duration,
}

/// What was asked, in the order of [`OPERATIONS`](crate::measure::OPERATIONS).
#[derive(Debug, Clone, Copy)]
enum Asked {
    Read,
    Create,
    Update,
    Commit,
}

/// What came of it, in the order of [`RESULTS`](crate::measure::RESULTS).
#[derive(Debug, Clone, Copy)]
enum End {
    Made,
    Lost,
    Failed,
}

#[derive(Debug, Default)]
struct Meters([Meter; 3]);

#[derive(Debug, Default)]
struct Meter {
    count: AtomicU64,
    micros: AtomicU64,
    longest: AtomicU64,
}

impl Meter {
    fn add(&self, time: Duration) {
        let micros = duration_micros(time);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.longest.fetch_max(micros, Ordering::Relaxed);
    }

    fn tally(&self) -> Tally {
        Tally {
            count: self.count.load(Ordering::Relaxed),
            time: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
            longest: Duration::from_micros(self.longest.load(Ordering::Relaxed)),
        }
    }
}

impl<S: Store> Metered<S> {
    /// Around that store, on the machine's clock.
    pub fn new(inner: S) -> Self {
        Self { inner, clock: system_clock(), meters: Default::default() }
    }

    /// The clock by which it takes the time. Default: the machine's.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The store that it stands around.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// What was counted so far. Trips that are under way are counted when they end.
    pub fn totals(&self) -> Totals {
        let [reads, creates, updates, commits] = self.meters.each_ref().map(|Meters(ends)| {
            let [made, lost, failed] = ends.each_ref().map(Meter::tally);
            Trips { made, lost, failed }
        });
        Totals { reads, creates, updates, commits }
    }

    async fn trip<T>(
        &self,
        asked: Asked,
        call: BoxFuture<'_, Result<T, StoreError>>,
        end: impl FnOnce(&T) -> End,
    ) -> Result<T, StoreError> {
        let mut trip = Trip { metered: self, asked, began: self.clock.monotonic(), end: End::Failed };
        let answer = call.await;
        if let Ok(answer) = &answer {
            trip.end = end(answer);
        }
        answer
    }
}

/// A trip under way. It is counted when it is dropped, so that one whose caller gave up is not
/// missing: the slowest are given up.
struct Trip<'a, S> {
    metered: &'a Metered<S>,
    asked: Asked,
    began: Duration,
    end: End,
}

impl<S> Drop for Trip<'_, S> {
    fn drop(&mut self) {
        let time = self.metered.clock.monotonic().saturating_sub(self.began);
        let Meters(ends) = &self.metered.meters[self.asked as usize];
        ends[self.end as usize].add(time);
        meter::trip(self.asked as usize, self.end as usize, time);
    }
}

impl<S: Store> Store for Metered<S> {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.trip(Asked::Read, self.inner.read(key), |_| End::Made))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let asked = if seen.is_none() { Asked::Create } else { Asked::Update };
        Box::pin(self.trip(asked, self.inner.swap(key, seen, next), |swap| match swap {
            Swap::Written(_) => End::Made,
            Swap::Lost(_) => End::Lost,
        }))
    }
}

impl<Tx, S: Completes<Tx>> Completes<Tx> for Metered<S> {
    fn swap_in<'a>(
        &'a self,
        tx: &'a mut Tx,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let end = |written: &bool| if *written { End::Made } else { End::Lost };
        Box::pin(self.trip(Asked::Update, self.inner.swap_in(tx, key, seen, next), end))
    }
}

impl<Tx: Send + 'static, S: Commits<Tx>> Commits<Tx> for Metered<S> {
    fn commit(&self, tx: Tx) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.trip(Asked::Commit, self.inner.commit(tx), |()| End::Made))
    }
}

impl<S: Maintain> Maintain for Metered<S> {
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
