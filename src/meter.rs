//! The handles of the metrics: made once for each consumer and recorder, and nothing where nobody listens.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Unit, with_recorder};

use crate::key::Consumer;
use crate::measure::{self, CONSUMERS, Kind, Metric, OPERATIONS, OUTCOMES, RESULTS};
use crate::time::Clock;

/// The handles that one recorder gave.
#[derive(Default)]
struct Handles {
    listener: usize,
    consumers: HashMap<Consumer, Arc<Meters>>,
    trips: Option<Arc<TripMeters>>,
    /// In the order of [`measure::REASONS`].
    #[cfg(feature = "oidc")]
    refusals: Option<Arc<[Counter]>>,
}

static HANDLES: LazyLock<RwLock<Handles>> = LazyLock::new(RwLock::default);
static OTHERS: LazyLock<Consumer> = LazyLock::new(|| Consumer::reserved("others"));

/// The metrics of one consumer.
struct Meters {
    /// In the order of [`OUTCOMES`].
    outcomes: Vec<Counter>,
    in_flight: Gauge,
    claim: Histogram,
    work: Histogram,
    complete: Histogram,
    lease_left: Histogram,
}

/// The metrics of all stores.
struct TripMeters {
    counts: Vec<Vec<Counter>>,
    times: Vec<Histogram>,
}

/// Begins the metrics of a consumer at zero, so that a rate sees the first of everything.
pub(crate) fn announce(consumer: &Consumer) {
    of(consumer);
}

/// Counts a delivery or a run that ended so, by the name of its outcome.
pub(crate) fn count(consumer: &Consumer, outcome: &str) {
    if let Some(meters) = of(consumer)
        && let Some(at) = OUTCOMES.iter().position(|name| *name == outcome)
    {
        unhurt(|| meters.outcomes[at].increment(1));
    }
}

/// Begins the counts of refused tokens at zero, as [`announce`] does for a consumer.
#[cfg(feature = "oidc")]
pub(crate) fn announce_refusals() {
    refusals();
}

/// Counts a push whose token was refused, by the name of the reason.
#[cfg(feature = "oidc")]
pub(crate) fn unauthorized(reason: &str) {
    if let Some(refusals) = refusals()
        && let Some(at) = measure::REASONS.iter().position(|name| *name == reason)
    {
        unhurt(|| refusals[at].increment(1));
    }
}

/// The counts of refused tokens, if anybody listens.
#[cfg(feature = "oidc")]
fn refusals() -> Option<Arc<[Counter]>> {
    let listener = listener()?;
    let counts = |name: &&'static str| counter(measure::UNAUTHORIZED, vec![Label::new("reason", *name)]);
    let made = |handles: &mut Handles| {
        handles.refusals.insert(measure::REASONS.iter().map(counts).collect()).clone()
    };
    unhurt(|| handle(listener, |handles| handles.refusals.clone(), made))
}

/// Counts a trip to a store, by the places of its operation and result in their lists.
pub(crate) fn trip(operation: usize, result: usize, time: Duration) {
    let Some(listener) = listener() else { return };
    unhurt(|| {
        let made = |handles: &mut Handles| {
            let meters = Arc::new(TripMeters::made());
            handles.trips = Some(meters.clone());
            meters
        };
        let meters = handle(listener, |handles| handles.trips.clone(), made);
        meters.counts[operation][result].increment(1);
        meters.times[operation].record(time);
    });
}

/// One run under a key, in flight for as long as this lives, and nothing where nobody listens.
pub(crate) struct Run(Option<Running>);

struct Running {
    meters: Arc<Meters>,
    clock: Arc<dyn Clock>,
    /// When its present part began.
    began: Duration,
}

impl Run {
    /// Its claim begins.
    pub(crate) fn begin(consumer: &Consumer, clock: &Arc<dyn Clock>) -> Self {
        Self(of(consumer).map(|meters| {
            unhurt(|| meters.in_flight.increment(1.0));
            Running { meters, clock: clock.clone(), began: clock.monotonic() }
        }))
    }

    /// Its claim has ended, whatever came of it, and the work begins, if it does.
    pub(crate) fn claimed(&mut self) {
        self.part(|meters| &meters.claim);
    }

    /// Its work has ended, with what is left of its lease, if it had one.
    pub(crate) fn worked(&mut self, left: impl FnOnce() -> Option<Duration>) {
        self.part(|meters| &meters.work);
        if let Some(Running { meters, .. }) = &self.0
            && let Some(left) = left()
        {
            unhurt(|| meters.lease_left.record(left));
        }
    }

    /// Its end is stored, or the answer waits for that no longer.
    pub(crate) fn settled(&mut self) {
        self.part(|meters| &meters.complete);
    }

    fn part(&mut self, of: impl FnOnce(&Meters) -> &Histogram) {
        if let Some(Running { meters, clock, began }) = &mut self.0 {
            let now = clock.monotonic();
            unhurt(|| of(meters).record(now.saturating_sub(*began)));
            *began = now;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        unhurt(|| self.meters.in_flight.decrement(1.0));
    }
}

/// The metrics of a consumer, if anybody listens.
fn of(consumer: &Consumer) -> Option<Arc<Meters>> {
    let listener = listener()?;
    let found = |handles: &Handles| {
        let full = handles.consumers.len() >= CONSUMERS;
        let known = handles.consumers.get(consumer);
        known.or_else(|| handles.consumers.get(&OTHERS).filter(|_| full)).cloned()
    };
    let made = |handles: &mut Handles| {
        // The last place is for all that come later.
        let last = handles.consumers.len() + 1 >= CONSUMERS;
        let consumer = if last { &*OTHERS } else { consumer };
        let meters = Arc::new(Meters::made(consumer));
        handles.consumers.insert(consumer.clone(), meters.clone());
        meters
    };
    unhurt(|| handle(listener, found, made))
}

/// The recorder, by its address; `None` where there is none. One of this thread alone cannot be told from
/// that of the process, which is why only the latter is supported.
///
/// The facade does not tell. Where no recorder is set it calls one of its own, which does nothing: a
/// value without a size, at the address of a `static`. A recorder without a size that a program sets is
/// boxed, and so stands nowhere: its address is its alignment. Were that to change in the facade, runs
/// would be timed for nobody; nothing would be missing.
fn listener() -> Option<usize> {
    with_recorder(|recorder| {
        let address = std::ptr::from_ref(recorder).addr();
        let silent = size_of_val(recorder) == 0 && address != align_of_val(recorder);
        (!silent).then_some(address)
    })
}

/// A handle that this recorder has given, or gives now. A new recorder is told first what there is.
fn handle<T>(
    listener: usize,
    find: impl Fn(&Handles) -> Option<T>,
    make: impl FnOnce(&mut Handles) -> T,
) -> T {
    let known = HANDLES.read().unwrap_or_else(PoisonError::into_inner);
    if known.listener == listener
        && let Some(found) = find(&known)
    {
        return found;
    }
    drop(known);
    let mut handles = HANDLES.write().unwrap_or_else(PoisonError::into_inner);
    if handles.listener != listener {
        *handles = Handles { listener, ..Handles::default() };
        measure::ALL.iter().for_each(describe);
    }
    // Somebody else may have made it meanwhile.
    find(&handles).unwrap_or_else(|| make(&mut handles))
}

/// A recorder that panics must hurt nobody's work.
fn unhurt<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

const METADATA: Metadata<'static> = Metadata::new("pushonce", Level::INFO, None);

impl Meters {
    fn made(consumer: &Consumer) -> Self {
        let label = || Label::new("consumer", consumer.as_str().to_owned());
        Self {
            outcomes: OUTCOMES
                .iter()
                .map(|name| counter(measure::DELIVERIES, vec![label(), Label::new("outcome", *name)]))
                .collect(),
            in_flight: with_recorder(|recorder| {
                recorder.register_gauge(&Key::from_parts(measure::IN_FLIGHT.name, vec![label()]), &METADATA)
            }),
            claim: histogram(measure::CLAIM, label()),
            work: histogram(measure::WORK, label()),
            complete: histogram(measure::COMPLETE, label()),
            lease_left: histogram(measure::LEASE_LEFT, label()),
        }
    }
}

impl TripMeters {
    fn made() -> Self {
        let labels = || OPERATIONS.iter().map(|name| Label::new("operation", *name));
        let counts = |operation: Label| {
            let results = RESULTS.iter().map(|name| Label::new("result", *name));
            results.map(|result| counter(measure::TRIPS, vec![operation.clone(), result])).collect()
        };
        Self {
            counts: labels().map(counts).collect(),
            times: labels().map(|operation| histogram(measure::TRIP, operation)).collect(),
        }
    }
}

fn counter(metric: Metric, labels: Vec<Label>) -> Counter {
    with_recorder(|recorder| recorder.register_counter(&Key::from_parts(metric.name, labels), &METADATA))
}

fn histogram(metric: Metric, label: Label) -> Histogram {
    with_recorder(|recorder| {
        recorder.register_histogram(&Key::from_parts(metric.name, vec![label]), &METADATA)
    })
}

fn describe(metric: &Metric) {
    let (name, text) = (metric.name.into(), metric.description.into());
    with_recorder(|recorder| match metric.kind {
        Kind::Counter => recorder.describe_counter(name, None, text),
        Kind::Gauge => recorder.describe_gauge(name, None, text),
        Kind::Histogram => recorder.describe_histogram(name, Some(Unit::Seconds), text),
    });
}
