//! What a handler's own errors mean under the layer and without it.

use std::fmt;
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use pushonce::store::record::{Ended, State as Stands};
use pushonce::{Ack, Delivery, Failure, Lease, PubSub, RunError, Skip, lock, mutex, unless_done};
use serde::Deserialize;
use serde_json::json;
use tracing::Level;

use crate::log::Log;
use crate::world::{World, app, message, posted, push, send, with_data};

/// A handler that always fails so.
fn failing<E, F>(error: F) -> axum::routing::MethodRouter
where
    F: Fn() -> E + Clone + Send + Sync + 'static,
    E: Into<Failure>,
{
    post(async move || Err::<Ack, Failure>(error().into()))
}

#[tokio::test]
async fn the_cause_of_a_failure_is_logged_with_its_sources_and_not_answered() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let store = world.store.clone();
    let handler = post(async move || {
        mutex("supplier", &store).run(async { Err::<(), _>("the supplier is closed".into()) }).await?;
        Ok::<_, Failure>(Ack)
    });
    let answer = push(&app(handler, world.layer()), "m").await;
    assert_eq!(answer.told(), (500, "failed"));
    assert!(answer.body.is_empty());
    let error = log.outcome().field("error").to_owned();
    assert!(error.contains("500") && error.ends_with("the work failed: the supplier is closed"), "{error}");
}

#[tokio::test]
async fn in_progress_out_of_a_handler_is_a_quiet_503_and_the_key_is_released_as_failed() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let handler = || RunError::Skipped(Skip::InProgress { left: Duration::from_secs(9) });
    assert_eq!(push(&app(failing(handler), world.layer()), "m").await.told(), (503, "in-progress"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("in-progress", Level::WARN));
    assert_eq!(world.stands("m").await, Some((Stands::Released, Ended::Failed, 1)));
    // Without the layer it is the same answer.
    let bare = Router::new().route("/", failing(handler));
    assert_eq!(push(&bare, "m").await.told(), (503, "in-progress"));
}

#[tokio::test]
async fn another_keys_duplicate_is_a_failure_under_the_layer_and_an_ack_without_it() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let handler = || {
        let store = world.store.clone();
        post(async move || {
            lock("mail", &store).run(async { Ok(()) }).await?;
            Ok::<_, Failure>(Ack)
        })
    };
    let app = app(handler(), world.layer());
    assert_eq!(push(&app, "m-1").await.told(), (200, "ran"));
    log.outcome();
    // What follows in the handler would be lost if this were acked.
    assert_eq!(push(&app, "m-2").await.told(), (500, "failed"));
    assert_eq!(log.outcome().level, Level::WARN);
    assert_eq!(world.stands("m-2").await, Some((Stands::Released, Ended::Failed, 1)));
    assert_eq!(push(&Router::new().route("/", handler()), "m-3").await.told(), (204, "duplicate"));
}

#[tokio::test]
async fn a_step_that_was_done_before_does_not_stop_a_handler_that_means_to_go_on() {
    let world = World::new();
    let store = world.store.clone();
    let handler = post(async move || {
        unless_done(lock("mail", &store).run(async { Ok(()) }).await)?;
        Ok::<_, Failure>(Ack)
    });
    let app = app(handler, world.layer());
    for message in ["m-1", "m-2"] {
        assert_eq!(push(&app, message).await.told(), (200, "ran"));
    }
    // Nothing but a duplicate is taken for done.
    let held = RunError::Skipped(Skip::InProgress { left: Duration::ZERO });
    assert!(matches!(unless_done::<()>(Err(held)), Err(RunError::Skipped(Skip::InProgress { .. }))));
}

#[tokio::test]
async fn a_handler_that_takes_the_key_of_its_own_layer_is_misuse() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let store = world.store.clone();
    let handler = post(async move |lease: Lease| {
        lock(lease.key().clone(), &store).run(async { Ok(()) }).await?;
        Ok::<_, Failure>(Ack)
    });
    assert_eq!(push(&app(handler, world.layer()), "m").await.told(), (500, "misuse"));
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("misuse", Level::ERROR));
    assert!(line.field("error").contains("taken inside the work that holds it"), "{line:?}");
    assert_eq!(world.stands("m").await, Some((Stands::Released, Ended::Failed, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_store_outage_inside_a_handler_is_its_failure() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let error = || pushonce::store::StoreError::unavailable("the handler's own store");
    assert_eq!(push(&app(failing(error), world.layer()), "m").await.told(), (503, "failed"));
    assert_eq!(log.outcome().level, Level::WARN);
    assert_eq!(world.stands("m").await, Some((Stands::Released, Ended::Failed, 1)));
}

/// An error that cannot even be shown.
#[derive(Debug)]
struct Mute;

impl fmt::Display for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("mute")
    }
}

impl std::error::Error for Mute {}

#[tokio::test]
async fn an_error_that_panics_when_it_is_shown_changes_nothing() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    assert_eq!(push(&app(failing(|| Mute), world.layer()), "m").await.told(), (500, "failed"));
    assert_eq!(log.outcome().field("event"), "failed");
}

#[derive(Deserialize)]
struct Order {
    po: u32,
}

// F15
#[tokio::test]
async fn data_of_another_type_is_nacked_and_a_corrected_deploy_still_reads_it() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let typed = post(async |PubSub(order): PubSub<Order>| assert_eq!(order.po, 12));
    let before = app(typed, world.layer());
    let test = with_data("m", r#"{"testNotification":{"version":"secret"}}"#);
    let answer = message(&before, &test).await;
    assert_eq!(answer.told(), (422, "failed"));
    let line = log.outcome();
    assert!(line.field("error").contains("Order"), "{line:?}");
    let shown = format!("{line:?}{:?}", answer.body);
    assert!(!shown.contains("secret") && !shown.contains("testNotification"), "{shown}");
    assert_eq!(world.stands("m").await, Some((Stands::Released, Ended::Failed, 1)));
    let after = app(post(async |PubSub(_): PubSub<serde_json::Value>| ()), world.layer());
    assert_eq!(message(&after, &test).await.told(), (200, "ran"));
    assert_eq!(message(&before, &with_data("m-2", r#"{"po":12}"#)).await.told(), (200, "ran"));
}

#[tokio::test]
async fn the_handler_is_given_its_lease_and_the_delivery() {
    let world = World::new();
    let route = post(async |lease: Lease, State(word): State<&'static str>, delivery: Delivery| {
        assert_eq!((lease.key().to_string(), word), ("orders:m".to_owned(), "state"));
        assert_eq!((delivery.message_id(), delivery.attempt()), (Some("m"), Some(3)));
    });
    let app = Router::new().route("/", route.layer(world.layer())).with_state("state");
    assert_eq!(push(&app, "m").await.told(), (200, "ran"));
}

#[tokio::test]
async fn the_extractors_work_without_the_layer_except_the_lease() {
    let route = |handler| Router::new().route("/", handler);
    let json = route(post(async |PubSub(order): PubSub<Order>| assert_eq!(order.po, 12)));
    assert_eq!(message(&json, &with_data("m", r#"{"po":12}"#)).await.told(), (200, ""));
    assert_eq!(message(&json, &with_data("m", "[]")).await.status, 422);
    assert_eq!(send(&json, posted("[]")).await.status, 400);
    let lease = route(post(async |_: Lease| ()));
    let answer = push(&lease, "m").await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status == 500 && text.contains("IdempotentLayer"), "{answer:?}");
    let optional = route(post(async |lease: Option<Lease>| assert!(lease.is_none())));
    assert_eq!(push(&optional, "m").await.status, 200);
}

#[tokio::test]
async fn a_body_is_told_apart_by_size_and_by_breaking_off_without_the_layer_too() {
    let app = Router::new().route("/", post(async |_: Delivery| ()));
    assert_eq!(send(&app, posted(vec![b' '; 16 * 1024 * 1024 + 1])).await.status, 413);
    let broken = axum::body::Body::from_stream(futures_util::stream::iter([
        Ok("{\"message\":"),
        Err(std::io::Error::other("gone")),
    ]));
    assert_eq!(send(&app, posted(broken)).await.status, 400);
}

#[tokio::test]
async fn axums_own_rejections_are_failures() {
    let world = World::new();
    let app = app(post(async |Json(_): Json<Vec<u32>>| ()), world.layer());
    let answer = message(&app, &json!({ "messageId": "m" })).await;
    assert_eq!(answer.told(), (422, "failed"));
    assert_eq!(world.stands("m").await, Some((Stands::Released, Ended::Failed, 1)));
}
