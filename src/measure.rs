//! What the crate measures of itself: the names, labels, units and buckets of its metrics, in one place.
//!
//! Metrics go through the facade [`metrics`], to the recorder that the program installs for the process;
//! the feature `prometheus` has one. Without a recorder nothing is counted, timed or allocated for them;
//! a [`Metered`](crate::store::Metered) store keeps its own totals in any case. A recorder may be
//! installed before or after the layers and stores are made: what happens from then on is counted.
//!
//! A recorder of one thread ([`metrics::with_local_recorder`]) is not supported: what a recorder has given
//! is kept for the process and known again by its address alone, so that a second one may hear nothing.
//!
//! Names, labels and their values are part of the API: dashboards and alerts depend on them. No label
//! ever holds a key, a message id, an error or an address. `docs/metrics.md` says how to read them.

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub description: &'static str,
    /// The upper bounds of the buckets that suit a histogram, in seconds, rising; else none.
    pub buckets: &'static [f64],
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A number that only rises, until the process ends.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Durations, in seconds.
    Histogram,
}

/// Every delivery of a layer and every run of a verb, by what became of it; each counted once.
pub const DELIVERIES: Metric = Metric {
    name: "pushonce_deliveries_total",
    kind: Kind::Counter,
    labels: &["consumer", "outcome"],
    description: "Deliveries and runs, by what became of them",
    buckets: &[],
};
/// Pushes whose token was refused, which never come to a layer.
pub const UNAUTHORIZED: Metric = Metric {
    name: "pushonce_unauthorized_total",
    kind: Kind::Counter,
    labels: &["reason"],
    description: "Pushes whose token was refused, by the reason",
    buckets: &[],
};
/// Runs that are being claimed, worked on or settled, also those whose caller has gone or has its answer.
pub const IN_FLIGHT: Metric = Metric {
    name: "pushonce_in_flight",
    kind: Kind::Gauge,
    labels: &["consumer"],
    description: "Runs that are being claimed, worked on or settled",
    buckets: &[],
};
/// From before the claim until it was won or it was known that it is not, with the wait for a holder
/// and for the entity of `serialize`.
pub const CLAIM: Metric = seconds(
    "pushonce_claim_seconds",
    &["consumer"],
    "Time to claim a key, or to learn that it is not free",
    TRIP_BUCKETS,
);
/// The handler, or the work of a verb, however it ended.
pub const WORK: Metric =
    seconds("pushonce_work_seconds", &["consumer"], "Time of the work, however it ended", WORK_BUCKETS);
/// Completing or releasing the key, as long as the answer waits for it: five seconds at most.
pub const COMPLETE: Metric = seconds(
    "pushonce_complete_seconds",
    &["consumer"],
    "Time to complete or release the key, as long as the answer waits for it",
    TRIP_BUCKETS,
);
/// What was left of the lease when the work ended; zero if it had lapsed. Under `at_most_once`, of the ttl.
pub const LEASE_LEFT: Metric = seconds(
    "pushonce_lease_left_seconds",
    &["consumer"],
    "What was left of the lease when the work ended",
    LEFT_BUCKETS,
);
/// Round trips of each [`Metered`](crate::store::Metered) store.
pub const TRIPS: Metric = Metric {
    name: "pushonce_store_trips_total",
    kind: Kind::Counter,
    labels: &["operation", "result"],
    description: "Round trips to the store, by what was asked and what came of it",
    buckets: &[],
};
/// The time of those round trips, whatever came of them.
pub const TRIP: Metric =
    seconds("pushonce_store_trip_seconds", &["operation"], "Time of a round trip to the store", TRIP_BUCKETS);

/// All of them.
pub const ALL: &[Metric] =
    &[DELIVERIES, UNAUTHORIZED, IN_FLIGHT, CLAIM, WORK, COMPLETE, LEASE_LEFT, TRIPS, TRIP];

/// The values of the label `outcome`: the names of [`Outcome`](crate::Outcome), in its order. Without
/// `unauthorized`, which comes to no consumer: [`UNAUTHORIZED`] counts it.
pub const OUTCOMES: &[&str] = &[
    "ran",
    "duplicate",
    "conflict",
    "uncertain",
    "failed",
    "in-progress",
    "lost",
    "unavailable",
    "misuse",
    "unkeyed",
    "refused",
    "unguarded",
    "dead-lettered",
    "skipped",
];
/// The values of the label `reason`, as the module `oidc` tells what they mean.
pub const REASONS: &[&str] = &[
    "missing",
    "elsewhere",
    "malformed",
    "algorithm",
    "signature-removed",
    "signature-present",
    "unknown-key",
    "signature",
    "claim-missing",
    "issuer",
    "audience",
    "expired",
    "not-yet-valid",
    "email-unverified",
    "caller",
    "keys-unavailable",
];
/// The values of the label `operation`, as [`Totals`](crate::store::Totals) has them.
pub const OPERATIONS: &[&str] = &["read", "create", "update", "commit"];
/// The values of the label `result`, as [`Trips`](crate::store::Trips) has them.
pub const RESULTS: &[&str] = &["made", "lost", "failed"];

/// The most values of the label `consumer`. A consumer is a named handler, so there are few; where a
/// program makes names as it goes, all that come later are counted together as [`OTHERS`].
pub const CONSUMERS: usize = 256;
/// The value of the label `consumer` for all that are too many. No consumer can have this name.
pub const OTHERS: &str = "pushonce-others";

const fn seconds(
    name: &'static str,
    labels: &'static [&'static str],
    description: &'static str,
    buckets: &'static [f64],
) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, description, buckets }
}

/// A trip takes a millisecond or a few, a call is given up after five seconds, and a claim after ten.
const TRIP_BUCKETS: &[f64] = &[0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Up to the longest request of Cloud Run, with the ack deadline's limit (600 s) as a bound of its own.
const WORK_BUCKETS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0];
/// Fine where it becomes dangerous. The first counts the leases that had lapsed.
const LEFT_BUCKETS: &[f64] = &[0.0, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 3600.0];
