//! `at_most_once` in the layer: what fails after its mark is lost, and says so.

use std::time::Duration;

use axum::routing::post;
use pushonce::attribute;
use pushonce::store::record::{Progress, State};
use tracing::Level;

use crate::log::Log;
use crate::world::{Runs, World, app, panics, push};

#[tokio::test]
async fn a_failure_is_lost_and_so_is_its_redelivery() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[500, 200]), world.layer().at_most_once());
    assert_eq!(push(&app, "m").await.told(), (500, "lost"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("lost", Level::ERROR));
    assert_eq!(push(&app, "m").await.told(), (204, "lost"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("lost", Level::ERROR));
    assert_eq!(runs.count(), 1);
    let record = world.record(("orders", "m")).await.unwrap();
    assert_eq!((record.state, record.receipt.unwrap().progress), (State::Done, Progress::Started));
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_time_limit_are_lost_too() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let panicking = app(post(panics), world.layer().at_most_once());
    assert_eq!(push(&panicking, "m-1").await.told(), (500, "lost"));
    let layer = world.layer().at_most_once().work_timeout(Duration::from_secs(1)).cancel_safe();
    let late = app(post(std::future::pending::<()>), layer);
    assert_eq!(push(&late, "m-2").await.told(), (504, "lost"));
    assert!(log.outcomes().iter().all(|line| line.level == Level::ERROR));
    for id in ["m-1", "m-2"] {
        assert_eq!(push(&panicking, id).await.told(), (204, "lost"));
    }
}

#[tokio::test]
async fn a_success_is_recorded_and_its_duplicate_is_one() {
    let (world, runs) = (World::new(), Runs::default());
    let app = app(runs.answering(&[200]), world.layer().at_most_once());
    assert_eq!(push(&app, "m").await.told(), (200, "ran"));
    assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_message_without_a_key_was_not_marked_and_is_not_lost() {
    let (world, runs) = (World::new(), Runs::default());
    let layer = world.layer().at_most_once().key(attribute("po")).allow_unguarded();
    let app = app(runs.answering(&[500, 200]), layer);
    assert_eq!(push(&app, "m").await.told(), (500, "failed"));
    assert_eq!(push(&app, "m").await.told(), (200, "unguarded"));
}
