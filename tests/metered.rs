//! What a meter counts, and when.
#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::store::{
    BoxFuture, Commits, Completes, Memory, Metered, StoreError, Stored, Swap, Trips, Version,
};
use pushonce::store::{Record, Totals};
use pushonce::testing::ManualClock;
use pushonce::{IntoKey as _, Key, Store, lock};

const SECOND: Duration = Duration::from_secs(1);

fn key(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

fn counts(trips: Trips) -> [u64; 3] {
    [trips.made.count, trips.lost.count, trips.failed.count]
}

#[tokio::test]
async fn trips_are_counted_by_what_was_asked_and_what_came_of_it() {
    let chaos = Chaos::new(Arc::new(Memory::new()));
    let metered = Arc::new(Metered::new(chaos.clone()));
    let store: Arc<dyn Store> = metered.clone();
    assert_eq!(metered.totals(), Totals::default());
    lock(key("a"), &store).run(async { Ok(()) }).await.unwrap();
    assert!(lock(key("a"), &store).run(async { Ok(()) }).await.is_err());
    chaos.next(On::Claim, Fault::LoseBefore);
    chaos.next(On::Read, Fault::Fail);
    lock(key("b"), &store).run(async { Ok(()) }).await.unwrap();
    let totals = metered.totals();
    assert_eq!(counts(totals.creates), [2, 1, 1]);
    assert_eq!(counts(totals.updates), [2, 0, 0]);
    assert_eq!(counts(totals.reads), [1, 0, 1]);
    assert_eq!(counts(totals.commits), [0, 0, 0]);
}

/// A store whose calls take the time that the clock is moved by, or for ever.
#[derive(Debug)]
struct Slow {
    inner: Memory,
    clock: ManualClock,
    takes: Option<Duration>,
}

impl Slow {
    async fn wait(&self) {
        match self.takes {
            Some(time) => self.clock.advance(time),
            None => std::future::pending().await,
        }
    }
}

impl Store for Slow {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async move {
            self.wait().await;
            self.inner.read(key).await
        })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            self.wait().await;
            self.inner.swap(key, seen, next).await
        })
    }
}

impl Completes<bool> for Slow {
    fn swap_in<'a>(
        &'a self,
        holds: &'a mut bool,
        _: &'a Key,
        _: &'a Version,
        _: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(*holds) })
    }
}

impl Commits<bool> for Slow {
    fn commit(&self, holds: bool) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { if holds { Ok(()) } else { Err(StoreError::unanswered("no answer")) } })
    }
}

fn slow(takes: Option<Duration>) -> (Metered<Slow>, ManualClock) {
    let clock = ManualClock::new();
    let slow = Slow { inner: Memory::with_clock(Arc::new(clock.clone())), clock: clock.clone(), takes };
    (Metered::new(slow).clock(Arc::new(clock.clone())), clock)
}

#[tokio::test]
async fn times_add_up_and_the_longest_stays() {
    let (metered, _) = slow(Some(SECOND));
    for _ in 0..3 {
        metered.read(&key("a")).await.unwrap();
    }
    let made = metered.totals().reads.made;
    assert_eq!((made.count, made.time, made.longest), (3, 3 * SECOND, SECOND));
}

#[tokio::test]
async fn a_trip_that_its_caller_gave_up_is_counted_as_failed() {
    let (metered, clock) = slow(None);
    let key = key("a");
    let mut read = metered.read(&key);
    assert!((&mut read).now_or_never().is_none());
    clock.advance(SECOND);
    drop(read);
    let failed = metered.totals().reads.failed;
    assert_eq!((failed.count, failed.time), (1, SECOND));
}

#[tokio::test]
async fn a_swap_in_a_transaction_and_its_commit_are_trips() {
    let (metered, _) = slow(Some(SECOND));
    let key = key("a");
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
    let stands = store.read(&key).await.unwrap().unwrap();
    for mut holds in [true, false] {
        let _ = metered.swap_in(&mut holds, &key, &stands.version, &stands.record).await.unwrap();
        let _ = metered.commit(holds).await;
    }
    assert_eq!(counts(metered.totals().updates), [1, 1, 0]);
    assert_eq!(counts(metered.totals().commits), [1, 0, 1]);
}
