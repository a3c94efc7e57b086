//! The formula of the delivery attempts, proved against the subscription that it is about.
//!
//! A holder claims a key and dies just before the message comes. The message is nacked until the lease has
//! lapsed, then fails as often as real failures are tolerated, then succeeds: with as many attempts as
//! are needed it is never dead-lettered, and with one fewer it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use pushonce::testing::{PushSimulator, SimulationReport};
use pushonce::{Outcome, attribute};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::world::{World, app, order, secs};

/// A case of the table that the rules of sizing are tested with too.
#[derive(Deserialize)]
struct Case {
    name: String,
    sizing: Numbers,
    burned_exact: u32,
    burned: u32,
    needed: u32,
    refused: Vec<String>,
}

#[derive(Deserialize)]
struct Numbers {
    lease_seconds: u64,
    ttl_seconds: u64,
    ack_deadline_seconds: u64,
    min_backoff_seconds: u64,
    max_backoff_seconds: u64,
    retention_seconds: u64,
    #[serde(default = "one")]
    holders_ahead: u64,
    #[serde(default = "half")]
    floor_ratio: f64,
    #[serde(default = "tolerated")]
    real_failures: u32,
}

const fn one() -> u64 {
    1
}

const fn half() -> f64 {
    0.5
}

const fn tolerated() -> u32 {
    1
}

/// The cases whose numbers make sense, but perhaps for the attempts, which these tests choose themselves.
fn cases() -> Vec<Case> {
    let all: Vec<Case> = serde_json::from_str(include_str!("../sizing/cases.json")).unwrap();
    let count = all.len();
    let sane: Vec<_> = all
        .into_iter()
        .filter(|case| case.refused.iter().all(|rule| ["attempts", "retention"].contains(&rule.as_str())))
        .collect();
    assert!(!sane.is_empty(), "none of {count} cases could be run");
    sane
}

/// What the subscription does with one message of a key whose holders die.
struct Run {
    factor: std::ops::RangeInclusive<f64>,
    attempts: u32,
    failures: u32,
    seed: u64,
}

impl Run {
    async fn of(self, numbers: &Numbers) -> SimulationReport {
        let world = World::new();
        let lease = secs(numbers.lease_seconds);
        let layer = || world.layer().key(attribute("po_id")).lease(lease).ttl(secs(numbers.ttl_seconds));
        let (failures, runs) = (self.failures, Arc::new(AtomicU32::new(0)));
        let handler = post(async move || {
            let fails = runs.fetch_add(1, Ordering::SeqCst) < failures;
            if fails { StatusCode::BAD_GATEWAY } else { StatusCode::OK }
        });
        // Their work goes on until this run is over, so that the next one finds no work of theirs.
        let (_running, over) = watch::channel(());
        let holding = post(async move || drop(over.clone().changed().await));
        dying(app(holding, layer()), numbers.holders_ahead, lease).await;
        let retention = secs(numbers.retention_seconds).max(secs(31 * 24 * 60 * 60));
        PushSimulator::new(app(handler, layer()))
            .retry_policy(secs(numbers.min_backoff_seconds), secs(numbers.max_backoff_seconds))
            .ack_deadline(secs(numbers.ack_deadline_seconds))
            .retention(retention)
            .backoff_factor(self.factor)
            .dead_letter_after(self.attempts)
            .seed(self.seed)
            .publish(order("m-1", "po-1"))
            .run()
            .await
    }
}

/// Holders that claim the key one after the other, each at the moment in which the lease before it lapses,
/// and of which nothing is heard again. The first has claimed when this returns.
async fn dying(app: Router, holders: u64, lease: Duration) {
    let start = Instant::now();
    for number in 0..holders {
        let sent = order(&format!("dead-{number}"), "po-1").send(&app);
        let claims = async move {
            tokio::time::sleep_until(start + lease * u32::try_from(number).unwrap()).await;
            sent.await;
        };
        tokio::spawn(claims);
    }
    // Nothing here waits but for the claims after the first.
    tokio::task::yield_now().await;
}

/// How often the layer said that the key is held.
fn held(report: &SimulationReport) -> u32 {
    let held = |outcome| outcome == Some(Outcome::InProgress);
    let answers = report.of("m-1").filter_map(|attempt| attempt.answer.as_ref());
    u32::try_from(answers.filter(|answer| held(answer.outcome) && answer.status == 503).count()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_attempt_more_than_the_exact_bound_is_enough_and_the_bound_itself_is_not() {
    for case in cases() {
        let run = |attempts| Run { factor: 1.0..=1.0, attempts, failures: 0, seed: 0 };
        let report = run(case.burned_exact + 1).of(&case.sizing).await;
        assert_eq!(report.acked, ["m-1"], "{}: {report}", case.name);
        assert_eq!(held(&report), case.burned_exact, "{}: {report}", case.name);
        if case.burned_exact > 0 {
            let report = run(case.burned_exact).of(&case.sizing).await;
            assert_eq!(report.dead_letters.len(), 1, "{}: {report}", case.name);
            assert_eq!(report.dead_letters[0].attempts, case.burned_exact, "{}: {report}", case.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_the_attempts_needed_nothing_healthy_is_dead_lettered_also_with_the_shortest_delays() {
    for case in cases() {
        let numbers = &case.sizing;
        let (shortest, failures) = (numbers.floor_ratio, numbers.real_failures);
        let run = |attempts| Run { factor: shortest..=shortest, attempts, failures, seed: 0 };
        let report = run(case.needed).of(numbers).await;
        assert_eq!(report.acked, ["m-1"], "{}: {report}", case.name);
        assert_eq!(held(&report), case.burned, "{}: {report}", case.name);
        let failed =
            report.of("m-1").filter(|attempt| attempt.answer.as_ref().is_some_and(|a| a.status == 502));
        assert_eq!(failed.count(), failures as usize, "{}: {report}", case.name);
        if case.needed > 1 {
            let report = run(case.needed - 1).of(numbers).await;
            assert_eq!(report.dead_letters.len(), 1, "{}: {report}", case.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_the_attempts_needed_nothing_healthy_is_dead_lettered_whatever_the_delays() {
    for case in cases() {
        let numbers = &case.sizing;
        for seed in 0..10 {
            let factor = numbers.floor_ratio..=2.0;
            let run = Run { factor, attempts: case.needed, failures: numbers.real_failures, seed };
            let report = run.of(numbers).await;
            assert_eq!(report.acked, ["m-1"], "{}, seed {seed}: {report}", case.name);
        }
    }
}

/// Backoffs of 10 to 600 s send at 0, 10, 30, 70, 150, 310 and 630 s.
#[tokio::test(start_paused = true)]
async fn a_delivery_at_the_very_moment_of_the_lapse_takes_the_key_over() {
    for (lease, burned) in [(629, 6), (630, 6), (631, 7), (10, 1), (11, 2), (9, 1), (1230, 7), (1231, 8)] {
        let numbers = Numbers {
            lease_seconds: lease,
            ttl_seconds: 604_800,
            ack_deadline_seconds: 600,
            min_backoff_seconds: 10,
            max_backoff_seconds: 600,
            retention_seconds: 604_800,
            holders_ahead: 1,
            floor_ratio: 1.0,
            real_failures: 0,
        };
        let report = Run { factor: 1.0..=1.0, attempts: 100, failures: 0, seed: 0 }.of(&numbers).await;
        assert_eq!((held(&report), report.acked.len()), (burned, 1), "lease {lease} s: {report}");
    }
}
