//! The table of outcomes: for each row the answer, the header, the log line, and what stands in the store afterwards.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::{Ended, State};
use pushonce::store::{BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::{IdempotentLayer, IntoKey as _, Key, Store, key_fn, mutex};
use tokio::sync::oneshot;
use tracing::Level;

use crate::log::Log;
use crate::world::{Runs, World, app, push};

// F40
#[tokio::test]
async fn every_success_is_answered_200_and_recorded_and_its_status_is_logged() {
    for status in [200, 201, 202, 203, 204, 205, 206, 207, 208, 226] {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let app = app(runs.answering(&[status]), world.layer());
        assert_eq!(push(&app, "m").await.told(), (200, "ran"), "{status}");
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("ran", Level::INFO));
        assert_eq!((line.field("status"), line.field("handler_status")), ("200", &*status.to_string()));
        assert_eq!(world.stands("m").await, Some((State::Done, Ended::Fresh, 0)));
        assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
        assert_eq!(runs.count(), 1);
    }
}

// F41
#[tokio::test]
async fn a_failing_status_goes_out_and_the_next_delivery_runs() {
    for status in [100, 102, 199, 300, 302, 304, 400, 401, 404, 409, 415, 422, 429, 500, 503, 599] {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let app = app(runs.answering(&[status, 200]), world.layer());
        let told = if status < 400 { 500 } else { status };
        assert_eq!(push(&app, "m").await.told(), (told, "failed"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("failed", Level::WARN));
        assert_eq!(line.field("handler_status"), status.to_string());
        assert_eq!(world.stands("m").await, Some((State::Released, Ended::Failed, 1)));
        assert_eq!(push(&app, "m").await.told(), (200, "ran"), "{status}");
        assert_eq!(runs.count(), 2);
    }
}

// F100
#[tokio::test]
async fn a_duplicate_is_acked_quietly_and_its_line_says_who_did_the_work() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[200]), world.layer());
    push(&app, "m").await;
    let before = world.record(("orders", "m")).await;
    log.outcome();
    let answer = push(&app, "m").await;
    assert_eq!(answer.told(), (204, "duplicate"));
    assert!(answer.body.is_empty());
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("duplicate", Level::DEBUG));
    let error = line.field("error");
    assert!(error.contains("by m of projects/p/subscriptions/s"), "{error}");
    assert_eq!(world.record(("orders", "m")).await, before);
}

#[tokio::test(start_paused = true)]
async fn work_that_could_not_be_recorded_is_acked_and_alerts() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[201, 500]), world.layer());
    world.chaos.always(On::Complete, Fault::Fail);
    assert_eq!(push(&app, "m").await.told(), (200, "uncertain"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("uncertain", Level::ERROR));
    assert_eq!(line.field("handler_status"), "201");
    // This process knows that it is done: not run again, and not acked before the store knows it too.
    assert_eq!(push(&app, "m").await.told(), (503, "unavailable"));
    world.chaos.heal();
    while push(&app, "m").await.told() != (204, "duplicate") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn work_that_was_fenced_out_is_acked_and_alerts() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let memory = world.memory.clone();
    // An operator, or garbage collection: whatever takes the record away, the work is done.
    let handler = async move || memory.forget(&("orders", "m").into_key().unwrap());
    let app = app(post(handler), world.layer());
    assert_eq!(push(&app, "m").await.told(), (200, "uncertain"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("uncertain", Level::ERROR));
    assert_eq!(world.stands("m").await, None);
}

// F49
#[tokio::test]
async fn a_panic_is_answered_500_and_the_next_delivery_runs_at_once() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let counted = runs.clone();
    let app = app(post(async move || assert!(counted.add() > 0, "no supplier")), world.layer());
    assert_eq!(push(&app, "m").await.told(), (500, "failed"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("failed", Level::ERROR));
    assert!(line.field("error").contains("no supplier"), "{line:?}");
    assert_eq!(world.stands("m").await, Some((State::Released, Ended::Unknown, 1)));
    assert_eq!(push(&app, "m").await.told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_over_its_time_is_answered_504_and_its_key_left_to_lapse_or_released_where_that_is_safe() {
    for safe in [false, true] {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let mut layer = world.layer().work_timeout(Duration::from_secs(20));
        if safe {
            layer = layer.cancel_safe();
        }
        let app = app(post(std::future::pending::<()>), layer);
        assert_eq!(push(&app, "m").await.told(), (504, "failed"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("failed", Level::ERROR));
        let stands = world.stands("m").await.unwrap();
        let left = (State::Claimed, Ended::Fresh, 0);
        assert_eq!(stands, if safe { (State::Released, Ended::Unknown, 1) } else { left });
    }
}

// F43
#[tokio::test]
async fn a_key_that_is_held_elsewhere_is_answered_503_with_the_time_and_the_attempt() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let (started, release, app) = held(world.layer().lease(Duration::from_secs(90)));
    let first = tokio::spawn({
        let app = app.clone();
        async move { push(&app, "m").await }
    });
    started.await.unwrap();
    let before = world.record(("orders", "m")).await;
    let second = push(&app, "m").await;
    assert_eq!(second.told(), (503, "in-progress"));
    let after: u64 = second.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((80..=91).contains(&after), "{after}");
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("in-progress", Level::WARN));
    assert_eq!((line.field("delivery_attempt"), line.field("key")), ("3", "orders:m"));
    assert!(line.field("error").contains("more at most"), "{line:?}");
    assert_eq!(world.record(("orders", "m")).await, before);
    release.send(()).unwrap();
    assert_eq!(first.await.unwrap().told(), (200, "ran"));
}

#[tokio::test(start_paused = true)]
async fn nothing_asks_pubsub_to_stay_away_longer_than_its_own_backoff() {
    let world = World::new();
    let (started, _release, app) = held(world.layer().lease(Duration::from_secs(3600)));
    tokio::spawn({
        let app = app.clone();
        async move { push(&app, "m").await }
    });
    started.await.unwrap();
    assert_eq!(push(&app, "m").await.headers["retry-after"], "600");
}

// F44
#[tokio::test(start_paused = true)]
async fn a_bounded_wait_turns_in_progress_into_a_duplicate() {
    let world = World::new();
    let (started, release, app) = held(world.layer().wait(Duration::from_secs(5)));
    let first = tokio::spawn({
        let app = app.clone();
        async move { push(&app, "m").await }
    });
    started.await.unwrap();
    let second = tokio::spawn(async move { push(&app, "m").await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    release.send(()).unwrap();
    assert_eq!(first.await.unwrap().told(), (200, "ran"));
    assert_eq!(second.await.unwrap().told(), (204, "duplicate"));
}

/// A handler that says when it has started and waits to be released.
fn held(layer: IdempotentLayer) -> (oneshot::Receiver<()>, oneshot::Sender<()>, axum::Router) {
    let (start, started) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let once = Arc::new(std::sync::Mutex::new(Some((start, released))));
    let handler = async move || {
        let (start, released) = once.lock().unwrap().take().expect("it runs once");
        start.send(()).unwrap();
        released.await.unwrap();
    };
    (started, release, app(post(handler), layer))
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_before_the_work_is_answered_503() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[200]), world.layer());
    world.chaos.always(On::Any, Fault::Fail);
    assert_eq!(push(&app, "m").await.told(), (503, "unavailable"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("unavailable", Level::ERROR));
    assert!(line.field("error").contains("a planned fault"), "{line:?}");
    assert_eq!((runs.count(), world.stands("m").await), (0, None));
}

/// A store whose every record is of a newer version. It fails if one is written over.
#[derive(Debug)]
struct Newer;

impl Store for Newer {
    fn read<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async { Err(StoreError::NewerFormat { found: 200, limit: 200 }) })
    }

    fn swap<'a>(
        &'a self,
        _: &'a Key,
        seen: Option<&'a Version>,
        _: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        assert!(seen.is_none(), "a create is refused by the record that stands; nothing else may be sent");
        Box::pin(async { Err(StoreError::NewerFormat { found: 200, limit: 200 }) })
    }
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_answered_503_and_left_alone() {
    let (runs, (log, _guard)) = (Runs::default(), Log::capture());
    let app = app(runs.answering(&[200]), IdempotentLayer::new("orders", Arc::new(Newer)));
    assert_eq!(push(&app, "m").await.told(), (503, "unavailable"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("unavailable", Level::ERROR));
    assert!(line.field("error").contains("deploy the newer version"), "{line:?}");
    assert_eq!(runs.count(), 0);
}

#[tokio::test]
async fn a_key_that_another_verb_holds_is_misuse() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[200]), world.layer());
    let inside = app.clone();
    mutex(("orders", "m"), &world.store)
        .run(async move {
            assert_eq!(push(&inside, "m").await.told(), (500, "misuse"));
            Ok(())
        })
        .await
        .unwrap();
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("misuse", Level::ERROR));
    assert_eq!(runs.count(), 0);
}

// F49
#[tokio::test]
async fn a_key_rule_that_fails_or_panics_is_misuse_and_claims_nothing() {
    for panics in [false, true] {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let rule =
            key_fn(move |_| if panics { panic!("no such field") } else { Err("no such field".into()) });
        let app = app(runs.answering(&[200]), world.layer().key(rule));
        assert_eq!(push(&app, "m").await.told(), (500, "misuse"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("misuse", Level::ERROR));
        assert_eq!((runs.count(), world.memory.len()), (0, 0));
    }
}
