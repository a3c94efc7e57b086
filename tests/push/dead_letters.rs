//! Messages that a handler rejects: published under the fence, with all that Pub/Sub itself says of a dead letter, and then done.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use pushonce::idempotent::End;
use pushonce::store::chaos::{Fault, On, Trips};
use pushonce::store::record::{Ended, Progress, State};
use pushonce::store::{BoxError, Cached};
use pushonce::{DeadLetter, Failure, IdempotentLayer, InvalidLayer, Store, attribute, key_fn, lock, mutex};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::Level;

use crate::callers::{Served, until};
use crate::follower::{self, Follower, seen_through, task};
use crate::log::Log;
use crate::process;
use crate::topic::{ILLS, Ill, TOPIC, Topic};
use crate::world::{Runs, World, app, message, posted, push, send, wrapped};

/// A handler that rejects all that it gets.
async fn rejects() -> Failure {
    Failure::dead_letter("no such order")
}

impl World {
    /// Its layer, with a topic for dead letters.
    fn rejecting(&self) -> (IdempotentLayer, Topic) {
        let topic = Topic::of(self);
        (self.layer().dead_letters(topic.publisher(), TOPIC), topic)
    }

    async fn progress(&self, text: &str) -> Option<Progress> {
        Some(self.record(("orders", text)).await?.receipt?.progress)
    }
}

fn attributes<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[tokio::test]
async fn a_rejected_message_is_published_with_all_that_is_known_of_it_and_is_done() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let (layer, topic) = world.rejecting();
    let app = app(post(rejects), layer);
    let rejected = json!({
        "messageId": "m", "data": BASE64_STANDARD.encode(b"\xffdata"), "orderingKey": "po-1",
        "publishTime": "2026-01-04T00:00:00.1234Z",
        "attributes": { "po": "1", "googclient_traceparent": "00-1-2-01" },
    });
    assert_eq!(message(&app, &rejected).await.told(), (200, "dead-lettered"));
    let line = log.outcome();
    assert_eq!((line.level, line.field("event")), (Level::ERROR, "dead-lettered"));
    assert_eq!((line.field("handler_status"), line.field("status")), ("500", "200"));
    assert!(line.field("error").contains("a dead letter: no such order"), "{line:?}");
    let letter = topic.message();
    assert_eq!((&letter.data[..], letter.ordering_key.as_deref()), (&b"\xffdata"[..], Some("po-1")));
    let set = attributes([
        ("po", "1"),
        ("googclient_traceparent", "00-1-2-01"),
        ("CloudPubSubDeadLetterSourceDeliveryCount", "3"),
        ("CloudPubSubDeadLetterSourceSubscription", "s"),
        ("CloudPubSubDeadLetterSourceSubscriptionProject", "p"),
        ("CloudPubSubDeadLetterSourceTopicPublishTime", "2026-01-04T00:00:00.123+00:00"),
        ("pushonce-dead-letter-reason", "no such order"),
        ("pushonce-dead-letter-consumer", "orders"),
        ("pushonce-dead-letter-key", "m"),
        ("pushonce-source-message-id", "m"),
    ]);
    assert_eq!(letter.attributes, set);
    // Its claim was renewed, and stood while it was published.
    assert_eq!(topic.stood()[0].as_ref().unwrap().state, State::Claimed);
    assert_eq!(world.chaos.take(), Trips { reads: 0, swaps: 3 });
    assert_eq!(world.stands("m").await, Some((State::Done, Ended::Fresh, 0)));
    assert_eq!(world.progress("m").await, Some(Progress::Rejected));
    assert_eq!(message(&app, &rejected).await.told(), (204, "duplicate"));
    assert_eq!(topic.messages(), []);
}

#[tokio::test]
async fn what_is_not_known_of_a_message_is_not_said() {
    let (world, data) = (World::new(), BASE64_STANDARD.encode("{}"));
    let (layer, topic) = world.rejecting();
    let app = app(post(rejects), layer.key(key_fn(|_| Ok(Some("m".into())))));
    let published = "google.cloud.pubsub.topic.v1.messagePublished";
    let envelope = json!({ "message": { "messageId": "1", "data": data, "attributes": { "a": "b" } } });
    let ours = [
        ("CloudPubSubDeadLetterSourceDeliveryCount", "1"),
        ("pushonce-dead-letter-reason", "no such order"),
        ("pushonce-dead-letter-consumer", "orders"),
        ("pushonce-dead-letter-key", "m"),
    ];
    let shapes = [
        (posted(envelope.to_string()), vec![("a", "b"), ("pushonce-source-message-id", "1")]),
        (
            Request::post("/")
                .header("x-goog-pubsub-message-id", "1")
                .header("x-goog-pubsub-subscription-name", "projects/p/subscriptions/s")
                .header("a", "b")
                .body("{}".into())
                .unwrap(),
            vec![
                ("a", "b"),
                ("pushonce-source-message-id", "1"),
                ("CloudPubSubDeadLetterSourceSubscription", "s"),
                ("CloudPubSubDeadLetterSourceSubscriptionProject", "p"),
            ],
        ),
        (posted("{}"), vec![]),
        (
            Request::post("/")
                .header("ce-id", "e")
                .header("ce-source", "//pubsub.googleapis.com/projects/p/topics/t")
                .header("ce-specversion", "1.0")
                .header("ce-type", published)
                .header("content-type", "application/json")
                .body(envelope.to_string().into())
                .unwrap(),
            vec![("a", "b"), ("pushonce-source-message-id", "1")],
        ),
    ];
    for (shape, more) in shapes {
        let shown = format!("{shape:?}");
        assert_eq!(send(&app, shape).await.told(), (200, "dead-lettered"), "{shown}");
        let letter = topic.message();
        let known = ours.iter().chain(&more).map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!((letter.attributes, &letter.data[..]), (known.collect(), &b"{}"[..]), "{shown}");
        world.forget("m");
    }
}

#[derive(Debug)]
struct Wrapped(BoxError);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the order cannot be placed")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

fn letter() -> DeadLetter {
    DeadLetter { reason: "no such order".into() }
}

#[tokio::test]
async fn a_dead_letter_is_found_wherever_it_stands_in_the_chain_of_a_failure() {
    let deep = |kind: &'static str, store: Arc<dyn Store>| async move {
        match kind {
            "bare" => Err::<(), Failure>(letter().into()),
            "wrapped" => Err(Wrapped(Box::new(Wrapped(letter().into()))).into()),
            "lock" => Ok(lock(("inner", "1"), &store).run(async { Err(letter().into()) }).await?),
            "mutex" => Ok(mutex(("inner", "2"), &store)
                .run_with(|_| async { Err(Wrapped(letter().into()).into()) })
                .await?),
            _ => unreachable!(),
        }
    };
    for kind in ["bare", "wrapped", "lock", "mutex"] {
        let world = World::new();
        let (layer, topic) = world.rejecting();
        let store = world.store.clone();
        let app = app(post(move || deep(kind, store.clone())), layer);
        assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"), "{kind}");
        let letter = topic.message();
        assert_eq!(letter.attributes["pushonce-dead-letter-reason"], "no such order", "{kind}");
    }
    // Also where the service is no handler of axum's, and returns an error.
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let service = tower::service_fn(async |_: Request<axum::body::Body>| {
        Err::<http::Response<axum::body::Body>, BoxError>(Wrapped(letter().into()).into())
    });
    let service = tower_layer::Layer::layer(&layer, service);
    let answer = tower::ServiceExt::oneshot(service, wrapped(&json!({ "messageId": "m" }))).await;
    assert_eq!(answer.unwrap().status(), 200);
    topic.message();
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_published_is_released_and_its_redelivery_tries_again() {
    for ill in ILLS {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let (layer, topic) = world.rejecting();
        let app = app(post(rejects), layer);
        topic.next(ill);
        assert_eq!(push(&app, "m").await.told(), (500, "dead-lettered"), "{ill:?}");
        let line = log.outcome();
        assert_eq!((line.level, line.field("event")), (Level::ERROR, "dead-lettered"));
        assert!(line.field("error").starts_with("not sent to the dead letters: "), "{line:?}");
        assert_eq!(world.stands("m").await, Some((State::Released, Ended::Failed, 1)), "{ill:?}");
        assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"), "{ill:?}");
        let copies = topic.messages();
        // A copy after a lost answer is the same message, which its receiver drops.
        assert_eq!(copies.len(), if matches!(ill, Ill::LosesAnswer) { 2 } else { 1 }, "{ill:?}");
        assert!(copies.windows(2).all(|pair| pair[0] == pair[1]), "{copies:?}");
        assert_eq!(push(&app, "m").await.told(), (204, "duplicate"), "{ill:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_publisher_is_waited_for_until_the_renewed_lease_is_over_and_never_over_a_minute() {
    for (lease, waits) in [(9, 9), (900, 60)] {
        let world = World::new();
        let (layer, topic) = world.rejecting();
        let clock = Arc::new(pushonce::testing::TokioClock::new());
        let handler = post(async || {
            tokio::time::sleep(Duration::from_secs(8)).await;
            rejects().await
        });
        let app = app(handler, layer.lease(Duration::from_secs(lease)).clock(clock));
        topic.next(Ill::Hangs);
        let began = tokio::time::Instant::now();
        assert_eq!(push(&app, "m").await.told(), (500, "dead-lettered"));
        assert_eq!(began.elapsed().as_secs(), 8 + waits);
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_claim_is_not_renewed_nothing_is_published() {
    for fault in [Fault::Fail, Fault::LoseBefore, Fault::Refuse, Fault::Stall(Duration::from_secs(900))] {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let (layer, topic) = world.rejecting();
        let app = app(post(rejects), layer);
        world.chaos.always(On::Renew, fault);
        assert_eq!(push(&app, "m").await.told(), (500, "dead-lettered"), "{fault:?}");
        assert!(log.outcome().field("error").contains("could not be renewed"), "{fault:?}");
        assert_eq!(topic.messages(), [], "{fault:?}");
        assert_eq!(world.stands("m").await, Some((State::Released, Ended::Failed, 1)), "{fault:?}");
    }
}

#[tokio::test]
async fn whoever_is_fenced_out_publishes_nothing_and_changes_nothing() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let (layer, topic) = world.rejecting();
    let thief = app(Runs::default().answering(&[200]), world.layer());
    let stolen = world.clone();
    let handler = post(async move || {
        stolen.forget("m");
        let thief = thief.clone();
        // Of a task of its own, since in this one it would be the holder that takes its own key.
        let told = tokio::spawn(async move { push(&thief, "m").await.told().0 });
        assert_eq!(told.await.unwrap(), 200);
        rejects().await
    });
    assert_eq!(push(&app(handler, layer), "m").await.told(), (500, "dead-lettered"));
    assert!(log.outcomes().last().unwrap().field("error").contains("not ours any more"));
    assert_eq!(topic.messages(), []);
    assert_eq!(world.progress("m").await, Some(Progress::Finished));
}

#[tokio::test]
async fn whoever_is_fenced_out_after_it_has_published_changes_nothing_and_nacks() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let (layer, topic) = world.rejecting();
    let app = app(post(rejects), layer);
    topic.next(Ill::Forgets);
    assert_eq!(push(&app, "m").await.told(), (500, "dead-lettered"));
    assert!(log.outcome().field("error").contains("somebody else has its key"));
    assert_eq!((topic.messages().len(), world.stands("m").await), (1, None));
}

#[tokio::test(start_paused = true)]
async fn what_is_published_and_cannot_be_recorded_yet_is_acked() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let (layer, topic) = world.rejecting();
    let counted = runs.clone();
    let handler = post(async move || {
        counted.add();
        rejects().await
    });
    let app = app(handler, layer);
    world.chaos.always(On::Complete, Fault::Fail);
    assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"));
    assert!(log.outcome().field("error").contains("not recorded yet"));
    // This process knows that it is done.
    assert_eq!(push(&app, "m").await.told(), (503, "unavailable"));
    world.chaos.heal();
    while push(&app, "m").await.told() != (204, "duplicate") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((topic.messages().len(), runs.count()), (1, 1));
    assert_eq!(world.progress("m").await, Some(Progress::Rejected));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_store_that_was_lost_changes_nothing() {
    for (on, fault) in [
        (On::Renew, Fault::LoseAnswer),
        (On::Renew, Fault::LoseBefore),
        (On::Complete, Fault::LoseAnswer),
        (On::Complete, Fault::LoseBefore),
    ] {
        let world = World::new();
        let (layer, topic) = world.rejecting();
        let app = app(post(rejects), layer);
        world.chaos.next(on, fault);
        assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"), "{on:?} {fault:?}");
        assert!(!world.chaos.has_next());
        assert_eq!(topic.messages().len(), 1, "{on:?} {fault:?}");
        assert_eq!(world.progress("m").await, Some(Progress::Rejected), "{on:?} {fault:?}");
    }
}

#[tokio::test]
async fn what_pub_sub_would_not_take_is_left_to_the_policy_of_the_subscription() {
    let many = |count: usize| {
        let names = (0..count).map(|at| (format!("a{at}"), Value::from("b")));
        json!({ "messageId": "m", "attributes": Value::Object(names.collect()) })
    };
    let long = |length: usize| json!({ "messageId": "k".repeat(length) });
    for (fits, rejected, names) in [
        (true, long(1024), ""),
        (false, long(1025), "`pushonce-dead-letter-key` would have 1025 bytes"),
        // Three of those that Pub/Sub sets, as this push has no publish time, and four of ours.
        (true, many(93), ""),
        (false, many(94), "101 attributes"),
    ] {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let (layer, topic) = world.rejecting();
        let told = (if fits { 200 } else { 500 }, "dead-lettered");
        assert_eq!(message(&app(post(rejects), layer), &rejected).await.told(), told, "{names}");
        assert_eq!(topic.messages().len(), usize::from(fits), "{names}");
        let line = log.outcome();
        let policy = line.field("error").contains("the subscription's own dead-letter policy has to take it");
        assert!(policy != fits && line.field("error").contains(names), "{line:?}");
    }
}

#[tokio::test]
async fn data_that_is_no_base64_is_left_to_that_policy_too() {
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let broken = json!({ "messageId": "m", "data": "***" });
    assert_eq!(message(&app(post(rejects), layer), &broken).await.told(), (500, "dead-lettered"));
    assert_eq!(topic.messages(), []);
}

#[tokio::test]
async fn a_long_reason_is_cut_between_two_characters() {
    for (reason, kept) in [
        ("x".repeat(1024), 1024),
        ("x".repeat(5000), 1024),
        ("\u{20ac}".repeat(400), 1023),
        (format!("x{}", "\u{20ac}".repeat(400)), 1024),
        (String::new(), 0),
    ] {
        let world = World::new();
        let (layer, topic) = world.rejecting();
        let said = reason.clone();
        let app = app(post(async move || Failure::dead_letter(said.clone())), layer);
        assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"));
        assert_eq!(topic.message().attributes["pushonce-dead-letter-reason"], reason[..kept]);
    }
}

#[tokio::test]
async fn the_entity_is_given_back_as_ever() {
    for ill in [None, Some(Ill::Fails)] {
        let world = World::new();
        let (layer, topic) = world.rejecting();
        let layer = layer.serialize(attribute("po")).serialize_wait(Duration::ZERO);
        ill.inspect(|ill| topic.next(*ill));
        let rejecting = app(post(rejects), layer.clone());
        let order = |id: &str| json!({ "messageId": id, "attributes": { "po": "1" } });
        let status = if ill.is_some() { 500 } else { 200 };
        assert_eq!(message(&rejecting, &order("m")).await.told(), (status, "dead-lettered"));
        let running = app(Runs::default().answering(&[200]), layer);
        assert_eq!(message(&running, &order("n")).await.told(), (200, "ran"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_key_is_published_without_a_fence() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let (layer, topic) = world.rejecting();
    let app = app(post(rejects), layer.key(attribute("po")).allow_unguarded());
    assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"));
    assert_eq!(log.outcome().level, Level::ERROR);
    let attributes = topic.message().attributes;
    assert!(!attributes.contains_key("pushonce-dead-letter-key"), "{attributes:?}");
    assert_eq!(attributes["pushonce-source-message-id"], "m");
    for ill in ILLS {
        topic.next(ill);
        assert_eq!(push(&app, "m").await.told(), (500, "dead-lettered"), "{ill:?}");
    }
    assert_eq!(world.chaos.take(), Trips::default());
}

#[tokio::test]
async fn without_a_topic_a_dead_letter_is_misuse() {
    for layer in [World::layer, |world: &World| world.layer().key(attribute("po")).allow_unguarded()] {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let app = app(post(rejects), layer(&world));
        assert_eq!(push(&app, "m").await.told(), (500, "misuse"));
        assert_eq!(log.outcome().level, Level::ERROR);
        let stands = world.stands("m").await;
        assert!(stands.is_none() || stands == Some((State::Released, Ended::Failed, 1)), "{stands:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_once_is_rejected_from_its_mark_whose_window_does_not_slide() {
    let clock = Arc::new(pushonce::testing::TokioClock::new());
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let handler = post(async || {
        tokio::time::sleep(Duration::from_secs(100)).await;
        rejects().await
    });
    // Its lease is over when it fails, which says nothing: a mark is never taken over.
    let layer = layer.at_most_once().lease(Duration::from_secs(30)).clock(clock);
    let app = app(handler, layer);
    assert_eq!(push(&app, "m").await.told(), (200, "dead-lettered"));
    topic.message();
    let mark = topic.stood()[0].clone().unwrap();
    assert_eq!((mark.state, mark.receipt.unwrap().progress), (State::Done, Progress::Started));
    let record = world.record(("orders", "m")).await.unwrap();
    assert_eq!(record.receipt.unwrap().progress, Progress::Rejected);
    assert_eq!((mark.aged, record.aged), (Duration::from_secs(100), Duration::from_secs(100)));
    assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
}

#[tokio::test]
async fn at_most_once_that_is_not_published_is_lost() {
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let rejecting = app(post(rejects), layer.at_most_once());
    topic.next(Ill::Fails);
    assert_eq!(push(&rejecting, "m").await.told(), (500, "lost"));
    assert_eq!(push(&rejecting, "m").await.told(), (204, "lost"));
    assert_eq!(topic.messages(), []);
    // Nor does it publish once its mark is taken away.
    let (layer, stolen) = (world.layer().dead_letters(topic.publisher(), TOPIC), world.clone());
    let handler = post(async move || {
        stolen.forget("n");
        rejects().await
    });
    let app = app(handler, layer.at_most_once());
    assert_eq!(push(&app, "n").await.told(), (500, "lost"));
    assert_eq!((topic.messages(), world.stands("n").await), (vec![], None));
}

#[tokio::test]
async fn whoever_follows_a_rejected_message_is_told() {
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let follower = Follower::of(&world);
    let app = app(post(rejects), layer.follow(follower.clone()));
    topic.next(Ill::Fails);
    assert_eq!(message(&app, &task("m")).await.told(), (500, "dead-lettered"));
    assert_eq!(follower.ends(), []);
    // Recorded, told to nobody, and told by the redelivery.
    follower.at_ended(follower::Ill::Fails);
    assert_eq!(message(&app, &task("m")).await.told(), (503, "unavailable"));
    assert_eq!(topic.message().attributes["pushonce-dead-letter-key"], "t");
    assert_eq!(follower.calls(), seen_through(End::DeadLettered));
    assert_eq!(follower.stood().last(), Some(&Some(State::Done)));
    assert_eq!(message(&app, &task("m")).await.told(), (204, "duplicate"));
    assert_eq!(follower.calls(), seen_through(End::DeadLettered));
    assert_eq!(topic.messages(), []);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_what_is_not_recorded_yet_is_told_and_it_is_acked_all_the_same() {
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let follower = Follower::of(&world);
    let app = app(post(rejects), layer.follow(follower.clone()));
    world.chaos.always(On::Complete, Fault::Fail);
    follower.at_ended(follower::Ill::Fails);
    assert_eq!(message(&app, &task("m")).await.told(), (200, "dead-lettered"));
    assert_eq!(follower.calls(), seen_through(End::DeadLettered));
    assert_eq!(topic.messages().len(), 1);
}

#[tokio::test]
async fn a_rejected_message_is_published_although_its_caller_has_hung_up() {
    let world = World::new();
    let (layer, topic) = world.rejecting();
    let (start, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, released) = (start.clone(), release.clone());
    let handler = post(async move || {
        started.notify_one();
        released.notified().await;
        rejects().await
    });
    let (served, ended) = Served::of(app(handler, layer)).await;
    let caller = served.send(&json!({ "messageId": "m" })).await;
    start.notified().await;
    drop(caller);
    ended.notified().await;
    assert_eq!(topic.messages(), []);
    release.notify_one();
    until(async || world.progress("m").await == Some(Progress::Rejected)).await;
    topic.message();
}

#[tokio::test]
async fn a_rejected_message_is_never_cached() {
    let (world, runs) = (World::new(), Runs::default());
    let topic = Topic::of(&world);
    let store: Arc<dyn Store> = Arc::new(Cached::new(world.chaos.clone()));
    let layer = IdempotentLayer::new("orders", store).dead_letters(topic.publisher(), TOPIC);
    let (rejecting, running) = (app(post(rejects), layer.clone()), app(runs.answering(&[200]), layer));
    assert_eq!(push(&running, "n").await.told(), (200, "ran"));
    assert_eq!(push(&rejecting, "m").await.told(), (200, "dead-lettered"));
    world.chaos.take();
    // What ran is answered from memory; what was rejected is looked for, so that a redrive is seen at once.
    assert_eq!(push(&running, "n").await.told(), (204, "duplicate"));
    assert_eq!(world.chaos.take(), Trips::default());
    assert_eq!(push(&rejecting, "m").await.told(), (204, "duplicate"));
    assert_ne!(world.chaos.take(), Trips::default());
    world.forget("m");
    assert_eq!(push(&running, "m").await.told(), (200, "ran"));
}

#[test]
fn a_topic_without_a_name_is_refused() {
    let world = World::new();
    for topic in ["", "  "] {
        let layer = world.layer().dead_letters(Topic::of(&world).publisher(), topic);
        let refused = layer.check().unwrap_err();
        assert!(matches!(refused, InvalidLayer::DeadLetterTopic), "{refused:?}");
        assert!(refused.to_string().contains("projects/p/topics/"), "{refused}");
    }
}

#[test]
fn a_disabled_layer_publishes_nothing() {
    process::alone(
        "dead_letters::a_disabled_layer_publishes_nothing",
        &[("PUSHONCE_DISABLED", "1")],
        async {
            let world = World::new();
            let (layer, topic) = world.rejecting();
            assert_eq!(push(&app(post(rejects), layer), "m").await.told(), (500, "misuse"));
            assert_eq!((topic.messages(), world.chaos.take()), (vec![], Trips::default()));
        },
    );
}
