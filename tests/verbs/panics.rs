//! Panics are caught wherever user code runs, and change nothing but the outcome of the work itself.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, State};
use pushonce::store::{BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::{History, Key, Panicked, RunError, Store, lock};

use crate::world::{Runs, World, begin, find, hang_up, is_unavailable, seconds};

/// Panics when it is dropped.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bomb")
    }
}

impl std::error::Error for Bomb {}

async fn released_as_unknown(world: &World, failed: Result<(), RunError>, said: &str) {
    let failed = failed.unwrap_err();
    assert!(matches!(failed, RunError::Work(_)), "{failed:?}");
    assert_eq!(find::<Panicked>(&failed).unwrap().message, said);
    let record = world.record("k").await.unwrap();
    assert_eq!((record.state, record.ended), (State::Released, Ended::Unknown));
    let history = world.lock("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Unknown { runs: 1 });
}

// F49
#[tokio::test(start_paused = true)]
async fn work_that_panics_is_released_as_unknown_and_runs_again_at_once() {
    let world = World::new();
    let failed = world.lock("k").run(async { panic!("no {}", "luck") }).await;
    released_as_unknown(&world, failed, "no luck").await;
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_panics_before_it_returns_its_work_is_no_different() {
    let world = World::new();
    let failed = world
        .lock("k")
        .run_with(|lease| {
            assert!(lease.fence() == 0, "in the closure");
            async { Ok(()) }
        })
        .await;
    released_as_unknown(&world, failed, "in the closure").await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_that_panics_again_when_it_is_dropped_is_no_different() {
    let world = World::new();
    let failed = world.lock("k").run(async { panic_any(Bomb) }).await;
    released_as_unknown(&world, failed, "no message").await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_work_that_panics_when_it_is_dropped_is_still_released() {
    let world = World::new();
    let work = async {
        let _bomb = Bomb;
        std::future::pending::<Result<(), _>>().await
    };
    let late = world.lock("k").work_timeout(seconds(1)).cancel_safe().run(work).await.unwrap_err();
    assert!(find::<pushonce::TimedOut>(&late).is_some(), "{late:?}");
    assert_eq!(world.state("k").await, Some(State::Released));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_panics_when_nobody_takes_it_does_not_stop_the_completion() {
    let world = World::new();
    world.chaos.always(On::Complete, Fault::Fail);
    hang_up(begin(world.lock("k").run(async { Ok(Bomb) })).await).await;
    tokio::time::sleep(seconds(10)).await;
    world.chaos.heal();
    world.until("k", State::Done).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_nobody_takes_it_does_not_stop_the_release() {
    let world = World::new();
    world.chaos.always(On::Release, Fault::Fail);
    hang_up(begin(world.lock("k").run(async { Err::<(), _>(Bomb.into()) })).await).await;
    tokio::time::sleep(seconds(10)).await;
    world.chaos.heal();
    world.until("k", State::Released).await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_changes_nothing() {
    let (world, told) = (World::new(), Runs::default());
    world.chaos.always(On::Complete, Fault::Fail);
    let hook = told.clone();
    let guarded = world.lock("k").on_uncertain(move |_| {
        hook.add();
        panic!("in the hook");
    });
    assert_eq!(guarded.run(async { Ok("done") }).await.unwrap(), "done");
    assert_eq!(told.count(), 1);
    world.chaos.heal();
    world.until("k", State::Done).await;
}

/// A store that panics, once, when a record of that state is to be written: before it has written
/// it, or when it has.
#[derive(Debug)]
struct Flawed {
    inner: Arc<dyn Store>,
    at: State,
    written: bool,
    spent: AtomicBool,
}

impl Flawed {
    fn over(world: &World, at: State, written: bool) -> Arc<dyn Store> {
        Arc::new(Self { inner: world.store.clone(), at, written, spent: false.into() })
    }
}

impl Store for Flawed {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.inner.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let panics = next.state == self.at && !self.spent.swap(true, Ordering::SeqCst);
        assert!(!panics || self.written, "a flaw of the store");
        Box::pin(async move {
            let swapped = self.inner.swap(key, seen, next).await;
            assert!(!panics, "a flaw of the store");
            swapped
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_loses_no_work_that_is_done() {
    for written in [false, true] {
        let world = World::new();
        let store = Flawed::over(&world, State::Done, written);
        let done = lock("k", &store).clock(world.clock.clone()).run(async { Ok("done") }).await;
        assert_eq!(done.unwrap(), "done", "written: {written}");
        assert_eq!(world.state("k").await, Some(State::Done), "written: {written}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_in_every_claim_is_unavailable_and_starts_nothing() {
    #[derive(Debug)]
    struct Broken;

    impl Store for Broken {
        fn read<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
            panic!("a flaw of the store")
        }

        fn swap<'a>(
            &'a self,
            _: &'a Key,
            _: Option<&'a Version>,
            _: &'a Record,
        ) -> BoxFuture<'a, Result<Swap, StoreError>> {
            panic!("a flaw of the store")
        }
    }

    let (store, runs): (Arc<dyn Store>, _) = (Arc::new(Broken), Runs::default());
    assert!(is_unavailable(&lock("k", &store).run(runs.work()).await));
    assert_eq!(runs.count(), 0);
}
