//! `lock`: once recorded, skipped until the ttl has passed; what failed or crashed runs again, and is told so.

use std::collections::HashSet;
use std::sync::Arc;

use pushonce::store::record::{Progress, State};
use pushonce::testing::ManualClock;
use pushonce::{History, RunError, Skip};

use crate::world::{Runs, World, begin, crash, seconds, slow};

#[tokio::test(start_paused = true)]
async fn a_recorded_key_is_skipped_until_its_ttl_has_passed() {
    // F46: past the ttl a very late redelivery runs again, which is why it is Pub/Sub's retention by default.
    let (world, runs) = (World::new(), Runs::default());
    world.lock("k").ttl(seconds(60)).run(runs.work()).await.unwrap();
    tokio::time::sleep(seconds(59)).await;
    // The ttl that counts is the record's, not that of whoever asks.
    let again = world.lock("k").ttl(seconds(1)).run(runs.work()).await;
    let Err(RunError::Skipped(Skip::Duplicate { receipt: Some(receipt), conflict: false })) = again else {
        panic!("{again:?}");
    };
    assert_eq!(receipt.progress, Progress::Finished);
    tokio::time::sleep(seconds(1)).await;
    let history = world.lock("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!((runs.count(), history), (1, History::Fresh));
}

#[tokio::test(start_paused = true)]
async fn a_first_message_costs_two_trips_and_a_duplicate_one() {
    let world = World::new();
    world.lock("k").run(async { Ok(()) }).await.unwrap();
    let first = world.chaos.take();
    assert_eq!((first.reads, first.swaps), (0, 2));
    world.lock("k").run(async { Ok(()) }).await.unwrap_err();
    let duplicate = world.chaos.take();
    assert_eq!((duplicate.reads, duplicate.swaps), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn failed_work_runs_again_at_once_and_says_how_often_it_failed() {
    let world = World::new();
    for failures in 1..=2 {
        let failed = world.lock("k").run(async { Err::<(), _>("no".into()) }).await;
        assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
        assert_eq!(world.record("k").await.unwrap().runs, failures);
    }
    let history = world.lock("k").run_with(|lease| async move { Ok(lease.history()) }).await.unwrap();
    assert_eq!(history, History::Failed { runs: 2 });
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_duplicate_is_told_that_it_is_in_progress() {
    let world = World::new();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let first = begin(world.lock("k").lease(seconds(60)).run(async move { Ok(released.await?) })).await;
    tokio::time::sleep(seconds(20)).await;
    let second = world.lock("k").run(async { Ok(()) }).await;
    let Err(RunError::Skipped(Skip::InProgress { left })) = second else { panic!("{second:?}") };
    assert!(left > seconds(39) && left < seconds(40), "{left:?}");
    release.send(()).unwrap();
    first.await.unwrap().unwrap();
}

// F60
#[test]
fn a_crashed_holder_is_taken_over_when_its_lease_lapses_and_the_next_run_is_warned() {
    let clock = ManualClock::new();
    let world = Arc::new(World::on(Arc::new(clock.clone())));
    crash({
        let world = world.clone();
        async move {
            drop(
                begin(world.lock("k").lease(seconds(60)).run(std::future::pending::<Result<(), _>>())).await,
            );
        }
    });
    let fence =
        |world: &World| futures_util::FutureExt::now_or_never(world.record("k")).unwrap().unwrap().fence;
    let first = fence(&world);
    crash({
        let world = world.clone();
        async move {
            let early = world.lock("k").run(async { Ok(()) }).await;
            assert!(matches!(early, Err(RunError::Skipped(Skip::InProgress { .. }))), "{early:?}");
            clock.advance(seconds(60));
            let work = |lease: pushonce::Lease| async move { Ok((lease.history(), lease.fence())) };
            let (history, second) = world.lock("k").run_with(work).await.unwrap();
            assert_eq!(history, History::Unknown { runs: 1 });
            assert!(second > first);
        }
    });
}

// F63
#[tokio::test(start_paused = true)]
async fn work_that_outlives_its_lease_is_recorded_if_nobody_took_the_key_over() {
    let world = World::new();
    let work = slow(seconds(30));
    world.lock("k").lease(seconds(10)).run(work).await.unwrap();
    assert_eq!(world.state("k").await, Some(State::Done));
}

#[tokio::test(start_paused = true)]
async fn two_consumers_of_one_text_both_run() {
    let (world, runs) = (World::new(), Runs::default());
    world.lock(("stock", "po-1")).run(runs.work()).await.unwrap();
    world.lock(("mail", "po-1")).run(runs.work()).await.unwrap();
    assert_eq!(runs.count(), 2);
}

async fn effect_id(world: &World, key: (&'static str, &'static str), name: &'static str) -> String {
    let work = move |lease: pushonce::Lease| async move { Ok(lease.effect_id(name)) };
    world.lock(key).run_with(work).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_effect_id_differs_for_each_consumer_key_and_name() {
    let ids = [
        effect_id(&World::new(), ("orders", "po-1"), "charge").await,
        effect_id(&World::new(), ("orders", "po-1"), "mail").await,
        effect_id(&World::new(), ("orders", "po-2"), "charge").await,
        effect_id(&World::new(), ("stock", "po-1"), "charge").await,
        effect_id(&World::new(), ("orders", "po-1c"), "harge").await,
        effect_id(&World::new(), ("orders", "po-1"), "").await,
        effect_id(&World::new(), ("orders", "ü".repeat(2000).leak()), "ü").await,
    ];
    assert!(ids.iter().all(|id| id.len() <= 64 && id.is_ascii()), "{ids:?}");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}

#[tokio::test(start_paused = true)]
async fn an_effect_id_is_the_same_on_a_rerun_while_the_fence_rises() {
    let world = World::new();
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let tell = tell.clone();
        let work = move |lease: pushonce::Lease| async move {
            tell.send((lease.effect_id("charge"), lease.fence()))?;
            Err::<(), _>("no".into())
        };
        world.lock("k").run_with(work).await.unwrap_err();
    }
    let ((first, low), (second, high)) = (told.recv().unwrap(), told.recv().unwrap());
    assert_eq!(first, second);
    assert!(low < high);
    // Written down: a version that changed it would charge twice across a deployment.
    assert_eq!(
        effect_id(&World::new(), ("orders", "po-1"), "charge").await,
        "27cfeab316e701ac7777a8cdd488e6c4ba36c6957d82705b920faef14d5a75c3"
    );
}
