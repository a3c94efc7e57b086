//! What belongs to the whole process: the budget of buffered bytes, the switch, and the drain. Each test has a process of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use pushonce::store::chaos::{Fault, On, Trips};
use pushonce::store::record::{Ended, State};
use pushonce::{Drained, InvalidLayer, Lease, attribute, drain};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::Level;

use crate::log::Log;
use crate::process;
use crate::world::{Answer, Runs, World, app, posted, push, send, wrapped};

/// Runs the body of that test of this module in a process of its own.
fn alone(name: &str, variables: &[(&str, &str)], body: impl Future<Output = ()>) {
    process::alone(&format!("alone::{name}"), variables, body);
}

/// A handler that says that it has started, and waits for its release.
struct Held {
    app: Router,
    started: Arc<Notify>,
    release: Arc<Notify>,
}

impl Held {
    fn of(layer: pushonce::IdempotentLayer) -> Self {
        let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (start, released) = (started.clone(), release.clone());
        let handler = post(async move || {
            start.notify_one();
            released.notified().await;
        });
        Self { app: app(handler, layer), started, release }
    }

    /// Sends a push, and returns once its handler has started.
    async fn send(&self, request: http::Request<Body>) -> JoinHandle<Answer> {
        let app = self.app.clone();
        let sent = tokio::spawn(async move { send(&app, request).await });
        self.started.notified().await;
        sent
    }
}

/// A push of that id whose body has so many bytes.
fn sized(id: &str, length: usize) -> http::Request<Body> {
    let body = format!(r#"{{"message":{{"messageId":"{id}"}}}}"#);
    posted(format!("{body}{}", " ".repeat(length - body.len())))
}

#[test]
fn over_the_budget_of_buffered_bytes_a_push_is_answered_503_before_its_claim() {
    let name = "over_the_budget_of_buffered_bytes_a_push_is_answered_503_before_its_claim";
    alone(name, &[], async {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let held = Held::of(world.layer().body_limit(1000).body_budget(1000));
        let first = held.send(sized("m-1", 700)).await;
        world.chaos.take();
        assert_eq!(send(&held.app, sized("m-2", 301)).await.told(), (503, "unavailable"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("unavailable", Level::ERROR));
        assert!(line.field("error").contains("1000"), "{line:?}");
        assert_eq!((world.chaos.take(), world.stands("m-2").await), (Trips::default(), None));
        // What was refused counts no more; what fits passes.
        let second = held.send(sized("m-3", 300)).await;
        held.release.notify_one();
        held.release.notify_one();
        assert_eq!(first.await.unwrap().told(), (200, "ran"));
        held.release.notify_one();
        assert_eq!(second.await.unwrap().told(), (200, "ran"));
        // All of it was given back.
        let third = held.send(sized("m-4", 1000)).await;
        held.release.notify_one();
        assert_eq!(third.await.unwrap().told(), (200, "ran"));
    });
}

#[test]
fn disabled_every_delivery_runs_and_nothing_is_asked_or_added() {
    let name = "disabled_every_delivery_runs_and_nothing_is_asked_or_added";
    alone(name, &[("PUSHONCE_DISABLED", "on")], async {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let counted = runs.clone();
        let handler = post(async move |lease: Option<Lease>| {
            assert!(lease.is_none());
            counted.add();
            http::StatusCode::ACCEPTED
        });
        let app = app(handler, world.layer());
        for _ in 0..2 {
            assert_eq!(push(&app, "m").await.told(), (202, ""));
        }
        assert_eq!(send(&app, posted("no push at all")).await.told(), (202, ""));
        assert_eq!((runs.count(), world.chaos.trips()), (3, Trips::default()));
        let lines = log.lines();
        assert!(matches!(&lines[..], [line] if line.level == Level::WARN), "{lines:?}");
        assert!(lines[0].field("message").contains("PUSHONCE_DISABLED"), "{lines:?}");
    });
}

#[test]
fn disabled_on_cloud_run_is_refused_when_the_layer_is_built() {
    let variables = [("PUSHONCE_DISABLED", "1"), ("K_SERVICE", "orders")];
    alone("disabled_on_cloud_run_is_refused_when_the_layer_is_built", &variables, async {
        let world = World::new();
        let refused = world.layer().check();
        assert!(matches!(refused, Err(InvalidLayer::Disabled(_))), "{refused:?}");
        let built = std::panic::catch_unwind(|| app(Runs::default().answering(&[200]), World::new().layer()));
        assert!(built.is_err());
    });
}

// F56
#[test]
fn a_process_that_drains_finishes_its_work_and_begins_none() {
    alone("a_process_that_drains_finishes_its_work_and_begins_none", &[], async {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let held = Held::of(world.layer());
        let first = held.send(sized("m-1", 100)).await;
        let drained = tokio::spawn(drain(Duration::from_secs(8)));
        tokio::task::yield_now().await;
        let guarded = app(runs.answering(&[200]), world.layer());
        let unguarded = app(runs.answering(&[200]), world.layer().key(attribute("po")).allow_unguarded());
        for app in [guarded, unguarded] {
            assert_eq!(push(&app, "m-2").await.told(), (503, "unavailable"));
            let line = log.outcome();
            assert_eq!((line.field("event"), line.level), ("unavailable", Level::INFO));
        }
        assert_eq!((runs.count(), world.stands("m-2").await), (0, None));
        held.release.notify_one();
        assert_eq!(first.await.unwrap().told(), (200, "ran"));
        assert_eq!(drained.await.unwrap(), Drained { cancelled: false, left: 0 });
    });
}

// F56
#[test]
fn work_that_does_not_end_in_time_is_cancelled_and_says_what_becomes_of_it() {
    alone("work_that_does_not_end_in_time_is_cancelled_and_says_what_becomes_of_it", &[], async {
        let (world, (log, _guard)) = (World::new(), Log::capture());
        let layers = [
            world.layer(),
            world.layer().cancel_safe(),
            world.layer().at_most_once(),
            world.layer().key(attribute("po")).allow_unguarded(),
        ];
        let mut sent = Vec::new();
        for (at, layer) in layers.into_iter().enumerate() {
            sent.push(Held::of(layer).send(sized(&format!("m-{at}"), 100)).await);
        }
        assert_eq!(drain(Duration::from_secs(8)).await, Drained { cancelled: true, left: 0 });
        let told = ["unavailable", "unavailable", "lost", "unavailable"];
        for (sent, told) in sent.into_iter().zip(told) {
            assert_eq!(sent.await.unwrap().told(), (503, told));
        }
        let levels: Vec<_> =
            log.outcomes().iter().map(|line| (line.field("event").to_owned(), line.level)).collect();
        assert_eq!(levels.iter().filter(|line| **line == ("lost".to_owned(), Level::ERROR)).count(), 1);
        assert_eq!(levels.iter().filter(|line| **line == ("unavailable".to_owned(), Level::INFO)).count(), 3);
        // What the handler started may go on, unless it declared otherwise.
        assert_eq!(world.stands("m-0").await, Some((State::Claimed, Ended::Fresh, 0)));
        assert_eq!(world.stands("m-1").await, Some((State::Released, Ended::Unknown, 1)));
        assert_eq!(world.stands("m-2").await.unwrap().0, State::Done);
    });
}

#[test]
fn a_handler_that_succeeded_is_recorded_though_its_entity_is_still_being_given_back_at_the_cancellation() {
    let name = "a_handler_that_succeeded_is_recorded_though_its_entity_is_still_being_given_back_at_the_cancellation";
    alone(name, &[], async {
        let world = World::new();
        let held = Held::of(world.layer().serialize(attribute("po")));
        let message = json!({ "messageId": "m", "attributes": { "po": "1" } });
        let sent = held.send(wrapped(&message)).await;
        // The entity is given back from the sixth second on; what is left is cancelled at the seventh.
        world.chaos.next(On::Release, Fault::Stall(Duration::from_millis(1500)));
        let release = held.release.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(6)).await;
            release.notify_one();
        });
        assert_eq!(drain(Duration::from_secs(8)).await, Drained { cancelled: true, left: 0 });
        assert_eq!(sent.await.unwrap().told(), (200, "ran"));
        assert_eq!(world.stands("m").await.unwrap().0, State::Done);
    });
}
