//! What a cache remembers, for how long, and what it must never answer.
#![cfg(test)]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use pushonce::maintain::{Force, Reset, reset};
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::store::record::{Progress, Receipt, Record, State};
use pushonce::store::{BoxFuture, Cached, Completes, Memory, Standing, StoreError, Stored, Swap, Version};
use pushonce::testing::ManualClock;
use pushonce::{Clock, IntoKey as _, Key, RunError, Store, at_most_once, lock, mutex};
use tokio::sync::Notify;

const SECOND: Duration = Duration::from_secs(1);
const HALF_A_MINUTE: Duration = Duration::from_secs(30);

/// Two processes with a cache each, over one store that counts.
struct World {
    clock: ManualClock,
    memory: Arc<Memory>,
    inner: Arc<Chaos>,
    here: Arc<dyn Store>,
    there: Arc<dyn Store>,
}

fn world() -> World {
    let clock = ManualClock::new();
    let memory = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    let inner = Chaos::new(memory.clone());
    let store: Arc<dyn Store> = inner.clone();
    let cache = || Arc::new(Cached::new(store.clone()).clock(Arc::new(clock.clone())));
    World { here: cache(), there: cache(), memory, inner, clock }
}

fn key(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

impl World {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    /// Whether the work ran.
    async fn runs(&self, store: &Arc<dyn Store>, key: &Key) -> bool {
        match lock(key, store).clock(self.clock()).run(async { Ok(()) }).await {
            Ok(()) => true,
            Err(RunError::Skipped(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// The trips that a duplicate costs.
    async fn duplicate(&self, store: &Arc<dyn Store>, key: &Key) -> u64 {
        self.inner.take();
        assert!(!self.runs(store, key).await, "a duplicate ran");
        let trips = self.inner.take();
        trips.reads + trips.swaps
    }

    /// What stands, past the caches.
    async fn stands(&self, key: &Key) -> Stored {
        self.memory.read(key).await.unwrap().unwrap()
    }
}

fn receipt(progress: Progress) -> Receipt {
    Receipt { progress, at: 1, message: None, delivery: None }
}

#[tokio::test]
async fn a_burst_of_redeliveries_costs_no_trip() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    w.inner.take();
    let burst = join_all((0..100).map(|_| w.runs(&w.here, &key))).await;
    assert!(!burst.contains(&true));
    let trips = w.inner.take();
    assert_eq!((trips.reads, trips.swaps), (0, 0));
    w.clock.advance(HALF_A_MINUTE);
    assert_eq!(w.duplicate(&w.here, &key).await, 1);
}

#[tokio::test]
async fn what_a_read_found_done_costs_no_second_one() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    // A lost create that says what stands is not remembered.
    assert_eq!(w.duplicate(&w.there, &key).await, 1);
    assert_eq!(w.duplicate(&w.there, &key).await, 1);
    w.there.read(&key).await.unwrap();
    assert_eq!(w.duplicate(&w.there, &key).await, 0);
    // Counted from when it was found, not from when it was done.
    w.clock.advance(HALF_A_MINUTE - SECOND);
    assert_eq!(w.duplicate(&w.there, &key).await, 0);
    w.clock.advance(SECOND);
    assert_eq!(w.duplicate(&w.there, &key).await, 1);
}

#[tokio::test]
async fn a_reset_is_effective_here_at_once_and_elsewhere_after_half_a_minute() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    w.there.read(&key).await.unwrap();
    assert_eq!(reset(&w.here, &key, Force::No).await.unwrap(), Reset::Freed);
    assert_eq!(w.duplicate(&w.there, &key).await, 0);
    w.clock.advance(HALF_A_MINUTE - SECOND);
    assert_eq!(w.duplicate(&w.there, &key).await, 0);
    assert!(w.runs(&w.here, &key).await);
    let rerun = w.stands(&key).await.version;
    w.clock.advance(SECOND);
    assert_eq!(w.duplicate(&w.there, &key).await, 1);
    assert_eq!(w.stands(&key).await.version, rerun);
}

#[tokio::test]
async fn a_reset_is_effective_everywhere_after_half_a_minute() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    assert_eq!(reset(&w.there, &key, Force::No).await.unwrap(), Reset::Freed);
    assert!(!w.runs(&w.here, &key).await);
    w.clock.advance(HALF_A_MINUTE);
    assert!(w.runs(&w.here, &key).await);
}

#[tokio::test]
async fn nothing_is_remembered_past_its_ttl_or_through_a_suspended_machine() {
    let w = world();
    let short = key("short");
    let guard = || lock(&short, &w.here).ttl(10 * SECOND).clock(w.clock());
    guard().run(async { Ok(()) }).await.unwrap();
    w.clock.advance(10 * SECOND - Duration::from_millis(1));
    assert!(guard().run(async { Ok(()) }).await.is_err());
    w.clock.advance(Duration::from_millis(1));
    guard().run(async { Ok(()) }).await.unwrap();

    let key = key("suspended");
    assert!(w.runs(&w.here, &key).await);
    // Only the wall clock went on.
    w.clock.ahead(HALF_A_MINUTE);
    assert_eq!(w.duplicate(&w.here, &key).await, 1);
    w.clock.behind(HALF_A_MINUTE * 100);
    assert_eq!(w.duplicate(&w.here, &key).await, 1);
}

#[tokio::test]
async fn what_is_remembered_grows_older() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    w.clock.advance(5 * SECOND);
    w.there.read(&key).await.unwrap();
    w.clock.advance(5 * SECOND);
    let next = w.stands(&key).await.record;
    let ask = Record { state: State::Claimed, ..next };
    for (store, age) in [(&w.here, 10 * SECOND), (&w.there, 10 * SECOND)] {
        let Swap::Lost(Standing::Is(known)) = store.swap(&key, None, &ask).await.unwrap() else {
            panic!("the key is not known to be done")
        };
        assert_eq!(known.age, age);
        assert_eq!(known.version, w.stands(&key).await.version);
    }
}

#[tokio::test]
async fn marks_that_are_not_finished_and_rejected_messages_are_not_remembered() {
    let w = world();
    let started = key("started");
    let marked = || at_most_once(&started, &w.here).clock(w.clock());
    assert!(marked().run(async { Err::<(), _>("no".into()) }).await.is_err());
    for _ in 0..2 {
        w.here.read(&started).await.unwrap();
        assert_eq!(w.duplicate(&w.here, &started).await, 1);
    }

    let rejected = key("rejected");
    assert!(w.runs(&w.there, &rejected).await);
    let done = w.stands(&rejected).await;
    for progress in [Some(Progress::Rejected), None] {
        let stands = w.stands(&rejected).await;
        let next =
            Record { receipt: progress.map(receipt), token: stands.record.token, ..done.record.clone() };
        let Swap::Written(_) = w.here.swap(&rejected, Some(&stands.version), &next).await.unwrap() else {
            panic!("lost")
        };
        w.here.read(&rejected).await.unwrap();
        assert_eq!(w.duplicate(&w.here, &rejected).await, 1);
    }

    let finished = key("finished");
    at_most_once(&finished, &w.here).clock(w.clock()).run(async { Ok(()) }).await.unwrap();
    assert_eq!(w.duplicate(&w.here, &finished).await, 0);
}

#[tokio::test]
async fn a_large_record_and_one_of_a_newer_version_are_not_remembered() {
    let w = world();
    for (text, data, unknown, trips) in [
        ("small", vec![0; 1000], None, 0),
        ("large", vec![0; 1100], None, 1),
        (&*"k".repeat(2000), vec![], None, 1),
        ("newer", vec![], Some(("colour".to_owned(), "blue".into())), 1),
    ] {
        let key = key(text);
        assert!(w.runs(&w.there, &key).await);
        let stands = w.stands(&key).await;
        let mut next = Record { data: data.into(), ..stands.record };
        next.unknown.extend(unknown);
        let _ = w.here.swap(&key, Some(&stands.version), &next).await.unwrap();
        w.here.read(&key).await.unwrap();
        assert_eq!(w.duplicate(&w.here, &key).await, trips, "{}", &text[..5]);
    }
}

#[tokio::test]
async fn a_flood_of_keys_takes_no_more_room_than_there_is() {
    let w = world();
    let few: Arc<Cached<Arc<dyn Store>>> =
        Arc::new(Cached::new(w.inner.clone() as Arc<dyn Store>).entries(NonZeroUsize::new(64).unwrap()));
    let store: Arc<dyn Store> = few.clone();
    for at in 0..2000 {
        assert!(w.runs(&store, &key(&format!("po-{at}"))).await);
    }
    let mut known = 0;
    for at in 0..2000 {
        known += usize::from(w.duplicate(&store, &key(&format!("po-{at}"))).await == 0);
    }
    assert!((1..=64).contains(&known), "{known} of 64 places are taken");
    // The last one cannot have been pushed out yet.
    assert!(w.runs(&store, &key("last")).await);
    assert_eq!(w.duplicate(&store, &key("last")).await, 0);
}

#[tokio::test]
async fn a_write_that_was_lost_or_failed_is_no_reason_to_remember() {
    let w = world();
    let key = key("po-1");
    for fault in
        [None, Some(Fault::Fail), Some(Fault::LoseBefore), Some(Fault::LoseAnswer), Some(Fault::Refuse)]
    {
        w.memory.forget(&key);
        assert!(w.runs(&w.here, &key).await);
        let stands = w.stands(&key).await;
        assert_eq!(w.duplicate(&w.here, &key).await, 0);
        let old = Version::number(u64::MAX);
        let seen = if fault.is_none() { &old } else { &stands.version };
        if let Some(fault) = fault {
            w.inner.next(On::Swap, fault);
        }
        let _ = w.here.swap(&key, Some(seen), &stands.record).await;
        assert!(!w.inner.has_next());
        assert_eq!(w.duplicate(&w.here, &key).await, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn only_claims_are_answered_from_memory() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    // Deleted behind its back.
    w.memory.forget(&key);
    assert!(w.here.read(&key).await.unwrap().is_none());

    assert!(w.runs(&w.here, &key).await);
    let done = w.stands(&key).await.record;
    w.memory.forget(&key);
    // An undo of a claim that may still land.
    let undo = Record { state: State::Released, ..done };
    assert!(matches!(w.here.swap(&key, None, &undo).await.unwrap(), Swap::Written(_)));
    assert_eq!(w.stands(&key).await.record.state, State::Released);
}

#[tokio::test]
async fn a_mutex_asks_the_store_what_stands() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    assert_eq!(reset(&w.there, &key, Force::No).await.unwrap(), Reset::Freed);
    // From memory it would be told that a lock has done the key.
    mutex(&key, &w.here).clock(w.clock()).run(async { Ok(()) }).await.unwrap();
}

#[tokio::test]
async fn a_version_that_is_only_remembered_decides_nothing() {
    let w = world();
    let key = key("po-1");
    assert!(w.runs(&w.here, &key).await);
    let done = w.stands(&key).await;
    assert_eq!(reset(&w.there, &key, Force::No).await.unwrap(), Reset::Freed);
    let ask = Record { state: State::Claimed, ..done.record.clone() };
    let Swap::Lost(Standing::Is(known)) = w.here.swap(&key, None, &ask).await.unwrap() else {
        panic!("the key is not known to be done")
    };
    assert_eq!(known.version, done.version);
    assert!(matches!(w.here.swap(&key, Some(&known.version), &ask).await.unwrap(), Swap::Lost(_)));
    // And then it is no longer remembered.
    assert!(w.runs(&w.here, &key).await);
}

/// Where a call waits until it is let go.
#[derive(Debug, Default)]
struct Gate {
    closed: AtomicBool,
    reached: Notify,
    open: Notify,
}

impl Gate {
    /// Makes the next call wait.
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    async fn pass(&self) {
        if self.closed.swap(false, Ordering::SeqCst) {
            self.reached.notify_one();
            self.open.notified().await;
        }
    }
}

/// A store that holds back a read after it was served, and a write before it is.
#[derive(Debug)]
struct Slow {
    inner: Arc<Memory>,
    read: Gate,
    written: Gate,
}

impl Store for Slow {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async move {
            let answer = self.inner.read(key).await;
            self.read.pass().await;
            answer
        })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            self.written.pass().await;
            self.inner.swap(key, seen, next).await
        })
    }
}

impl Completes<()> for Slow {
    fn swap_in<'a>(
        &'a self,
        (): &'a mut (),
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(matches!(self.inner.swap(key, Some(seen), next).await?, Swap::Written(_))) })
    }
}

fn slow() -> (Arc<Cached<Slow>>, Arc<Memory>) {
    let memory = Arc::new(Memory::new());
    let slow = Slow { inner: memory.clone(), read: Gate::default(), written: Gate::default() };
    (Arc::new(Cached::new(slow)), memory)
}

#[tokio::test]
async fn what_was_read_before_a_write_is_not_remembered_after_it() {
    let (cached, _) = slow();
    let store: Arc<dyn Store> = cached.clone();
    let key = key("po-1");
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
    let gate = &cached.inner().read;
    gate.close();
    let read = async { store.read(&key).await.unwrap().unwrap().record.state };
    let resets = async {
        gate.reached.notified().await;
        let answer = reset(&store, &key, Force::No).await;
        gate.open.notify_one();
        answer.unwrap()
    };
    assert_eq!(tokio::join!(read, resets), (State::Done, Reset::Freed));
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
}

#[tokio::test]
async fn what_was_read_during_a_write_is_not_remembered_after_it() {
    let (cached, _) = slow();
    let store: Arc<dyn Store> = cached.clone();
    let key = key("po-1");
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
    let Slow { read, written, .. } = cached.inner();
    written.close();
    let reads = async {
        written.reached.notified().await;
        read.close();
        store.read(&key).await.unwrap().unwrap().record.state
    };
    let resets = async {
        let answer = reset(&store, &key, Force::No).await;
        read.open.notify_one();
        answer.unwrap()
    };
    let in_this_order = async {
        read.reached.notified().await;
        written.open.notify_one();
    };
    assert_eq!(tokio::join!(reads, resets, in_this_order), (State::Done, Reset::Freed, ()));
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
}

#[tokio::test]
async fn a_key_is_forgotten_as_soon_as_a_write_begins() {
    let (cached, memory) = slow();
    let store: Arc<dyn Store> = cached.clone();
    let key = key("po-1");
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
    let gate = &cached.inner().written;
    gate.close();
    let claims = async {
        gate.reached.notified().await;
        // Whoever still remembered the key would skip this.
        memory.forget(&key);
        let ran = lock(&key, &store).run(async { Ok(()) }).await;
        gate.open.notify_one();
        ran.unwrap();
    };
    let (answer, ()) = tokio::join!(reset(&store, &key, Force::No), claims);
    assert_eq!(answer.unwrap(), Reset::Overtaken);
}

#[tokio::test]
async fn a_key_that_is_written_in_a_transaction_is_forgotten() {
    let (cached, memory) = slow();
    let store: Arc<dyn Store> = cached.clone();
    let key = key("po-1");
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
    let stands = memory.read(&key).await.unwrap().unwrap();
    assert!(cached.swap_in(&mut (), &key, &stands.version, &stands.record).await.unwrap());
    // Whoever still remembered the key would skip this.
    memory.forget(&key);
    lock(&key, &store).run(async { Ok(()) }).await.unwrap();
}
