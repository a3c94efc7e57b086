//! What a claim and its completion cost on every store, as ratios that were measured in one run:
//! against the server's own no-op on the same kind of connection, against a bare loop of the same two
//! writes on the same driver and pool, and among a million keys against among a thousand.
//!
//! `make bench`, or `functional/with-servers cargo bench --all-features --bench stores -- [STORE..]`. What is
//! compared takes turns, so that others on the machine slow both; `make bench` keeps the servers' data in
//! memory, since a disk would be all that is measured. Each target is said to be met or missed; a busy machine
//! can miss some, so a reader judges.

mod among;
mod bare;
mod subject;

#[path = "../../tests/support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this takes what it needs")]
mod emulator;
#[path = "../../tests/support/s3.rs"]
#[expect(dead_code, reason = "the tools are whole; this takes what it needs")]
mod s3;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use pushonce::store::Memory;
use pushonce::{Store, lock};

use crate::subject::Subject;

/// Of what is timed one by one, each.
const SAMPLE: usize = 2_000;
const LONGEST: Duration = Duration::from_secs(4);
/// Many short turns, so that whatever else happens on the machine meets both.
const ROUNDS: usize = 11;
const WINDOW: Duration = Duration::from_millis(200);
const IN_FLIGHT: [usize; 3] = [1, 16, 64];

/// At most so many no-ops for a first message on Redis, where nothing is slower than the way to it.
const NO_OPS: f64 = 3.0;
/// At least so much of the bare loop's throughput on every store.
const OF_BARE: f64 = 0.8;
/// At most so much dearer among a million keys than among a thousand.
const GROWTH: f64 = 2.0;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|store| store == name);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let missed = runtime.block_on(async {
        let mut verdict = Verdict::default();
        own_cost().await;
        for name in subject::NAMES.into_iter().filter(|name| is_wanted(name)) {
            let subject = subject::open(name).await;
            latency(&subject, &mut verdict).await;
            throughput(&subject, &mut verdict).await;
            if let Some((few, many)) = among::few_and_many(name).await {
                growth(name, &few, &many, &mut verdict).await;
            }
        }
        verdict.missed
    });
    drop(runtime);
    std::fs::remove_dir_all(subject::folder()).unwrap();
    if !missed.is_empty() {
        println!("missed: {missed:#?}");
    }
}

#[derive(Default)]
struct Verdict {
    missed: Vec<String>,
}

impl Verdict {
    fn say(&mut self, line: String, is_met: Option<bool>) {
        let word = is_met.map_or("", |met| if met { "  met" } else { "  MISSED" });
        println!("{line}{word}");
        if is_met == Some(false) {
            self.missed.push(line);
        }
    }
}

/// A key that was never used.
fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn message(store: &Arc<dyn Store>) -> BoxFuture<'static, ()> {
    let run = lock(("bench", fresh().to_string()), store).run(async { Ok(()) });
    Box::pin(async move { run.await.unwrap() })
}

/// What the library costs by itself, which is in every figure of a store: the same message on `Memory`.
async fn own_cost() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let (nothing, ours) = paired(|| Box::pin(std::future::ready(())), || message(&store)).await;
    println!("{:<20} claim and complete {:>9.1?}", "memory", ours.saturating_sub(nothing));
}

async fn latency(subject: &Subject, verdict: &mut Verdict) {
    let (no_op, ours) = paired(|| subject.bare.no_op(), || message(&subject.store)).await;
    let ratio = ours.as_secs_f64() / no_op.as_secs_f64();
    let name = subject.name;
    let line = format!(
        "{name:<20} claim and complete {ours:>9.1?}, {} {no_op:>9.1?}: {ratio:.2} times",
        subject.bare.names_no_op()
    );
    let is_met = (name == "redis").then_some(ratio <= NO_OPS);
    verdict.say(if is_met.is_some() { format!("{line} (at most {NO_OPS})") } else { line }, is_met);
}

/// The medians of two things that are timed in turns.
async fn paired(
    mut one: impl FnMut() -> BoxFuture<'static, ()>,
    mut other: impl FnMut() -> BoxFuture<'static, ()>,
) -> (Duration, Duration) {
    let began = Instant::now();
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for sample in 0..SAMPLE {
        let (took_one, took_other) = (timed(one()).await, timed(other()).await);
        // The first ones meet fresh connections.
        if sample >= SAMPLE / 20 {
            ones.push(took_one);
            others.push(took_other);
        }
        if began.elapsed() > LONGEST && ones.len() > SAMPLE / 20 {
            break;
        }
    }
    (median(&mut ones), median(&mut others))
}

async fn timed(work: BoxFuture<'static, ()>) -> Duration {
    let began = Instant::now();
    work.await;
    began.elapsed()
}

fn median<T: PartialOrd + Copy>(sample: &mut [T]) -> T {
    sample.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    sample[sample.len() / 2]
}

async fn throughput(subject: &Subject, verdict: &mut Verdict) {
    for in_flight in IN_FLIGHT {
        let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let store = subject.store.clone();
            ours.push(rate(in_flight, move || message(&store)).await);
            let writes = subject.bare.clone();
            bare.push(rate(in_flight, move || writes.two_writes(fresh())).await);
            ratios.push(ours[ours.len() - 1] / bare[bare.len() - 1]);
        }
        let ratio = median(&mut ratios);
        let line = format!(
            "{:<20} {in_flight:>2} in flight: {:>8.0} messages/s, bare {:>8.0}: {ratio:.2} of it (at least {OF_BARE})",
            subject.name,
            median(&mut ours),
            median(&mut bare),
        );
        verdict.say(line, Some(ratio >= OF_BARE));
    }
}

/// How often a second, by so many at once.
async fn rate(in_flight: usize, work: impl Fn() -> BoxFuture<'static, ()> + Clone + Send + 'static) -> f64 {
    let began = Instant::now();
    let workers = (0..in_flight).map(|_| {
        let work = work.clone();
        tokio::spawn(async move {
            let mut done = 0_u32;
            while began.elapsed() < WINDOW {
                work().await;
                done += 1;
            }
            done
        })
    });
    let done: u32 = join_all(workers).await.into_iter().map(Result::unwrap).sum();
    f64::from(done) / began.elapsed().as_secs_f64()
}

async fn growth(name: &str, few: &Arc<dyn Store>, many: &Arc<dyn Store>, verdict: &mut Verdict) {
    let (among_few, among_many) = paired(|| message(few), || message(many)).await;
    let ratio = among_many.as_secs_f64() / among_few.as_secs_f64();
    let line = format!(
        "{name:<20} {among_few:>9.1?} among 1,000 keys, {among_many:>9.1?} among 1,000,000: {ratio:.2} times (at most {GROWTH})"
    );
    verdict.say(line, Some(ratio <= GROWTH));
}
