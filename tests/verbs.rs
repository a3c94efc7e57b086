//! The verbs on the memory store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pushonce::store::Memory;
use pushonce::{History, RunError, Skip, Store, at_most_once, lock, mutex};

fn memory() -> Arc<dyn Store> {
    Arc::new(Memory::new())
}

#[tokio::test(start_paused = true)]
async fn a_recorded_key_is_skipped() {
    let store = memory();
    let runs = Arc::new(AtomicU32::new(0));
    for _ in 0..3 {
        let runs = runs.clone();
        let _ = lock("k", &store).run(async move { Ok(runs.fetch_add(1, Ordering::SeqCst)) }).await;
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_work_runs_again_and_says_so() {
    let store = memory();
    let failed = lock("k", &store).run(async { Err::<(), _>("no".into()) }).await;
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    let history = lock("k", &store).run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Failed { runs: 1 });
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_caught_and_the_next_run_knows_that_its_end_is_unknown() {
    let store = memory();
    let failed = lock("k", &store).run::<(), _>(async { panic!("boom") }).await;
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    let history = lock("k", &store).run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Unknown { runs: 1 });
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_duplicate_is_told_that_it_is_in_progress() {
    let store = memory();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let first = tokio::spawn({
        let store = store.clone();
        async move { lock("k", &store).run(async move { Ok(released.await?) }).await }
    });
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    let second = lock("k", &store).run(async { Ok(()) }).await;
    assert!(matches!(second, Err(RunError::Skipped(Skip::InProgress { .. }))), "{second:?}");
    release.send(()).unwrap();
    first.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mutex_serializes_and_drops_none() {
    let store = memory();
    let inside = Arc::new(AtomicU32::new(0));
    let runs = (0..5).map(|_| {
        let (store, inside) = (store.clone(), inside.clone());
        tokio::spawn(async move {
            mutex("k", &store)
                .wait(Duration::from_secs(60))
                .run(async move {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                })
                .await
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_once_never_repeats_a_failure() {
    let store = memory();
    let failed = at_most_once("k", &store).run(async { Err::<(), _>("no".into()) }).await;
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    assert!(at_most_once("k", &store).run(async { Ok(()) }).await.unwrap().is_none());
}
