//! What measuring costs: deliveries through the layer on `Memory`, with no recorder, with one that drops
//! everything, and with the one for Prometheus. Three processes that take turns; ratios of the first.
//!
//! Judged by a reader: the machine is shared.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::Request;
use pushonce::store::{Memory, Metered};
use pushonce::{IdempotentLayer, Store, lock};
use tower::ServiceExt as _;

const KINDS: [&str; 3] = ["none", "noop", "prometheus"];
const ROUNDS: usize = 9;
const DELIVERIES: usize = 150_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--kind") {
        Some(at) => measure(&arguments[at + 1]),
        None => compare(),
    }
}

fn compare() {
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (kind, rates) in KINDS.iter().zip(&mut rates) {
            let output =
                Command::new(std::env::current_exe().unwrap()).args(["--kind", kind]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().unwrap());
            rates.push([numbers.next().unwrap(), numbers.next().unwrap()]);
        }
    }
    for (at, what) in ["deliveries through the layer", "runs of `lock`"].iter().enumerate() {
        let median = |kind: usize| {
            let mut all: Vec<f64> = rates[kind].iter().map(|rates| rates[at]).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let none = median(0);
        println!(
            "{what}, each with a store in `Metered`: {none:.0}/s of CPU time with no recorder; of that {:.2} with one that drops everything, {:.2} with Prometheus (medians of {ROUNDS} rounds)",
            median(1) / none,
            median(2) / none
        );
    }
}

/// Prints deliveries and runs of `lock` per second of CPU time.
fn measure(kind: &str) {
    match kind {
        "noop" => metrics::set_global_recorder(metrics::NoopRecorder).unwrap(),
        #[cfg(feature = "prometheus")]
        "prometheus" => drop(pushonce::telemetry::prometheus().unwrap()),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(Metered::new(Memory::new()));
        let layer = IdempotentLayer::new("bench", store.clone());
        let app: Router = Router::new().route("/", post(async || ()).layer(layer));
        let deliver = async |app: &Router, from: usize, count: usize| {
            for id in from..from + count {
                let body = format!(r#"{{"message":{{"messageId":"{id}"}},"subscription":"s"}}"#);
                let request = Request::post("/").body(Body::from(body)).unwrap();
                let answer = app.clone().oneshot(request).await.unwrap();
                assert_eq!(answer.status(), 200);
            }
        };
        deliver(&app, 0, DELIVERIES / 10).await;
        let (began, cpu) = (Instant::now(), cpu());
        deliver(&app, DELIVERIES, DELIVERIES).await;
        let delivered = since(began, cpu);
        let (began, cpu) = (Instant::now(), self::cpu());
        for id in 0..DELIVERIES {
            lock(("bench-verb", id.to_string()), &store).run(async { Ok(()) }).await.unwrap();
        }
        let locked = since(began, cpu);
        println!(
            "{} {}",
            DELIVERIES as f64 / delivered.as_secs_f64(),
            DELIVERIES as f64 / locked.as_secs_f64()
        );
    });
}

/// CPU time of all threads of this process so far; `None` where the system does not tell.
fn cpu() -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += Duration::from_nanos(stat.split_whitespace().next()?.parse().ok()?);
    }
    Some(sum)
}

/// CPU time since then, or wall time where there is none.
fn since(began: Instant, before: Option<Duration>) -> Duration {
    before.zip(cpu()).map_or_else(|| began.elapsed(), |(before, now)| now.saturating_sub(before))
}
