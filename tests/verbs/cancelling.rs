//! A work timeout stops the work only: what it started may go on, so its key is left to lapse unless it is safe to cancel.

use pushonce::store::record::{Ended, State};
use pushonce::{History, RunError, Skip, TimedOut};

use crate::world::{Runs, World, find, seconds, slow};

/// Tells when it is dropped.
struct Dropped(Runs);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[tokio::test(start_paused = true)]
async fn work_over_its_time_is_stopped_and_its_key_left_to_lapse() {
    let (world, dropped) = (World::new(), Runs::default());
    let (began, held) = (tokio::time::Instant::now(), Dropped(dropped.clone()));
    let work = async move {
        let _held = held;
        std::future::pending::<Result<(), _>>().await
    };
    let late = world.lock("k").lease(seconds(60)).work_timeout(seconds(10)).run(work).await.unwrap_err();
    assert!(matches!(late, RunError::Work(_)), "{late:?}");
    assert_eq!(find::<TimedOut>(&late).unwrap().limit, seconds(10));
    assert_eq!((began.elapsed().as_secs(), dropped.count()), (10, 1));
    let early = world.lock("k").run(async { Ok(()) }).await;
    assert!(matches!(early, Err(RunError::Skipped(Skip::InProgress { .. }))), "{early:?}");
    tokio::time::sleep(seconds(50)).await;
    let history = world.lock("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Unknown { runs: 1 });
}

#[tokio::test(start_paused = true)]
async fn work_that_is_safe_to_cancel_is_released_as_unknown_at_once() {
    let world = World::new();
    let guarded = world.lock("k").work_timeout(seconds(10)).cancel_safe();
    guarded.run(std::future::pending::<Result<(), _>>()).await.unwrap_err();
    let record = world.record("k").await.unwrap();
    assert_eq!((record.state, record.ended), (State::Released, Ended::Unknown));
    let history = world.lock("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Unknown { runs: 1 });
}

#[tokio::test(start_paused = true)]
async fn work_that_succeeds_at_its_very_limit_is_recorded() {
    let world = World::new();
    let work = slow(seconds(10));
    world.lock("k").work_timeout(seconds(10)).cancel_safe().run(work).await.unwrap();
    assert_eq!(world.state("k").await, Some(State::Done));
}
