//! A layer that is followed: the id is the key, and whoever keeps a record is asked before the claim and told before the ack.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use pushonce::idempotent::End;
use pushonce::store::Swap;
use pushonce::store::chaos::{Fault, On, Trips};
use pushonce::store::record::{Ended, Progress, Receipt, Record, State};
use pushonce::testing::TokioClock;
use pushonce::{DEFAULT_LEASE, IntoKey as _, PayloadCheck, Store as _, attribute, key_fn};
use serde_json::json;
use tokio::sync::Notify;
use tracing::Level;

use crate::callers::{Served, until};
use crate::follower::{Call, Follower, ILLS, Ill, seen_through, task};
use crate::log::Log;
use crate::process;
use crate::world::{Runs, World, app, message, panics, posted, send};

#[tokio::test]
async fn a_followed_message_has_its_id_for_its_key_and_is_seen_to_its_end() {
    let (world, runs) = (World::new(), Runs::default());
    let follower = Follower::of(&world);
    let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
    assert_eq!(message(&app, &task("m-1")).await.told(), (200, "ran"));
    assert_eq!(follower.calls(), seen_through(End::Completed));
    // Asked before anything stood, told when it was recorded.
    assert_eq!(follower.stood(), [None, Some(State::Done)]);
    // A second copy of the message has another id and the same task: it repeats the telling, and no more.
    assert_eq!(message(&app, &task("m-2")).await.told(), (204, "duplicate"));
    assert_eq!(follower.calls(), seen_through(End::Completed));
    assert_eq!((runs.count(), world.stands("m-1").await), (1, None));
}

#[tokio::test]
async fn every_shape_of_a_push_is_followed() {
    let data = BASE64_STANDARD.encode("{}");
    let wrapped = json!({ "message": { "messageId": "1", "data": data, "attributes": { "task-id": "t" } } });
    let event = |request: http::request::Builder| {
        request.header("ce-id", "1").header("ce-source", "//pubsub.googleapis.com/projects/p/topics/t")
    };
    let published = "google.cloud.pubsub.topic.v1.messagePublished";
    let shapes = [
        posted(wrapped.to_string()),
        Request::post("/")
            .header("x-goog-pubsub-message-id", "1")
            .header("task-id", "t")
            .body("{}".into())
            .unwrap(),
        event(Request::post("/"))
            .header("ce-specversion", "1.0")
            .header("ce-type", published)
            .header("content-type", "application/json")
            .body(wrapped.to_string().into())
            .unwrap(),
        Request::post("/")
            .header("content-type", "application/cloudevents+json")
            .body(
                json!({ "specversion": "1.0", "id": "1", "type": published, "data": wrapped,
                        "source": "//pubsub.googleapis.com/projects/p/topics/t" })
                .to_string()
                .into(),
            )
            .unwrap(),
    ];
    for shape in shapes {
        let (world, follower, shown) = (World::new(), Follower::default(), format!("{shape:?}"));
        let app = app(Runs::default().answering(&[200]), world.layer().follow(follower.clone()));
        assert_eq!(send(&app, shape).await.told(), (200, "ran"), "{shown}");
        assert_eq!(follower.calls(), seen_through(End::Completed), "{shown}");
        assert_eq!(world.stands("t").await, Some((State::Done, Ended::Fresh, 0)), "{shown}");
    }
}

#[tokio::test]
async fn a_message_without_the_attribute_has_the_key_of_its_layer_and_is_followed_by_nobody() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let layer = world.layer().key(attribute("po")).allow_unguarded().follow(follower.clone());
    let app = app(runs.answering(&[200]), layer);
    // The last one's is no id that the follower could have given.
    for attributes in [
        json!({ "po": "1" }),
        json!({ "po": "2", "task-id": " " }),
        json!({ "po": "3", "task-id": "somebody else's" }),
    ] {
        let plain = json!({ "messageId": "m", "attributes": attributes });
        assert_eq!(message(&app, &plain).await.told(), (200, "ran"));
        assert_eq!(message(&app, &plain).await.told(), (204, "duplicate"));
    }
    assert_eq!(message(&app, &json!({ "messageId": "m" })).await.told(), (200, "unguarded"));
    assert_eq!((follower.calls(), runs.count()), (vec![], 4));
    for key in ["1", "2", "3"] {
        assert_eq!(world.stands(key).await, Some((State::Done, Ended::Fresh, 0)));
    }
    assert_eq!(world.stands("somebody else's").await, None);
}

#[tokio::test]
async fn the_rule_of_the_layer_is_not_asked_about_a_followed_message() {
    let (world, follower) = (World::new(), Follower::default());
    let layer = world.layer().key(key_fn(|_| Err("asked".into()))).follow(follower.clone());
    let app = app(Runs::default().answering(&[200]), layer);
    assert_eq!(message(&app, &task("m")).await.told(), (200, "ran"));
    assert_eq!(message(&app, &json!({ "messageId": "m" })).await.told(), (500, "misuse"));
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_say_whether_it_is_wanted_nothing_is_claimed() {
    for ill in ILLS {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let follower = Follower::default();
        let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
        follower.at_wanted(ill);
        assert_eq!(message(&app, &task("m")).await.told(), (503, "unavailable"), "{ill:?}");
        let line = log.outcome();
        assert_eq!((line.level, line.field("key")), (Level::ERROR, "orders:t"), "{ill:?}");
        assert!(line.field("error").starts_with("nobody can say whether"), "{line:?}");
        assert_eq!((runs.count(), world.chaos.take()), (0, Trips::default()), "{ill:?}");
        assert_eq!(message(&app, &task("m")).await.told(), (200, "ran"), "{ill:?}");
    }
}

#[tokio::test]
async fn what_nobody_wants_is_acked_and_nothing_is_claimed() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let follower = Follower::default();
    follower.unwanted();
    let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
    assert_eq!(message(&app, &task("m")).await.told(), (204, "skipped"));
    let line = log.outcome();
    assert_eq!((line.level, line.field("event"), line.field("key")), (Level::INFO, "skipped", "orders:t"));
    assert!(line.field("error").contains("cancelled"), "{line:?}");
    assert_eq!((runs.count(), world.stands("t").await), (0, None));
    assert_eq!(world.chaos.take().swaps, 0);
    assert_eq!(follower.calls(), [Call::Wanted("t".into()), Call::Ended("t".into(), End::Skipped)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_before_nobody_wanted_it_is_seen_to_its_end() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let (start, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, released, counted) = (start.clone(), release.clone(), runs.clone());
    let handler = post(async move || {
        counted.add();
        started.notify_one();
        released.notified().await;
    });
    let app = app(handler, world.layer().follow(follower.clone()));
    let first = tokio::spawn({
        let app = app.clone();
        async move { message(&app, &task("m")).await.told().0 }
    });
    start.notified().await;
    follower.unwanted();
    // An ack now would leave nobody to tell of its end, should this process die in between.
    assert_eq!(message(&app, &task("m")).await.told(), (503, "in-progress"));
    follower.calls();
    // The process dies between the end that is recorded and the telling.
    follower.at_ended(Ill::Fails);
    release.notify_one();
    assert_eq!(first.await.unwrap(), 503);
    assert_eq!(follower.ends(), [End::Completed]);
    world.chaos.next(On::Read, Fault::Stall(Duration::from_secs(60)));
    assert_eq!(message(&app, &task("m")).await.told(), (503, "unavailable"));
    assert_eq!(message(&app, &task("m")).await.told(), (204, "duplicate"));
    assert_eq!((follower.ends(), runs.count()), (vec![End::Completed], 1));
}

#[tokio::test(start_paused = true)]
async fn a_failing_delivery_tells_nothing() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let failing = app(runs.answering(&[500, 404, 302]), world.layer().follow(follower.clone()));
    for status in [500, 404, 500] {
        assert_eq!(message(&failing, &task("m")).await.told(), (status, "failed"));
    }
    let panicking = app(post(panics), world.layer().follow(follower.clone()));
    assert_eq!(message(&panicking, &task("m")).await.told(), (500, "failed"));
    let layer = world.layer().work_timeout(Duration::from_secs(1)).follow(follower.clone());
    let late = app(post(std::future::pending::<()>), layer);
    assert_eq!(message(&late, &task("m")).await.told(), (504, "failed"));
    // It is left to lapse, so its redelivery finds a holder.
    assert_eq!(message(&failing, &task("m")).await.told(), (503, "in-progress"));
    assert_eq!(follower.ends(), []);
}

#[tokio::test]
async fn a_duplicate_tells_again_what_its_receipt_says() {
    for (progress, told, end) in [
        (Progress::Finished, (204, "duplicate"), End::Completed),
        (Progress::Rejected, (204, "duplicate"), End::DeadLettered),
        (Progress::Started, (204, "lost"), End::Lost),
    ] {
        let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
        let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
        message(&app, &task("m")).await;
        rewritten(&world, progress).await;
        follower.calls();
        assert_eq!(message(&app, &task("m")).await.told(), told);
        assert_eq!((follower.calls(), runs.count()), (seen_through(end), 1));
    }
}

/// Has the record of `t` say how far it came, longer ago than any lease.
async fn rewritten(world: &World, progress: Progress) {
    let key = ("orders", "t").into_key().unwrap();
    let stored = world.memory.read(&key).await.unwrap().unwrap();
    let receipt = stored.record.receipt.clone().map(|receipt| Receipt { progress, at: 0, ..receipt });
    let next = Record { receipt, ..stored.record };
    let swap = world.memory.swap(&key, Some(&stored.version), &next).await.unwrap();
    assert!(matches!(swap, Swap::Written(_)));
}

#[tokio::test(start_paused = true)]
async fn what_at_most_once_has_lost_is_told_by_its_run_and_by_its_redelivery() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let layer = world.layer().clock(Arc::new(TokioClock::new())).at_most_once().follow(follower.clone());
    let app = app(runs.answering(&[500, 200]), layer);
    assert_eq!(message(&app, &task("m")).await.told(), (500, "lost"));
    assert_eq!(follower.calls(), seen_through(End::Lost));
    // Until its lease is over nobody else can tell it from a run that goes on.
    assert_eq!(message(&app, &task("m")).await.told(), (503, "in-progress"));
    assert_eq!(follower.ends(), []);
    tokio::time::sleep(DEFAULT_LEASE).await;
    assert_eq!(message(&app, &task("m")).await.told(), (204, "lost"));
    assert_eq!((follower.calls(), runs.count()), (seen_through(End::Lost), 1));
    // What its mark never stood for is not lost.
    world.chaos.always(On::Claim, Fault::Fail);
    let other = json!({ "messageId": "m", "attributes": { "task-id": "other" } });
    assert_eq!(message(&app, &other).await.told(), (503, "unavailable"));
    assert_eq!(follower.ends(), []);
    world.chaos.heal();
    assert_eq!(message(&app, &other).await.told(), (200, "ran"));
    assert_eq!(message(&app, &other).await.told(), (204, "duplicate"));
    assert_eq!((follower.ends(), runs.count()), (vec![End::Completed; 2], 2));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_not_told_is_told_by_the_redelivery() {
    for (ill, statuses, once, told, end) in ILLS.into_iter().flat_map(|ill| {
        [
            (ill, [200], false, (204, "duplicate"), End::Completed),
            (ill, [500], true, (204, "lost"), End::Lost),
        ]
    }) {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let follower = Follower::default();
        let layer = world.layer().clock(Arc::new(TokioClock::new())).follow(follower.clone());
        let layer = if once { layer.at_most_once() } else { layer };
        let app = app(runs.answering(&statuses), layer);
        follower.at_ended(ill);
        assert_eq!(message(&app, &task("m")).await.told(), (503, "unavailable"), "{ill:?}");
        let line = log.outcome();
        assert_eq!((line.level, line.field("event")), (Level::ERROR, "unavailable"));
        assert!(line.field("error").contains("whoever follows it was not told"), "{line:?}");
        assert_eq!(line.field("handler_status"), statuses[0].to_string());
        tokio::time::sleep(DEFAULT_LEASE).await;
        // The redelivery fails to tell, too; the next one does.
        follower.at_ended(ill);
        assert_eq!(message(&app, &task("m")).await.told(), (503, "unavailable"), "{ill:?}");
        assert_eq!(message(&app, &task("m")).await.told(), told, "{ill:?}");
        assert_eq!((follower.ends(), runs.count()), (vec![end; 3], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_recorded_is_acked_although_it_was_not_told() {
    for ill in ILLS {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let follower = Follower::default();
        let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
        world.chaos.always(On::Complete, Fault::Fail);
        follower.at_ended(ill);
        // A nack would repeat the work.
        assert_eq!(message(&app, &task("m")).await.told(), (200, "uncertain"), "{ill:?}");
        assert_eq!(follower.calls(), seen_through(End::Completed));
        let line = log.outcome();
        assert_eq!((line.level, line.field("event")), (Level::ERROR, "uncertain"));
        for said in ["Unrecorded", "whoever follows it was not told"] {
            assert!(line.field("error").contains(said), "{line:?}");
        }
        world.chaos.heal();
        while message(&app, &task("m")).await.told() != (204, "duplicate") {
            tokio::time::sleep(Duration::from_secs(1)).await;
            follower.calls();
        }
        // Besides, it is told on until it is heard.
        assert_eq!(follower.calls()[..2], seen_through(End::Completed));
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_goes_on_being_stored_while_it_is_told() {
    let (world, follower) = (World::new(), Follower::default());
    let app = app(Runs::default().answering(&[200]), world.layer().follow(follower.clone()));
    world.chaos.always(On::Complete, Fault::Fail);
    follower.at_ended(Ill::Hangs);
    let sent = tokio::spawn(async move { message(&app, &task("m")).await.told().0 });
    until(async || follower.calls().contains(&Call::Ended("t".into(), End::Completed))).await;
    world.chaos.heal();
    until(async || world.stands("t").await == Some((State::Done, Ended::Fresh, 0))).await;
    assert!(!sent.is_finished(), "the answer waits for whoever is told first");
    assert_eq!(sent.await.unwrap(), 200);
}

#[tokio::test]
async fn what_was_fenced_out_is_told_and_acked() {
    let (world, follower) = (World::new(), Follower::default());
    let memory = world.memory.clone();
    let handler = async move || memory.forget(&("orders", "t").into_key().unwrap());
    let app = app(post(handler), world.layer().follow(follower.clone()));
    follower.at_ended(Ill::Fails);
    assert_eq!(message(&app, &task("m")).await.told(), (200, "uncertain"));
    assert_eq!(follower.calls(), seen_through(End::Completed));
}

#[tokio::test]
async fn the_end_is_told_although_the_caller_has_hung_up() {
    let (world, follower) = (World::new(), Follower::default());
    let (start, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, released) = (start.clone(), release.clone());
    let handler = post(async move || {
        started.notify_one();
        released.notified().await;
    });
    let (served, ended) = Served::of(app(handler, world.layer().follow(follower.clone()))).await;
    let caller = served.send(&task("m")).await;
    start.notified().await;
    drop(caller);
    ended.notified().await;
    assert_eq!(follower.calls(), [Call::Wanted("t".into())]);
    release.notify_one();
    until(async || follower.calls() == [Call::Ended("t".into(), End::Completed)]).await;
    assert_eq!(world.stands("t").await, Some((State::Done, Ended::Fresh, 0)));
}

#[tokio::test]
async fn the_entity_of_a_followed_message_is_kept_as_ever() {
    let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
    let layer = world.layer().serialize(attribute("po")).follow(follower.clone());
    let app = app(runs.answering(&[200]), layer);
    let order = json!({ "messageId": "m", "attributes": { "task-id": "t", "po": "1" } });
    assert_eq!(message(&app, &order).await.told(), (200, "ran"));
    assert_eq!(follower.calls(), seen_through(End::Completed));
    assert_eq!(message(&app, &task("m")).await.told(), (422, "unkeyed"));
    assert_eq!((follower.calls(), runs.count()), (vec![], 1));
}

#[tokio::test]
async fn another_payload_of_a_followed_message_is_a_conflict_and_no_other_message() {
    for (check, told) in [(PayloadCheck::Alert, (204, "conflict")), (PayloadCheck::Refuse, (409, "conflict"))]
    {
        let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
        let app = app(runs.answering(&[200]), world.layer().payload_check(check).follow(follower.clone()));
        let with = |data: &str| {
            let data = BASE64_STANDARD.encode(data);
            json!({ "messageId": "m", "data": data, "attributes": { "task-id": "t" } })
        };
        assert_eq!(message(&app, &with("1")).await.told(), (200, "ran"));
        assert_eq!(message(&app, &with("2")).await.told(), told);
        // The task is over all the same.
        assert_eq!((follower.ends(), runs.count()), (vec![End::Completed; 2], 1));
    }
}

#[test]
fn a_disabled_layer_is_followed_by_nobody() {
    process::alone("follow::a_disabled_layer_is_followed_by_nobody", &[("PUSHONCE_DISABLED", "1")], async {
        let (world, runs, follower) = (World::new(), Runs::default(), Follower::default());
        follower.unwanted();
        let app = app(runs.answering(&[200]), world.layer().follow(follower.clone()));
        assert_eq!(message(&app, &task("m")).await.status, 200);
        assert_eq!((follower.calls(), runs.count()), (vec![], 1));
    });
}
