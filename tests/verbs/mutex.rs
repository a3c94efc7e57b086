//! `mutex`: one at a time, and none is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pushonce::History;
use pushonce::store::record::{Ended, State};

use crate::world::{Runs, SECOND, World, begin, seconds};

#[tokio::test(start_paused = true)]
async fn different_messages_of_one_entity_run_one_at_a_time_and_none_is_dropped() {
    let (world, inside, runs) = (World::new(), Arc::new(AtomicU32::new(0)), Runs::default());
    let mut callers = Vec::new();
    for _ in 0..5 {
        let (inside, runs) = (inside.clone(), runs.clone());
        let work = async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::time::sleep(SECOND).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            runs.add();
            Ok(())
        };
        callers.push(begin(world.mutex("k").wait(seconds(60)).run(work)).await);
    }
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(runs.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn success_and_failure_both_release_and_success_forgets_the_history() {
    let world = World::new();
    world.mutex("k").run(async { Err::<(), _>("no".into()) }).await.unwrap_err();
    let history = world.mutex("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Failed { runs: 1 });
    let record = world.record("k").await.unwrap();
    assert_eq!((record.state, record.ended, record.runs), (State::Released, Ended::Fresh, 0));
    let history = world.mutex("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Fresh);
}

#[tokio::test(start_paused = true)]
async fn the_fence_rises_with_every_claim() {
    let world = World::new();
    let mut last = 0;
    for _ in 0..4 {
        let fence = world.mutex("k").run_with(|lease| async move { Ok(lease.fence()) }).await.unwrap();
        assert!(fence > last);
        last = fence;
    }
}
