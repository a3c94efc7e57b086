//! What an operator does to keys that the verbs hold: inspect, reset, purge.
#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use pushonce::maintain::{Filter, Force, Inspected, Maintain as _, Page, Reset, Status, inspect, reset};
use pushonce::store::Memory;
use pushonce::testing::ManualClock;
use pushonce::{Clock, History, IntoKey as _, Key, RunError, Store, at_most_once, lock, mutex};

const LEASE: Duration = Duration::from_secs(60);
const TTL: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct World {
    clock: ManualClock,
    memory: Arc<Memory>,
    store: Arc<dyn Store>,
}

fn world() -> World {
    let clock = ManualClock::new();
    let memory = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    World { clock, store: memory.clone(), memory }
}

fn key(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

impl World {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    async fn status(&self, key: &Key) -> Status {
        inspect(&self.store, key).await.unwrap().unwrap().status
    }

    /// Runs it to its end under `lock`.
    async fn done(&self, key: &Key) {
        let guard = lock(key, &self.store).lease(LEASE).ttl(TTL).clock(self.clock());
        guard.run(async { Ok(()) }).await.unwrap();
    }

    async fn history(&self, key: &Key) -> Result<History, RunError> {
        let guard = lock(key, &self.store).lease(LEASE).ttl(TTL).clock(self.clock());
        guard.run_with(|lease| async move { Ok(lease.history()) }).await
    }
}

#[tokio::test]
async fn a_key_is_inspected_in_words() {
    let w = world();
    let key = key("po-1");
    assert!(inspect(&w.store, &key).await.unwrap().is_none());

    let (store, inspected) = (w.store.clone(), key.clone());
    let clock = w.clock.clone();
    let guard = lock(&key, &w.store).lease(LEASE).ttl(TTL).clock(w.clock());
    let words = guard.run_with(|_| async move {
        clock.advance(Duration::from_secs(20));
        let held = inspect(&store, &inspected).await?.unwrap();
        clock.advance(Duration::from_secs(40));
        let lapsed = inspect(&store, &inspected).await?.unwrap();
        assert_eq!((held.age, lapsed.age), (Duration::from_secs(20), LEASE));
        Ok([held.status.to_string(), lapsed.status.to_string()])
    });
    let [held, lapsed] = words.await.unwrap();
    assert_eq!(held, "held for another 40 s");
    assert_eq!(lapsed, "lapsed: free, but its holder may still complete it");

    assert_eq!(w.status(&key).await.to_string(), "done for another 60 min");
    w.clock.advance(TTL);
    assert_eq!(w.status(&key).await, Status::Expired);
    let failed = lock(&key, &w.store).clock(w.clock()).run(async { Err::<(), _>("no".into()) }).await;
    assert!(failed.is_err());
    assert_eq!(w.status(&key).await, Status::Released);
    let marked = at_most_once(&key, &w.store).ttl(TTL).clock(w.clock());
    assert!(marked.run(async { Err::<(), _>("no".into()) }).await.is_err());
    let Inspected { status, record, .. } = inspect(&w.store, &key).await.unwrap().unwrap();
    assert_eq!(status, Status::Started { left: TTL });
    assert_eq!(
        record.receipt.map(|receipt| receipt.progress),
        Some(pushonce::store::record::Progress::Started)
    );
}

#[tokio::test]
async fn a_done_key_that_is_reset_runs_again_and_is_told_of_the_run_before() {
    let w = world();
    let key = key("po-1");
    w.done(&key).await;
    assert!(w.history(&key).await.is_err(), "a duplicate ran");
    assert_eq!(reset(&w.store, &key, Force::No).await.unwrap(), Reset::Freed);
    assert_eq!(reset(&w.store, &key, Force::No).await.unwrap(), Reset::Free);
    assert_eq!(w.history(&key).await.unwrap(), History::Unknown { runs: 1 });
    assert!(w.history(&key).await.is_err(), "the run after the reset was not recorded");
}

#[tokio::test]
async fn work_whose_key_was_reset_can_record_nothing() {
    let w = world();
    let key = key("po-1");
    let (store, held) = (w.store.clone(), key.clone());
    let zombie = lock(&key, &w.store).lease(LEASE).ttl(TTL).clock(w.clock());
    let fences = zombie.run_with(|lease| async move {
        assert!(matches!(reset(&store, &held, Force::No).await?, Reset::Held { .. }));
        assert_eq!(reset(&store, &held, Force::Yes).await?, Reset::Freed);
        Ok((lease.fence(), inspect(&store, &held).await?.unwrap().record.fence))
    });
    // Its work is through all the same, and reported as uncertain.
    let (held, reset) = fences.await.unwrap();
    assert!(reset > held);
    assert_eq!(w.status(&key).await, Status::Released);
    assert_eq!(w.history(&key).await.unwrap(), History::Unknown { runs: 1 });
}

#[tokio::test]
async fn a_mutex_and_a_mark_can_be_reset() {
    let w = world();
    let (entity, mark) = (key("entity"), key("mark"));
    let (store, held) = (w.store.clone(), entity.clone());
    let guard = mutex(&entity, &w.store).clock(w.clock());
    let forced = guard.run(async move { Ok(reset(&store, &held, Force::Yes).await?) });
    assert_eq!(forced.await.unwrap(), Reset::Freed);
    // Released, so any verb may take it.
    w.done(&entity).await;

    let marked = || at_most_once(&mark, &w.store).lease(LEASE).ttl(TTL).clock(w.clock());
    assert!(marked().run(async { Err::<(), _>("no".into()) }).await.is_err());
    assert!(
        matches!(reset(&w.store, &mark, Force::No).await.unwrap(), Reset::Held { left } if left == LEASE)
    );
    w.clock.advance(LEASE);
    assert_eq!(reset(&w.store, &mark, Force::No).await.unwrap(), Reset::Freed);
    marked().run(async { Ok(()) }).await.unwrap();
}

#[tokio::test]
async fn memory_is_purged_by_its_clock() {
    let w = world();
    w.done(&key("old")).await;
    w.clock.advance(DAY);
    w.done(&key("new")).await;
    assert_eq!(w.memory.purge_expired(usize::MAX).await.unwrap(), 0);
    w.clock.advance(TTL);
    assert_eq!(w.memory.purge_expired(usize::MAX).await.unwrap(), 1);
    let listing = w.memory.list(&Filter::default(), &Page::default()).await.unwrap();
    assert_eq!(listing.found.iter().map(|found| &*found.key).collect::<Vec<_>>(), ["orders:new"]);
}
