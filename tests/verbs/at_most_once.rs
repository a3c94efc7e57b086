//! `at_most_once`: marked before it runs, and never run again.

use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, Progress, State};
use pushonce::{History, RunError, Skip};

use crate::world::{Log, Runs, World, begin, is_unavailable, seconds, slow};

#[tokio::test(start_paused = true)]
async fn it_runs_once_and_then_answers_none() {
    let world = World::new();
    assert_eq!(world.at_most_once("k").run(async { Ok("mailed") }).await.unwrap(), Some("mailed"));
    assert_eq!(world.receipt("k").await.progress, Progress::Finished);
    let trips = world.chaos.take();
    assert_eq!((trips.reads, trips.swaps), (0, 2));
    assert_eq!(world.at_most_once("k").run(async { Ok("mailed") }).await.unwrap(), None);
    // A lock shares "done" with it.
    let shared = world.lock("k").run(async { Ok(()) }).await;
    assert!(matches!(shared, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{shared:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_a_panic_and_a_timeout_are_lost_and_that_is_said() {
    type Work = std::pin::Pin<Box<dyn Future<Output = Result<(), pushonce::store::BoxError>> + Send>>;
    let works: [fn() -> Work; 3] = [
        || Box::pin(async { Err("no".into()) }),
        || Box::pin(async { panic!("no") }),
        || Box::pin(std::future::pending()),
    ];
    for work in works {
        let (log, _guard) = Log::capture();
        let (world, again) = (World::new(), Runs::default());
        let guarded = world.at_most_once("k").work_timeout(seconds(1)).cancel_safe();
        let failed = guarded.run(work()).await;
        assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
        assert_eq!(log.event("lost").len(), 1);
        assert_eq!(world.receipt("k").await.progress, Progress::Started);
        tokio::time::sleep(seconds(60 * 60)).await;
        assert_eq!(world.at_most_once("k").run(again.work()).await.unwrap(), None);
        assert_eq!(again.count(), 0);
        let lost = log.event("lost");
        assert!(lost.len() == 2 && lost.iter().all(|line| line.contains("ERROR")), "{lost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_duplicate_is_not_said_to_be_lost() {
    let (log, _guard) = Log::capture();
    let world = World::new();
    for _ in 0..2 {
        world.at_most_once("k").run(async { Ok(()) }).await.unwrap();
    }
    assert!(log.event("lost").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_second_one_while_the_first_is_at_work_does_not_run() {
    let (world, again) = (World::new(), Runs::default());
    let work = slow(seconds(60));
    let first = begin(world.at_most_once("k").run(work)).await;
    assert_eq!(world.at_most_once("k").run(again.work()).await.unwrap(), None);
    assert_eq!(first.await.unwrap().unwrap(), Some(()));
    assert_eq!(again.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn under_a_live_lock_it_is_in_progress_and_not_lost() {
    let (world, again) = (World::new(), Runs::default());
    let work = slow(seconds(60));
    let first = begin(world.lock("k").run(work)).await;
    let held = world.at_most_once("k").run(again.work()).await;
    assert!(matches!(held, Err(RunError::Skipped(Skip::InProgress { .. }))), "{held:?}");
    first.await.unwrap().unwrap();
    assert_eq!(again.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_window_counts_from_the_mark_and_not_from_the_success() {
    let (world, runs) = (World::new(), Runs::default());
    let work = slow(seconds(40));
    world.at_most_once("k").ttl(seconds(60)).run(work).await.unwrap();
    tokio::time::sleep(seconds(19)).await;
    assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), None);
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), Some(()));
}

#[tokio::test(start_paused = true)]
async fn released_and_lapsed_keys_are_marked_with_their_history() {
    let world = World::new();
    world.lock("k").run(async { Err::<(), _>("no".into()) }).await.unwrap_err();
    let work = |lease: pushonce::Lease| async move { Ok(lease.history()) };
    let history = world.at_most_once("k").run_with(work).await.unwrap();
    assert_eq!(history, Some(History::Failed { runs: 1 }));
    let crashed = world.lock("lapsed").lease(seconds(10)).work_timeout(seconds(1));
    crashed.run(std::future::pending::<Result<(), _>>()).await.unwrap_err();
    tokio::time::sleep(seconds(10)).await;
    let history = world.at_most_once("lapsed").run_with(work).await.unwrap();
    assert_eq!(history, Some(History::Unknown { runs: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_mark_whose_answer_was_lost_is_read_back_and_the_work_runs() {
    for fault in [Fault::LoseAnswer, Fault::LoseBefore, Fault::Late(seconds(1))] {
        let (world, runs) = (World::new(), Runs::default());
        world.chaos.next(On::Claim, fault);
        assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), Some(()), "{fault:?}");
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), None, "{fault:?}");
        assert_eq!((runs.count(), world.receipt("k").await.progress), (1, Progress::Finished), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_read_back_does_not_run_and_is_undone() {
    let (world, runs) = (World::new(), Runs::default());
    world.chaos.always(On::Claim, Fault::LoseAnswer);
    world.chaos.always(On::Read, Fault::Fail);
    world.chaos.always(On::Release, Fault::Fail);
    let unknown = world.at_most_once("k").run(runs.work()).await;
    assert!(is_unavailable(&unknown), "{unknown:?}");
    world.chaos.heal();
    world.chaos.always(On::Release, Fault::Fail);
    // The price: a redelivery before the undo is acked as lost.
    assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), None);
    world.chaos.heal();
    world.until("k", State::Released).await;
    let record = world.record("k").await.unwrap();
    assert_eq!((record.ended, record.runs, record.receipt), (Ended::Fresh, 0, None));
    assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), Some(()));
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_the_store_refuses_to_finish_is_success_and_not_uncertain() {
    let (world, told) = (World::new(), Runs::default());
    world.chaos.always(On::Complete, Fault::Fail);
    let hook = told.clone();
    let guarded = world.at_most_once("k").on_uncertain(move |_| hook.add());
    assert_eq!(guarded.run(async { Ok("mailed") }).await.unwrap(), Some("mailed"));
    assert_eq!(told.count(), 0);
    world.chaos.heal();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(world.receipt("k").await.progress, Progress::Finished);
}
