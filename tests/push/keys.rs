//! Which deliveries share a key, and what becomes of those that have none.

use axum::routing::post;
use pushonce::store::record::State;
use pushonce::{Delivery, IdempotentLayer, Lease, attribute, json_pointer, key_fn};
use serde_json::json;
use tracing::Level;

use crate::log::Log;
use crate::world::{Runs, World, app, file, message, panics, push, send};

// F102
#[tokio::test]
async fn two_consumers_on_one_store_both_run_and_one_consumer_runs_once() {
    let (world, runs) = (World::new(), Runs::default());
    let charge = app(runs.answering(&[200]), IdempotentLayer::new("charge", world.store.clone()));
    let mail = app(runs.answering(&[200]), IdempotentLayer::new("mail", world.store.clone()));
    assert_eq!(push(&charge, "m").await.told(), (200, "ran"));
    assert_eq!(push(&mail, "m").await.told(), (200, "ran"));
    // A second subscription that leads to the same consumer.
    let again = app(runs.answering(&[200]), IdempotentLayer::new("charge", world.store.clone()));
    assert_eq!(push(&again, "m").await.told(), (204, "duplicate"));
    assert_eq!(runs.count(), 2);
}

// F29
#[tokio::test]
async fn one_message_directly_and_through_eventarc_runs_once() {
    let (world, runs) = (World::new(), Runs::default());
    let app = app(runs.answering(&[200]), world.layer());
    assert_eq!(send(&app, file("10-eventarc-pubsub-binary.http")).await.told(), (200, "ran"));
    let mut direct = file("10-eventarc-pubsub-binary.http");
    for name in ["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time"] {
        direct.headers_mut().remove(name).expect("an Eventarc header");
    }
    assert_eq!(send(&app, direct).await.told(), (204, "duplicate"));
    assert_eq!(push(&app, "10945555000011112").await.told(), (204, "duplicate"));
    assert_eq!(runs.count(), 1);
}

// F27
#[tokio::test]
async fn a_message_without_a_key_is_refused_each_time_and_nothing_is_stored() {
    for rule in
        [None, Some(attribute("po_id")), Some(json_pointer("/po")), Some(key_fn(|_| Ok(Some("  ".into()))))]
    {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let layer = rule.into_iter().fold(world.layer(), IdempotentLayer::key);
        let app = app(runs.answering(&[200]), layer);
        for _ in 0..2 {
            let answer = send(&app, file("negative/n03-empty-message-id.json")).await;
            assert_eq!(answer.told(), (422, "unkeyed"));
            let line = log.outcome();
            assert_eq!((line.field("event"), line.level), ("unkeyed", Level::ERROR));
        }
        assert_eq!((runs.count(), world.memory.len()), (0, 0));
    }
}

// F27
#[tokio::test]
async fn where_that_is_allowed_it_runs_each_time_and_still_nothing_is_stored() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let counted = runs.clone();
    let handler = post(async move |lease: Option<Lease>, delivery: Delivery| {
        assert!(lease.is_none() && delivery.message_id().is_none());
        counted.add();
    });
    let app = app(handler, world.layer().allow_unguarded());
    for _ in 0..2 {
        let answer = send(&app, file("negative/n03-empty-message-id.json")).await;
        assert_eq!(answer.told(), (200, "unguarded"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("unguarded", Level::WARN));
    }
    assert_eq!((runs.count(), world.memory.len()), (2, 0));
    // Those that have one are guarded as ever.
    assert_eq!(push(&app, "m").await.told(), (500, "failed"));
}

#[tokio::test(start_paused = true)]
async fn unguarded_work_is_caught_timed_and_fails_as_guarded_work_does() {
    let world = World::new();
    let layer = || {
        let limit = std::time::Duration::from_secs(1);
        world.layer().key(attribute("po")).allow_unguarded().work_timeout(limit)
    };
    let panicking = app(post(panics), layer());
    assert_eq!(push(&panicking, "m").await.told(), (500, "failed"));
    let late = app(post(std::future::pending::<()>), layer());
    assert_eq!(push(&late, "m").await.told(), (504, "failed"));
    let fails = app(Runs::default().answering(&[404]), layer());
    assert_eq!(push(&fails, "m").await.told(), (404, "failed"));
}

// F20
#[tokio::test]
async fn an_unwrapped_push_without_metadata_is_unkeyed_unless_its_data_has_a_key() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let bare = || file("negative/n06-unwrapped-no-metadata.http");
    let default = app(runs.answering(&[200]), world.layer());
    assert_eq!(send(&default, bare()).await.told(), (422, "unkeyed"));
    assert!(log.outcome().field("error").contains("write_metadata"));
    let business = app(runs.answering(&[200]), world.layer().key(json_pointer("/po")));
    assert_eq!(send(&business, bare()).await.told(), (200, "ran"));
    assert_eq!(send(&business, bare()).await.told(), (204, "duplicate"));
    assert_eq!(world.stands("PO-2026-000423").await.unwrap().0, State::Done);
}

// F17
#[tokio::test]
async fn a_republish_runs_again_by_message_id_and_once_by_business_key() {
    let (world, runs) = (World::new(), Runs::default());
    let publish = |id: &str| json!({ "messageId": id, "attributes": { "po_id": "po-1" } });
    let default = app(runs.answering(&[200]), world.layer());
    assert_eq!(message(&default, &publish("m-1")).await.told(), (200, "ran"));
    assert_eq!(message(&default, &publish("m-2")).await.told(), (200, "ran"));
    let business = app(runs.answering(&[200]), world.layer().key(attribute("po_id")));
    assert_eq!(message(&business, &publish("m-3")).await.told(), (200, "ran"));
    assert_eq!(message(&business, &publish("m-4")).await.told(), (204, "duplicate"));
}

// F13
#[tokio::test]
async fn an_entity_with_several_states_needs_its_state_in_the_key() {
    for order in [
        ["04a-cloud-build-queued.json", "04b-cloud-build-success.json"],
        ["04b-cloud-build-success.json", "04a-cloud-build-queued.json"],
    ] {
        let (world, runs) = (World::new(), Runs::default());
        let build = app(runs.answering(&[200]), world.layer().key(attribute("buildId")));
        let state = world.layer().key(attribute("buildId").and(attribute("status")));
        let state = app(runs.answering(&[200]), state);
        for (at, name) in order.into_iter().enumerate() {
            let swallowed = if at == 0 { (200, "ran") } else { (204, "duplicate") };
            assert_eq!(send(&build, file(name)).await.told(), swallowed);
            assert_eq!(send(&state, file(name)).await.told(), (200, "ran"));
            assert_eq!(send(&state, file(name)).await.told(), (204, "duplicate"));
        }
    }
}
