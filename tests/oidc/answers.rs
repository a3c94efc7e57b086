//! What an operator sees: one line in a while, what it says, and a counter that misses nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::json;

use crate::world::{AUDIENCE, CALLER, Mode, World, seconds};

#[tokio::test]
async fn a_flood_makes_one_line_in_ten_seconds_for_each_reason() {
    let world = World::new(Mode::Verify).await;
    let wrong = |name: &str| world.keys.token(&world.claims().set(name, "x"));
    for _ in 0..5 {
        world.push(&wrong("aud")).await;
        world.push(&wrong("email")).await;
        world.clock.advance(seconds(1));
    }
    let told = |world: &World| -> Vec<(String, String)> {
        let lines = world.refusals().into_iter();
        lines.map(|line| (line.field("reason").to_owned(), line.field("unlogged").to_owned())).collect()
    };
    let pair = |reason: &str, unlogged: &str| (reason.to_owned(), unlogged.to_owned());
    assert_eq!(told(&world), [pair("audience", "0"), pair("caller", "0")]);
    world.clock.advance(seconds(5));
    world.push(&wrong("aud")).await;
    assert_eq!(told(&world), [pair("audience", "0"), pair("caller", "0"), pair("audience", "4")]);
}

#[tokio::test]
async fn the_line_has_what_was_expected_and_what_came() {
    let world = World::new(Mode::Verify).await;
    world.push(&world.keys.token(&world.claims().set("aud", json!(["https://a.example.com", "b"])))).await;
    let line = world.log.outcome();
    assert_eq!(line.field("expected_audience"), format!("{AUDIENCE}, orders"));
    assert_eq!(line.field("audience"), "https://a.example.com, b");
    assert!(line.field("expected_email").contains(CALLER));
    assert_eq!(
        (line.field("email"), line.field("status"), line.field("reason")),
        (CALLER, "401", "audience")
    );
    assert!(line.field("error").contains("made for another audience"), "{line:?}");
}

#[tokio::test]
async fn a_received_text_is_bounded_and_pretends_to_be_no_other_line() {
    let world = World::new(Mode::Verify).await;
    let long = "x".repeat(2000);
    let forged = format!("a\"\r\n{{\"severity\":\"INFO\"}}\u{202e}\x1b[2J{long}");
    world
        .push(&world.keys.token(&world.claims().set("aud", forged.as_str()).set("email", forged.as_str())))
        .await;
    let lines = world.refusals();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].field("audience").starts_with(r#"a\"\r\n{\"severity\""#), "{lines:?}");
    for line in &lines {
        for name in ["audience", "email", "error"] {
            let text = line.field(name);
            assert!(
                text.len() < 900 && text.is_ascii() && !text.contains(char::is_control),
                "{name}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn of_a_token_that_cannot_be_read_nothing_is_shown() {
    let secret = "s3cret";
    for token in [
        |world: &World| world.keys.token(&world.claims().set("exp", "s3cret")),
        |world: &World| world.keys.sign(&json!({ "alg": "s3cret" }), &json!({})),
        |_: &World| "s3cret".to_owned(),
        |_: &World| "s3cret.s3cret.s3cret".to_owned(),
        |_: &World| "!s3cret!.!s3cret!.!".to_owned(),
    ] {
        let world = World::new(Mode::Verify).await;
        world.push(&token(&world)).await;
        let line = world.log.outcome();
        assert_eq!(line.field("reason"), "malformed");
        assert!(!format!("{line:?}").contains(secret), "{line:?}");
    }
}

#[tokio::test]
async fn every_refusal_is_counted_by_its_reason() {
    let counts = Counts::default();
    // Of this thread alone, which is enough for a process that has no other.
    let _recorder = metrics::set_default_local_recorder(&counts);
    let world = World::new(Mode::Verify).await;
    for _ in 0..3 {
        world.push(&world.keys.token(&world.claims().set("email", "x@example.com"))).await;
    }
    world.push(&world.keys.stripped(&world.claims())).await;
    world.send(http::HeaderMap::new()).await;
    world.push(&world.token()).await;
    let counted = counts.0.lock().unwrap().clone();
    let expected = [("caller", 3), ("missing", 1), ("signature-removed", 1)];
    let expected =
        expected.map(|(reason, count)| (format!("pushonce_unauthorized_total reason={reason}"), count));
    let of_ours: BTreeMap<_, _> =
        counted.into_iter().filter(|(name, _)| name.contains("unauthorized")).collect();
    assert_eq!(of_ours, BTreeMap::from(expected));
}

/// Counters by name and labels.
#[derive(Default, Clone)]
struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

struct One(Counts, String);

impl CounterFn for One {
    fn increment(&self, by: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += by;
    }

    fn absolute(&self, _: u64) {}
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        Counter::from_arc(Arc::new(One(self.clone(), name)))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
