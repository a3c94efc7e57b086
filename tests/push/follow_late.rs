//! What comes late under a layer that is followed: work that was to begin before now, a mark whose run may go on, an end that no redelivery tells.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::{MethodRouter, post};
use pushonce::idempotent::End;
use pushonce::store::Memory;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Record, State};
use pushonce::store::{Store as _, Swap};
use pushonce::testing::TokioClock;
use pushonce::{IntoKey as _, attribute};
use serde_json::json;
use tokio::sync::Notify;
use tracing::Level;

use crate::follower::{Call, Follower, ILLS, seen_through, task};
use crate::log::Log;
use crate::world::{Runs, World, app, message};

const LEASE: Duration = Duration::from_secs(60);

/// The calls for the task `t`, where its message is skipped.
fn skipped() -> [Call; 2] {
    [Call::Wanted("t".into()), Call::Ended("t".into(), End::Skipped)]
}

/// A handler that counts, says that it has begun, and waits until it is let go.
fn held(runs: &Runs, begun: &Arc<Notify>, release: &Arc<Notify>) -> MethodRouter {
    let (runs, begun, release) = (runs.clone(), begun.clone(), release.clone());
    post(async move || {
        runs.add();
        begun.notify_one();
        release.notified().await;
    })
}

#[tokio::test]
async fn what_comes_late_and_has_not_begun_is_skipped_and_told() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let follower = Follower::of(&world);
    follower.late();
    let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
    assert_eq!(message(&app, &task("m")).await.told(), (204, "skipped"));
    let line = log.outcome();
    assert_eq!((line.level, line.field("event"), line.field("key")), (Level::INFO, "skipped", "orders:t"));
    assert!(line.field("error").contains("expired"), "{line:?}");
    assert_eq!(follower.calls(), skipped());
    assert_eq!((runs.count(), world.stands("t").await, world.chaos.take().swaps), (0, None, 0));
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_is_not_acked_before_it_is_told_that_it_is_skipped() {
    for ill in ILLS {
        let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
        follower.late();
        follower.at_ended(ill);
        let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
        assert_eq!(message(&app, &task("m")).await.told(), (503, "unavailable"), "{ill:?}");
        assert_eq!(message(&app, &task("m")).await.told(), (204, "skipped"), "{ill:?}");
        assert_eq!(follower.ends(), [End::Skipped; 2], "{ill:?}");
        assert_eq!((runs.count(), world.chaos.take().swaps), (0, 0), "{ill:?}");
    }
}

#[tokio::test]
async fn what_comes_late_while_its_work_runs_is_in_progress_and_then_a_duplicate() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let (begun, release) = (Arc::default(), Arc::default());
    let app = app(held(&runs, &begun, &release), world.layer().follow(follower.clone()));
    let first = tokio::spawn({
        let app = app.clone();
        async move { message(&app, &task("m")).await.told().0 }
    });
    begun.notified().await;
    follower.late();
    follower.calls();
    assert_eq!(message(&app, &task("m")).await.told(), (503, "in-progress"));
    assert_eq!(follower.calls(), [Call::Wanted("t".into())]);
    release.notify_one();
    assert_eq!((first.await.unwrap(), follower.ends()), (200, vec![End::Completed]));
    assert_eq!(message(&app, &task("m")).await.told(), (204, "duplicate"));
    assert_eq!((follower.calls(), runs.count()), (seen_through(End::Completed), 1));
}

#[tokio::test(start_paused = true)]
async fn what_began_in_time_and_crashed_runs_again_late() {
    let clock = Arc::new(TokioClock::new());
    let (world, runs, follower) =
        (World::of(Memory::with_clock(clock.clone())), Runs::default(), Follower::default());
    let layer = || world.layer().lease(LEASE).clock(clock.clone()).follow(follower.clone());
    // As good as crashed: it is given up, and its claim is left to lapse.
    let hung = app(post(std::future::pending::<()>), layer().work_timeout(Duration::from_secs(1)));
    assert_eq!(message(&hung, &task("m")).await.told(), (504, "failed"));
    follower.late();
    let app = app(runs.answering(&[200]), layer());
    assert_eq!(message(&app, &task("m")).await.told(), (503, "in-progress"));
    assert_eq!(follower.ends(), []);
    tokio::time::sleep(LEASE).await;
    assert_eq!(message(&app, &task("m")).await.told(), (200, "ran"));
    assert_eq!((follower.calls(), runs.count()), (seen_through(End::Completed), 1));
}

#[tokio::test]
async fn what_began_in_time_and_failed_runs_again_late() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let app = app(runs.answering(&[500, 200]), world.layer().follow(follower.clone()));
    assert_eq!(message(&app, &task("m")).await.told(), (500, "failed"));
    follower.calls();
    follower.late();
    assert_eq!(message(&app, &task("m")).await.told(), (200, "ran"));
    assert_eq!((follower.calls(), runs.count()), (seen_through(End::Completed), 2));
}

#[tokio::test]
async fn what_was_claimed_and_given_back_before_it_began_is_skipped_late() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let app = app(runs.answering(&[500, 200]), world.layer().follow(follower.clone()));
    message(&app, &task("m")).await;
    let key = ("orders", "t").into_key().unwrap();
    let stored = world.memory.read(&key).await.unwrap().unwrap();
    assert_eq!((stored.record.state, stored.record.runs), (State::Released, 1));
    let next = Record { runs: 0, ..stored.record };
    assert!(matches!(world.memory.swap(&key, Some(&stored.version), &next).await.unwrap(), Swap::Written(_)));
    follower.calls();
    follower.late();
    assert_eq!(message(&app, &task("m")).await.told(), (204, "skipped"));
    assert_eq!((follower.calls(), runs.count()), (skipped().to_vec(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_lost_only_once_its_lease_is_over() {
    let clock = Arc::new(TokioClock::new());
    let (world, runs, follower) =
        (World::of(Memory::with_clock(clock.clone())), Runs::default(), Follower::default());
    let (begun, release) = (Arc::default(), Arc::default());
    let layer = world.layer().lease(LEASE).clock(clock.clone()).at_most_once().follow(follower.clone());
    let app = app(held(&runs, &begun, &release), layer);
    let first = tokio::spawn({
        let app = app.clone();
        async move { message(&app, &task("m")).await.told().0 }
    });
    begun.notified().await;
    let marked = tokio::time::Instant::now();
    for after in [Duration::ZERO, LEASE - Duration::from_secs(1)] {
        tokio::time::sleep_until(marked + after).await;
        assert_eq!(message(&app, &task("m")).await.told(), (503, "in-progress"), "{after:?}");
        assert_eq!(follower.ends(), [], "{after:?}");
    }
    tokio::time::sleep_until(marked + LEASE).await;
    assert_eq!(message(&app, &task("m")).await.told(), (204, "lost"));
    assert_eq!(follower.ends(), [End::Lost]);
    // It was alive after all, and has the last word.
    release.notify_one();
    first.await.unwrap();
    assert_eq!((follower.ends(), runs.count()), (vec![End::Completed], 1));
}

#[tokio::test]
async fn a_mark_that_nobody_follows_is_lost_at_once() {
    let (world, runs) = (World::new(), Runs::default());
    let layer = world.layer().key(attribute("po")).at_most_once().follow(Follower::default());
    let app = app(runs.answering(&[500]), layer);
    let plain = json!({ "messageId": "m", "attributes": { "po": "1" } });
    assert_eq!(message(&app, &plain).await.told(), (500, "lost"));
    assert_eq!(message(&app, &plain).await.told(), (204, "lost"));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_recorded_is_told_on_without_a_redelivery() {
    for ill in ILLS {
        let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
        let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
        world.chaos.always(On::Complete, Fault::Fail);
        // Once before the ack, and twice after it.
        for _ in 0..3 {
            follower.at_ended(ill);
        }
        assert_eq!(message(&app, &task("m")).await.told(), (200, "uncertain"), "{ill:?}");
        assert_eq!(follower.calls(), seen_through(End::Completed), "{ill:?}");
        tokio::time::sleep(Duration::from_secs(600)).await;
        // Until it is heard, and no more.
        assert_eq!(follower.calls(), vec![Call::Ended("t".into(), End::Completed); 3], "{ill:?}");
        assert_eq!(runs.count(), 1, "{ill:?}");
    }
}
