//! One event for each delivery: every outcome with its name, its severity and its fields, and nothing that is secret.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::Request;
use pushonce::store::chaos::{Fault, On};
use pushonce::testing::{ManualClock, Push};
use pushonce::{Failure, Outcome, PayloadCheck, RunError, Skip, attribute, key_fn, mutex};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::given_up::{Over, Taken};
use crate::lines::{Entry, Lines};
use crate::process::alone;
use crate::world::{PAYLOAD, SUBSCRIPTION, TOKEN, World, answering, app, message, push};

/// The outcomes that were seen, each with its event checked.
struct Seen {
    lines: Lines,
    outcomes: BTreeSet<&'static str>,
}

/// Where the names are promised.
const MANUAL: &str = include_str!("../../docs/telemetry.md");

impl Seen {
    /// The one event since the last, which must be this one.
    fn next(&mut self, outcome: Outcome, severity: &str, status: u16) -> Entry {
        let entry = self.lines.outcome();
        let found = (entry.text("event"), entry.text("severity"), entry.get("status"));
        assert_eq!(found, (outcome.name(), severity, &json!(status)), "{entry:?}");
        assert!(entry.text("message").starts_with(outcome.name()), "{entry:?}");
        assert_eq!(
            (entry.text("consumer"), entry.text("target")),
            ("orders", "pushonce::idempotent::report")
        );
        assert!(!entry.says(PAYLOAD) && !entry.says(TOKEN), "{entry:?}");
        self.outcomes.insert(outcome.name());
        for name in entry.names().into_iter().chain([outcome.name()]).filter(|name| *name != "time") {
            assert!(MANUAL.contains(&format!("`{name}`")), "{name} is not in docs/telemetry.md");
        }
        entry
    }
}

/// What an event has of the message.
fn is_of(entry: &Entry, id: &str) {
    assert_eq!((entry.text("message_id"), entry.text("subscription")), (id, SUBSCRIPTION), "{entry:?}");
    assert_eq!(entry.get("delivery_attempt"), &json!(3));
    assert!(entry.get("message_age_seconds").as_f64().is_some_and(|age| age >= 0.0), "{entry:?}");
}

/// What an event has of a lease under which the handler ran.
fn ran_under(entry: &Entry, history: &str, runs: u32) {
    assert_eq!((entry.text("history"), entry.get("runs")), (history, &json!(runs)), "{entry:?}");
    assert!(entry.get("fence").is_u64(), "{entry:?}");
    let left = entry.get("lease_left_seconds").as_f64().unwrap();
    assert!(left > 0.0 && left <= 900.0, "{entry:?}");
}

fn ran_under_none(entry: &Entry) {
    for name in ["fence", "history", "runs", "lease_left_seconds"] {
        assert_eq!(entry.get(name), &Value::Null, "{entry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_outcome_has_its_event_its_severity_and_its_fields() {
    let (lines, _guard) = Lines::capture();
    let mut seen = Seen { lines, outcomes: BTreeSet::new() };
    let world = World::new();
    let plain = app(answering(202), world.layer());

    push(&plain, "1").await;
    let ran = seen.next(Outcome::Ran, "INFO", 200);
    is_of(&ran, "1");
    ran_under(&ran, "fresh", 0);
    assert_eq!((ran.text("key"), ran.get("handler_status")), ("orders:1", &json!(202)));
    assert_eq!((ran.text("message"), ran.get("error")), ("ran orders:1", &Value::Null));

    push(&plain, "1").await;
    let duplicate = seen.next(Outcome::Duplicate, "DEBUG", 204);
    is_of(&duplicate, "1");
    ran_under_none(&duplicate);
    completed_by(&duplicate, "1");

    let checked = world.layer().key(attribute("po")).payload_check(PayloadCheck::Alert);
    let checked = app(answering(200), checked);
    Push::json(&1).id("2").attribute("po", "p").subscription(SUBSCRIPTION).send(&checked).await;
    seen.next(Outcome::Ran, "INFO", 200);
    message("3").attribute("po", "p").send(&checked).await;
    let conflict = seen.next(Outcome::Conflict, "ERROR", 204);
    is_of(&conflict, "3");
    completed_by(&conflict, "2");

    let failing = app(answering(422), world.layer());
    push(&failing, "4").await;
    let failed = seen.next(Outcome::Failed, "WARNING", 422);
    ran_under(&failed, "fresh", 0);
    assert_eq!(failed.text("message"), "failed orders:4: the handler answered 422 Unprocessable Entity");
    push(&failing, "4").await;
    ran_under(&seen.next(Outcome::Failed, "WARNING", 422), "failed", 1);
    push(&app(post(panics), world.layer()), "4").await;
    let panicked = seen.next(Outcome::Failed, "ERROR", 500);
    ran_under(&panicked, "failed", 2);
    assert!(panicked.text("error").ends_with("the work panicked: no supplier"), "{panicked:?}");
    push(&plain, "4").await;
    ran_under(&seen.next(Outcome::Ran, "INFO", 200), "unknown", 3);

    in_progress(&mut seen, &world).await;

    let once = app(answering(500), world.layer().at_most_once());
    push(&once, "6").await;
    ran_under_for(&seen.next(Outcome::Lost, "ERROR", 500), "fresh");
    push(&once, "6").await;
    completed_by(&seen.next(Outcome::Lost, "ERROR", 204), "6");

    push(&app(answering(200), world.layer().key(key_fn(|_| Err("no".into())))), "7").await;
    is_of(&seen.next(Outcome::Misuse, "ERROR", 500), "7");

    let keyed = world.layer().key(attribute("absent"));
    push(&app(answering(200), keyed.clone()), "8").await;
    let unkeyed = seen.next(Outcome::Unkeyed, "ERROR", 422);
    is_of(&unkeyed, "8");
    assert_eq!(unkeyed.get("key"), &Value::Null);
    push(&app(answering(200), keyed.allow_unguarded()), "8").await;
    let unguarded = seen.next(Outcome::Unguarded, "WARNING", 200);
    is_of(&unguarded, "8");
    ran_under_none(&unguarded);

    plain
        .clone()
        .oneshot(Request::post("/").body(Body::from(format!("{{{PAYLOAD}"))).unwrap())
        .await
        .unwrap();
    let refused = seen.next(Outcome::Refused, "ERROR", 400);
    assert_eq!((refused.get("message_id"), refused.get("key")), (&Value::Null, &Value::Null));

    let dead = world.layer().dead_letters(Arc::new(Taken), "projects/p/topics/dead");
    push(&app(post(async || Failure::dead_letter("no such article")), dead), "11").await;
    let dead = seen.next(Outcome::DeadLettered, "ERROR", 200);
    is_of(&dead, "11");
    ran_under(&dead, "fresh", 0);
    assert!(dead.text("error").ends_with("no such article"), "{dead:?}");

    message("12").attribute("task-id", "t").send(&app(answering(200), world.layer().follow(Over))).await;
    let skipped = seen.next(Outcome::Skipped, "INFO", 204);
    ran_under_none(&skipped);
    assert_eq!((skipped.text("message_id"), skipped.text("key")), ("12", "orders:t"));
    assert!(skipped.text("error").ends_with("cancelled"), "{skipped:?}");

    world.chaos.always(On::Complete, Fault::Fail);
    push(&plain, "9").await;
    let uncertain = seen.next(Outcome::Uncertain, "ERROR", 200);
    is_of(&uncertain, "9");
    ran_under(&uncertain, "fresh", 0);
    assert_eq!(uncertain.text("message"), "uncertain orders:9: done, but Unrecorded: it may run again");

    world.chaos.always(On::Any, Fault::Fail);
    push(&plain, "10").await;
    let unavailable = seen.next(Outcome::Unavailable, "ERROR", 503);
    is_of(&unavailable, "10");
    ran_under_none(&unavailable);
    assert_eq!(unavailable.text("key"), "orders:10");

    // Told by the layer that checks tokens, which comes before this one.
    let all = Outcome::ALL.iter().copied().filter(|outcome| *outcome != Outcome::Unauthorized);
    assert_eq!(seen.outcomes, all.map(Outcome::name).collect());
}

/// What an event has of the run that did the work before.
fn completed_by(entry: &Entry, id: &str) {
    assert_eq!((entry.text("completed_by"), entry.text("completed_by_subscription")), (id, SUBSCRIPTION));
    let at = entry.text("completed_at");
    assert!(chrono::DateTime::parse_from_rfc3339(at).is_ok() && at.len() == 27, "{entry:?}");
}

/// Under `at_most_once` the mark stands for its ttl.
fn ran_under_for(entry: &Entry, history: &str) {
    assert_eq!(entry.text("history"), history, "{entry:?}");
    assert!(entry.get("lease_left_seconds").as_f64().is_some_and(|left| left > 86_400.0), "{entry:?}");
}

async fn panics() {
    panic!("no supplier")
}

/// Held elsewhere, and contended for inside of a handler: both with the attempt, which may be the last.
async fn in_progress(seen: &mut Seen, world: &World) {
    let inner = app(answering(200), world.layer());
    let inside = inner.clone();
    let outer = app(
        post(async move || {
            // Of a task of its own, since in this one it would be the holder that takes its own key.
            tokio::spawn(async move { push(&inside, "5").await }).await.unwrap();
        }),
        world.layer(),
    );
    push(&outer, "5").await;
    let entries = seen.lines.entries();
    let events: Vec<_> = entries.iter().map(|entry| (entry.text("event"), entry.text("severity"))).collect();
    assert_eq!(events, [("in-progress", "WARNING"), ("ran", "INFO")]);
    is_of(&entries[0], "5");
    ran_under_none(&entries[0]);
    let contending = async || -> Result<(), Failure> {
        Err(RunError::Skipped(Skip::InProgress { left: Duration::from_secs(1) }).into())
    };
    push(&app(post(contending), world.layer()), "5b").await;
    let entry = seen.next(Outcome::InProgress, "WARNING", 503);
    is_of(&entry, "5b");
    ran_under(&entry, "fresh", 0);
}

#[test]
fn what_a_shutdown_stands_in_the_way_of_is_no_error() {
    alone("outcomes::what_a_shutdown_stands_in_the_way_of_is_no_error", &[], async {
        let (lines, _guard) = Lines::capture();
        let _ = pushonce::drain(Duration::from_secs(1)).await;
        push(&app(answering(200), World::new().layer()), "1").await;
        let entry = lines.outcome();
        assert_eq!((entry.text("event"), entry.text("severity")), ("unavailable", "INFO"), "{entry:?}");
        is_of(&entry, "1");
    });
}

#[tokio::test]
async fn ages_are_by_the_layers_clock_and_what_is_left_of_the_lease_is_what_was_left_at_the_end() {
    let (lines, _guard) = Lines::capture();
    let clock = Arc::new(ManualClock::new());
    clock.advance(Duration::from_millis(90_500));
    let working = clock.clone();
    let handler = post(async move || working.advance(Duration::from_secs(100)));
    let app = app(handler, World::new().layer().clock(clock.clone()));
    let published = message("1").publish_time("2026-01-01T00:00:00Z");
    published.send(&app).await;
    let entry = lines.outcome();
    assert_eq!(entry.get("message_age_seconds"), &json!(190.5));
    assert_eq!(entry.get("lease_left_seconds"), &json!(800.0));
    // A machine that is behind Pub/Sub's clock, and a time that cannot be read.
    message("2").publish_time("2026-06-01T00:00:00Z").send(&app).await;
    assert_eq!(lines.outcome().get("message_age_seconds"), &json!(0.0));
    message("3").publish_time("yesterday").send(&app).await;
    assert_eq!(lines.outcome().get("message_age_seconds"), &Value::Null);
}

#[tokio::test]
async fn a_hook_is_told_of_the_lease_the_age_and_the_run_before() {
    let world = World::new();
    let layer = world
        .layer()
        .on(Outcome::Ran, |report| {
            let lease = report.lease.ok_or("no lease")?;
            assert!(lease.fence() > 0 && report.message_age().is_some() && report.receipt().is_none());
            Err("seen ran".into())
        })
        .on_duplicate(|report| {
            assert_eq!(report.receipt().and_then(|receipt| receipt.message.as_deref()), Some("1"));
            Err("seen duplicate".into())
        });
    let (lines, _guard) = Lines::capture();
    let app: Router = app(answering(200), layer);
    push(&app, "1").await;
    push(&app, "1").await;
    let told: Vec<_> = lines.entries().iter().map(|entry| entry.text("failed").to_owned()).collect();
    assert_eq!(told, ["", "seen ran", "", "seen duplicate"]);
}

#[tokio::test(start_paused = true)]
async fn the_verbs_tell_of_what_must_not_pass_in_silence() {
    let (lines, _guard) = Lines::capture();
    let world = World::new();
    world.chaos.always(On::Complete, Fault::Fail);
    pushonce::lock(("orders", "1"), &world.store).run(async { Ok(()) }).await.unwrap();
    let entry = lines.outcome();
    assert_eq!((entry.text("event"), entry.text("severity")), ("uncertain", "ERROR"));
    assert_eq!(entry.text("key"), "orders:1");
    let gone = async { Err::<(), _>("gone".into()) };
    pushonce::at_most_once(("mail", "2"), &world.store).run(gone).await.unwrap_err();
    let entry = lines.outcome();
    assert_eq!((entry.text("event"), entry.text("key")), ("lost", "mail:2"));
    assert_eq!(entry.text("error"), "the work failed: gone");
    mutex(("mail", "3"), &world.store).run(async { Ok(()) }).await.unwrap();
    assert!(lines.entries().is_empty());
}
