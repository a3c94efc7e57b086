//! What the logs cost a message: without a log, with one that keeps warnings, and with one line of JSON for each.
//!
//! Each round is a process of its own, since a process has one log. In process, on the memory store, so
//! that the message itself is as cheap as it can be and the logs weigh the most.

use std::io;
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use pushonce::store::Memory;
use pushonce::telemetry::CloudLogging;
use pushonce::testing::Push;
use pushonce::{IdempotentLayer, Store};
use tower::ServiceExt as _;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

const ROUNDS: usize = 5;
const MESSAGES: usize = 50_000;
const MODES: [(&str, Option<Level>); 3] =
    [("without a log", None), ("warnings only", Some(Level::WARN)), ("a line each", Some(Level::INFO))];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--mode") {
        Some(at) => one(arguments[at + 1].parse().unwrap()),
        None => compare(),
    }
}

/// One round, whose time for a message it prints, in nanoseconds of CPU.
fn one(mode: usize) {
    if let Some(level) = MODES[mode].1 {
        let filter = Targets::new().with_default(level);
        let layer = CloudLogging::new().project("bench").writer(io::sink);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(filter).with(layer))
            .unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let each = runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let app = Router::new().route("/", post(async || {}).layer(IdempotentLayer::new("bench", store)));
        pushed(&app, MESSAGES / 10, "warm").await;
        pushed(&app, MESSAGES, "m").await
    });
    println!("{each}");
}

/// What this thread has had of a CPU, in nanoseconds: less moved by what else runs on the machine than time is.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

async fn pushed(app: &Router, count: usize, name: &str) -> u64 {
    let request = |at: usize| {
        Push::bytes("z".repeat(512))
            .id(format!("{name}-{at}"))
            .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
            .request::<Body>()
    };
    let requests: Vec<_> = (0..count).map(request).collect();
    let began = cpu();
    for request in requests {
        assert_eq!(app.clone().oneshot(request).await.unwrap().status(), 200);
    }
    (cpu() - began) / count as u64
}

fn compare() {
    let mut times: [Vec<f64>; MODES.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (mode, times) in times.iter_mut().enumerate() {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let output = command.args(["--mode", &mode.to_string()]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            times.push(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap());
        }
    }
    let medians = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    for ((name, _), median) in MODES.iter().zip(medians) {
        println!(
            "{name}: {:6.2} us of CPU a message, {:.2} times one without a log",
            median / 1000.0,
            median / medians[0]
        );
    }
}
