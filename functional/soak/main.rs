//! A steady load for half an hour, on SQLite and on Redis at once: memory and open files of the service stay flat.
//!
//! `make soak`. `PUSHONCE_SOAK_SECONDS` says how long (`make test` has a few seconds, which show that all of it works,
//! and no more), `PUSHONCE_SOAK_RATE` how many pushes a second each service gets. The samples are in `target/soak`.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../../tests/support/example.rs"]
mod example;
mod judge;
mod load;
#[path = "../../tests/support/report.rs"]
mod report;
#[path = "../../tests/support/server.rs"]
#[expect(dead_code, reason = "other tests stop and restart it")]
mod server;
mod service;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use judge::judge;
use load::{Load, Sent};
use server::Server;
use service::Service;
use tokio::time::{Instant, MissedTickBehavior, interval};

const SMOKE: u64 = 5;
const RATE: u64 = 100;
/// How many samples make a graph; seldom enough to cost nothing.
const SAMPLES: u64 = 360;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_open_files_stay_flat_under_a_steady_load() {
    let length = Duration::from_secs(number("PUSHONCE_SOAK_SECONDS").unwrap_or(SMOKE));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/soak");
    fs::create_dir_all(&folder).unwrap();
    let redis = Server::start("redis").await;
    let file = Database::new();
    let (sqlite, redis_url) = (format!("sqlite://{}", file.0.display()), redis.url());
    let (one, other) =
        tokio::join!(soak("sqlite", &sqlite, length, &folder), soak("redis", &redis_url, length, &folder));
    let failed = [one, other].concat();
    assert!(failed.is_empty(), "{failed:#?}");
    report::test("sqlite", "soak");
    report::test("redis", "soak");
}

/// One service on one store, under its load; what is wrong with it in the end.
async fn soak(name: &str, store: &str, length: Duration, folder: &Path) -> Vec<String> {
    let service = Service::start(name, store, folder).await;
    let load = Load::begin(service.port, number("PUSHONCE_SOAK_RATE").unwrap_or(RATE), length);
    let began = Instant::now();
    let mut ticks = interval((length / SAMPLES as u32).max(Duration::from_millis(500)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // As it goes: a run that fails is the one that is looked at.
    let mut csv = File::create(folder.join(format!("{name}.csv"))).unwrap();
    csv.write_all(judge::HEAD.as_bytes()).unwrap();
    let mut samples = Vec::new();
    let mut sent = std::pin::pin!(load.ended());
    let sent = loop {
        tokio::select! {
            sent = &mut sent => break sent,
            _ = ticks.tick() => {
                let sample = service.sample(began.elapsed());
                write!(csv, "{sample}").unwrap();
                samples.push(sample);
            }
        }
    };
    println!("{name}: {sent}");
    let judged = judge(&samples, length);
    println!("{name}: {judged}");
    let mut failed = judged.wrong;
    failed.extend(wrong(&sent, load::done(store).await));
    failed.extend(service.end().await);
    failed.into_iter().map(|what| format!("{name}: {what}")).collect()
}

/// Every message is answered, each run once, and recorded as done.
fn wrong(sent: &Sent, done: usize) -> Vec<String> {
    let mut wrong = sent.refused.clone();
    if done != sent.messages {
        wrong.push(format!("{done} keys are done, of {} messages", sent.messages));
    }
    if sent.messages == 0 || sent.duplicates == 0 {
        wrong.push("nothing was sent".to_owned());
    }
    wrong
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

/// A file of SQLite in a folder of its own, which goes with it.
struct Database(PathBuf);

impl Database {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("pushonce-soak-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self(folder.join("keys.db"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.0.parent().map(fs::remove_dir_all);
    }
}
