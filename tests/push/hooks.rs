//! Hooks: told of every outcome, and never in the way.

use std::sync::{Arc, Mutex};

use pushonce::store::chaos::{Fault, On};
use pushonce::{
    Failure, IdempotentLayer, InvalidLayer, Outcome, PayloadCheck, RunError, attribute, key_fn, mutex,
};
use serde_json::json;

use crate::follower::{Follower, task};
use crate::log::Log;
use crate::topic::{TOPIC, Topic};
use crate::world::{Runs, World, app, message, posted, push, send, with_data};

type Told = Arc<Mutex<Vec<(Outcome, u16, Option<u16>)>>>;

/// All that a layer tells of: the token is looked at before any layer that has hooks.
fn of_hooks() -> impl Iterator<Item = Outcome> {
    Outcome::ALL.iter().copied().filter(|outcome| *outcome != Outcome::Unauthorized)
}

/// A hook on every outcome.
fn told(layer: IdempotentLayer) -> (IdempotentLayer, Told) {
    let told = Told::default();
    let hooked = of_hooks().fold(layer, |layer, outcome| {
        let told = told.clone();
        layer.on(outcome, move |report| {
            assert_eq!((report.outcome, report.consumer.as_str()), (outcome, "orders"));
            told.lock().unwrap().push((report.outcome, report.status, report.handler_status));
            Ok(())
        })
    });
    (hooked, told)
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_told_of_every_outcome_once() {
    let world = World::new();
    let runs = Runs::default();
    let ok = || runs.answering(&[202]);
    let (layer, heard) = told(world.layer().payload_check(PayloadCheck::Alert));
    let plain = app(ok(), layer.clone());
    message(&plain, &with_data("m", "a")).await;
    message(&plain, &with_data("m", "a")).await;
    message(&plain, &with_data("m", "b")).await;
    send(&plain, posted("[]")).await;
    push(&plain, " ").await;
    push(&app(runs.answering(&[404]), layer.clone()), "m-1").await;
    push(&app(ok(), layer.clone().allow_unguarded()), " ").await;
    push(&app(runs.answering(&[422]), layer.clone().at_most_once()), "m-2").await;
    push(&app(ok(), layer.clone().key(key_fn(|_| Err("no".into())))), "m-3").await;
    let serial = app(ok(), layer.clone().serialize(attribute("po")));
    let holder = app(
        axum::routing::post(async move || {
            let held = json!({ "messageId": "m-5", "attributes": { "po": "1" } });
            // Of a task of its own, since in this one it would be the holder that waits for itself.
            tokio::spawn(async move { message(&serial, &held).await }).await.unwrap();
        }),
        world.layer().serialize(attribute("po")),
    );
    message(&holder, &json!({ "messageId": "m-4", "attributes": { "po": "1" } })).await;
    let topic = Topic::of(&world);
    let rejecting = layer.clone().dead_letters(topic.publisher(), TOPIC);
    push(&app(axum::routing::post(async || Failure::dead_letter("no")), rejecting), "m-8").await;
    let follower = Follower::of(&world);
    follower.unwanted();
    message(&app(ok(), layer.clone().follow(follower)), &task("m-9")).await;
    world.chaos.always(On::Complete, Fault::Fail);
    push(&plain, "m-6").await;
    world.chaos.always(On::Any, Fault::Fail);
    push(&plain, "m-7").await;
    let heard = heard.lock().unwrap().clone();
    let wanted = [
        (Outcome::Ran, 200, Some(202)),
        (Outcome::Duplicate, 204, None),
        (Outcome::Conflict, 500, None),
        (Outcome::Refused, 400, None),
        (Outcome::Unkeyed, 422, None),
        (Outcome::Failed, 404, Some(404)),
        (Outcome::Unguarded, 200, Some(202)),
        (Outcome::Lost, 422, Some(422)),
        (Outcome::Misuse, 500, None),
        (Outcome::InProgress, 503, None),
        (Outcome::DeadLettered, 200, Some(500)),
        (Outcome::Skipped, 204, None),
        (Outcome::Uncertain, 200, Some(202)),
        (Outcome::Unavailable, 503, None),
    ];
    assert_eq!(heard, wanted);
    assert_eq!(wanted.len(), of_hooks().count());
}

#[test]
fn a_hook_that_would_never_be_called_is_refused() {
    let layer = World::new().layer().on(Outcome::Ran, |_| Ok(()));
    assert!(layer.check().is_ok());
    let refused = layer.on(Outcome::Unauthorized, |_| Ok(())).check().unwrap_err();
    assert!(matches!(refused, InvalidLayer::Hook { outcome: Outcome::Unauthorized }), "{refused:?}");
    assert!(refused.to_string().starts_with("the hook on `unauthorized` would never be called"), "{refused}");
}

// F49
#[tokio::test]
async fn hooks_that_fail_or_panic_are_logged_and_change_nothing() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let heard = Runs::default();
    let counted = heard.clone();
    let layer = world
        .layer()
        .on(Outcome::Ran, |_| panic!("a hook that panics"))
        .on(Outcome::Ran, |_| Err("a hook that fails".into()))
        .on_duplicate(|_| panic!("a hook that panics"))
        .on_duplicate(move |report| {
            assert_eq!(report.key.unwrap().to_string(), "orders:m");
            assert_eq!(report.delivery.unwrap().message_id(), Some("m"));
            counted.add();
            Ok(())
        });
    let app = app(runs.answering(&[200]), layer);
    assert_eq!(push(&app, "m").await.told(), (200, "ran"));
    assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
    assert_eq!((runs.count(), heard.count()), (1, 1));
    let failed: Vec<_> = log
        .lines()
        .iter()
        .map(|line| line.field("failed").to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    assert_eq!(failed, ["a hook that panics", "a hook that fails", "a hook that panics"]);
}

/// An error of the handler's own.
#[derive(Debug, thiserror::Error)]
#[error("closed")]
struct Closed;

#[tokio::test]
async fn a_hook_finds_the_error_itself_among_the_sources() {
    let world = World::new();
    let found = Arc::new(Mutex::new(Vec::new()));
    let seen = found.clone();
    let layer = world.layer().on(Outcome::Failed, move |report| {
        let mut at = report.error;
        while let Some(error) = at {
            seen.lock().unwrap().push((error.is::<Closed>(), error.is::<RunError>()));
            at = error.source();
        }
        Ok(())
    });
    let store = world.store.clone();
    let handler = axum::routing::post(async move || {
        mutex("supplier", &store).run(async { Err::<(), _>(Closed.into()) }).await?;
        Ok::<_, pushonce::Failure>(pushonce::Ack)
    });
    push(&app(handler, layer), "m").await;
    assert_eq!(*found.lock().unwrap(), [(false, false), (false, true), (true, false)]);
}
