//! What belongs to the whole process: when the recorder is installed, how many consumers there are, trips, and shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use axum::routing::post;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use pushonce::measure::{CONSUMERS, OPERATIONS, OTHERS, RESULTS};
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::store::{Memory, Metered, Trips};
use pushonce::telemetry::{NoPrometheus, Prometheus, prometheus};
use pushonce::testing::TokioClock;
use pushonce::{Clock, IdempotentLayer, IntoKey as _, Store, drain, lock};

use crate::process;
use crate::samples::{Sample, sample_of, samples};
use crate::world::{World, app, push};

fn alone(name: &str, body: impl Future<Output = ()>) {
    process::alone(&format!("alone::{name}"), &[], body);
}

fn counted(recorder: &Prometheus, consumer: &str, outcome: &str) -> f64 {
    let labels = [("consumer", consumer), ("outcome", outcome)];
    sample_of(&recorder.render(), "pushonce_deliveries_total", &labels)
}

fn in_flight(recorder: &Prometheus, consumer: &str) -> f64 {
    sample_of(&recorder.render(), "pushonce_in_flight", &[("consumer", consumer)])
}

/// A clock that counts how often it is read.
#[derive(Debug)]
struct Counting {
    inner: TokioClock,
    wall: AtomicU64,
    monotonic: AtomicU64,
}

impl Clock for Counting {
    fn wall(&self) -> SystemTime {
        self.wall.fetch_add(1, Ordering::Relaxed);
        self.inner.wall()
    }

    fn monotonic(&self) -> Duration {
        self.monotonic.fetch_add(1, Ordering::Relaxed);
        self.inner.monotonic()
    }
}

#[test]
fn without_a_recorder_no_clock_is_read_and_one_that_comes_late_is_told_from_then_on() {
    let name = "without_a_recorder_no_clock_is_read_and_one_that_comes_late_is_told_from_then_on";
    alone(name, async {
        let world = World::new();
        let clock = Arc::new(Counting { inner: TokioClock::new(), wall: 0.into(), monotonic: 0.into() });
        let app =
            app(post(async || ()), IdempotentLayer::new("late", world.store.clone()).clock(clock.clone()));
        let reads = || (clock.wall.swap(0, Ordering::Relaxed), clock.monotonic.swap(0, Ordering::Relaxed));
        push(&app, "m-1").await;
        let silent = reads();
        let recorder = prometheus().unwrap();
        push(&app, "m-2").await;
        let told = reads();
        // For the begin and the end of three parts; and what is left of the lease is asked of both clocks.
        assert_eq!((told.0 - silent.0, told.1 - silent.1), (1, 5));
        push(&app, "m-2").await;
        assert_eq!((counted(&recorder, "late", "ran"), counted(&recorder, "late", "duplicate")), (1.0, 1.0));
        let text = recorder.render();
        let times = sample_of(&text, "pushonce_claim_seconds_count", &[("consumer", "late")]);
        assert_eq!((times, in_flight(&recorder, "late")), (2.0, 0.0));
        assert!(text.contains("# HELP pushonce_deliveries_total"), "{text}");
    });
}

#[test]
fn what_is_in_flight_when_the_recorder_comes_is_never_below_zero() {
    alone("what_is_in_flight_when_the_recorder_comes_is_never_below_zero", async {
        let World { store, .. } = World::new();
        let recorder = lock(("early", "k"), &store).run(async { Ok(prometheus().unwrap()) }).await.unwrap();
        assert_eq!((in_flight(&recorder, "early"), counted(&recorder, "early", "ran")), (0.0, 1.0));
    });
}

#[test]
fn a_second_recorder_is_an_error_and_the_first_goes_on() {
    alone("a_second_recorder_is_an_error_and_the_first_goes_on", async {
        let first = prometheus().unwrap();
        let second = prometheus().unwrap_err();
        assert!(matches!(second, NoPrometheus::Taken), "{second:?}");
        assert_eq!(second.to_string(), "a recorder of metrics is installed already");
        let World { store, .. } = World::new();
        lock(("first", "k"), &store).run(async { Ok(()) }).await.unwrap();
        assert_eq!(counted(&first, "first", "ran"), 1.0);
    });
}

#[test]
fn consumers_that_are_too_many_are_counted_together() {
    alone("consumers_that_are_too_many_are_counted_together", async {
        let recorder = prometheus().unwrap();
        let World { store, .. } = World::new();
        let more = 20;
        for n in 0..CONSUMERS + more {
            lock((format!("tenant-{n}"), "k"), &store).run(async { Ok(()) }).await.unwrap();
        }
        let text = recorder.render();
        let ran = |Sample { name, labels, value }: &Sample| {
            let ran = labels.iter().any(|(_, value)| value == "ran") && name == "pushonce_deliveries_total";
            ran.then_some(*value)
        };
        let values: Vec<_> = samples(&text).iter().filter_map(ran).collect();
        assert_eq!(values.len(), CONSUMERS);
        assert_eq!(values.iter().sum::<f64>() as usize, CONSUMERS + more);
        assert_eq!(counted(&recorder, OTHERS, "ran") as usize, more + 1);
        assert_eq!((counted(&recorder, "tenant-0", "ran"), in_flight(&recorder, OTHERS)), (1.0, 0.0));
    });
}

#[test]
fn trips_are_those_that_the_meter_counts() {
    alone("trips_are_those_that_the_meter_counts", async {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let metered = Arc::new(Metered::new(chaos.clone()));
        let store: Arc<dyn Store> = metered.clone();
        lock("before", &store).run(async { Ok(()) }).await.unwrap();
        let before = metered.totals();
        let recorder = prometheus().unwrap();
        for text in ["a", "a", "b"] {
            let _ = lock(text, &store).run(async { Ok(()) }).await;
        }
        chaos.next(On::Claim, Fault::LoseBefore);
        chaos.next(On::Read, Fault::Fail);
        lock("c", &store).run(async { Ok(()) }).await.unwrap();
        let after = metered.totals();
        let text = recorder.render();
        let counts = |trips: Trips| [trips.made.count, trips.lost.count, trips.failed.count];
        let kinds = [
            (before.reads, after.reads),
            (before.creates, after.creates),
            (before.updates, after.updates),
            (before.commits, after.commits),
        ];
        for (operation, (before, after)) in OPERATIONS.iter().copied().zip(kinds) {
            let counted = RESULTS.iter().map(|result| {
                let labels = [("operation", operation), ("result", *result)];
                sample_of(&text, "pushonce_store_trips_total", &labels) as u64
            });
            let counted: Vec<_> = counted.collect();
            let (before, after) = (counts(before), counts(after));
            assert_eq!(counted, [0, 1, 2].map(|at| after[at] - before[at]), "{operation}");
            let timed = sample_of(&text, "pushonce_store_trip_seconds_count", &[("operation", operation)]);
            assert_eq!(timed as u64, counted.iter().sum::<u64>(), "{operation}");
        }
        assert_eq!(counts(after.creates), [4, 1, 1], "the test makes trips of each kind");
    });
}

#[test]
fn a_shutdown_leaves_nothing_in_flight_and_counts_what_it_cut_off() {
    alone("a_shutdown_leaves_nothing_in_flight_and_counts_what_it_cut_off", async {
        let recorder = prometheus().unwrap();
        let World { store, .. } = World::new();
        let endless = || std::future::pending::<Result<(), _>>();
        let safe = tokio::spawn(lock(("stopped", "safe"), &store).cancel_safe().run(endless()));
        let lapsing = tokio::spawn(lock(("stopped", "lapsing"), &store).run(endless()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(in_flight(&recorder, "stopped"), 2.0);
        let drained = drain(Duration::from_secs(8)).await;
        assert_eq!((drained.cancelled, drained.left), (true, 0));
        assert!(safe.await.unwrap().is_err() && lapsing.await.unwrap().is_err());
        assert!(lock(("stopped", "new"), &store).run(async { Ok(()) }).await.is_err());
        assert_eq!(counted(&recorder, "stopped", "unavailable"), 3.0);
        assert_eq!(in_flight(&recorder, "stopped"), 0.0);
    });
}

/// What is counted under each reason, in the order of the list; `None` where there is no series.
#[cfg(feature = "oidc")]
fn refused(text: &str) -> Vec<Option<f64>> {
    let all = samples(text);
    let ours = |sample: &&Sample| sample.name == "pushonce_unauthorized_total";
    let of = |reason: &str| all.iter().filter(ours).find(|sample| sample.labels[0].1 == reason);
    pushonce::measure::REASONS.iter().map(|reason| of(reason).map(|sample| sample.value)).collect()
}

/// A service that nobody has a token for, behind the one who asks for it.
#[cfg(feature = "oidc")]
fn gated() -> axum::Router {
    let auth = pushonce::oidc::PushAuthLayer::platform(["orders"], ["pusher@p.iam.gserviceaccount.com"]);
    axum::Router::new().route("/", post(async || ()).layer(auth))
}

#[cfg(feature = "oidc")]
#[test]
fn every_reason_of_a_refusal_begins_at_zero_when_its_gate_is_made() {
    alone("every_reason_of_a_refusal_begins_at_zero_when_its_gate_is_made", async {
        let recorder = prometheus().unwrap();
        let gated = gated();
        let text = recorder.render();
        assert!(text.contains("# HELP pushonce_unauthorized_total Pushes whose token was refused"), "{text}");
        assert_eq!(refused(&text), vec![Some(0.0); pushonce::measure::REASONS.len()]);
        push(&gated, "m").await;
        // `missing` is the first of the list.
        assert_eq!(refused(&recorder.render())[..2], [Some(1.0), Some(0.0)]);
        assert!(!recorder.render().contains("outcome=\"unauthorized\""));
    });
}

#[cfg(feature = "oidc")]
#[test]
fn a_recorder_that_comes_after_the_gate_hears_of_each_reason_from_the_next_refusal_on() {
    let name = "a_recorder_that_comes_after_the_gate_hears_of_each_reason_from_the_next_refusal_on";
    alone(name, async {
        let gated = gated();
        push(&gated, "m").await;
        let recorder = prometheus().unwrap();
        push(&gated, "m").await;
        let counted = refused(&recorder.render());
        assert_eq!(
            (counted.len(), counted[0], counted.last()),
            (pushonce::measure::REASONS.len(), Some(1.0), Some(&Some(0.0)))
        );
    });
}

/// A recorder that is broken.
struct Broken;

impl Recorder for Broken {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        REGISTERED.fetch_add(1, Ordering::Relaxed);
        panic!("no counter")
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        panic!("no gauge")
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("no histogram")
    }
}

static REGISTERED: AtomicU64 = AtomicU64::new(0);

// It has no size, as the silent one of the facade, and is found all the same.
#[test]
fn a_recorder_that_panics_hurts_no_delivery() {
    alone("a_recorder_that_panics_hurts_no_delivery", async {
        metrics::set_global_recorder(Broken).map_err(|_| "taken").unwrap();
        std::panic::set_hook(Box::new(|_| {}));
        let metered: Arc<dyn Store> = Arc::new(Metered::new(Memory::new()));
        let app = app(post(async || ()), IdempotentLayer::new("orders", metered.clone()));
        assert_eq!(push(&app, "m").await.told(), (200, "ran"));
        assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
        assert!(metered.read(&("orders", "m").into_key().unwrap()).await.unwrap().is_some());
        assert!(REGISTERED.load(Ordering::Relaxed) > 0, "nobody asked it");
    });
}
