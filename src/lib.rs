//! One recorded success per key for each Google Cloud Pub/Sub push.
//!
//! Pub/Sub push delivers at least once. Wrap an axum route in [`IdempotentLayer`], point a push
//! subscription at it, and a redelivery, a republish under a business key and a concurrent duplicate
//! skip the handler; a failure is never acked; a crash heals when its lease lapses; a holder that was
//! replaced can write nothing more.
//!
//! ```
//! use std::sync::Arc;
//! use axum::{Router, routing::post};
//! use pushonce::{Ack, Failure, IdempotentLayer, Lease, PubSub, Store, json_pointer, store::Memory};
//!
//! # #[derive(serde::Deserialize)] struct Order { id: String }
//! # async fn charge_card(_: &Order, _: String) -> std::io::Result<()> { Ok(()) }
//! async fn charge(lease: Lease, PubSub(order): PubSub<Order>) -> Result<Ack, Failure> {
//!     // The same id on every rerun of this order: the vendor drops the repeat that no lease can exclude.
//!     charge_card(&order, lease.effect_id("charge")).await?;
//!     Ok(Ack)
//! }
//!
//! let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let layer = IdempotentLayer::new("charge", store).key(json_pointer("/id"));
//! let app: Router = Router::new().route("/charge", post(charge).layer(layer));
//! // pushonce::serve(app).await
//! # let _ = app;
//! ```
//!
//! Where to look:
//!
//! - [`IdempotentLayer`] guards a route; `serve` runs it on Cloud Run; [`PubSub`], [`Delivery`] and
//!   [`Lease`] are extractors; [`Outcome`] is what became of a delivery.
//! - [`lock`], [`mutex`] and [`at_most_once`] are the same guard as verbs, for any future.
//! - [`store`] has the port, [`connect`](store::connect), [`Memory`](store::Memory), and behind features
//!   `Datastore`, `Redis`, `Sql` and `Bucket`; [`Cached`](store::Cached) and [`Metered`](store::Metered)
//!   stand around any of them.
//! - [`Lease::commit`] completes a key in the transaction of its effect; [`maintain`] is for operators,
//!   and [`measure`] names the metrics.
//! - [`sizing`] says whether the times of a deployment fit together; ask it before you serve.
//! - `testing` (feature) tests a handler without Google; `contract` (feature) tests a store.
//!
//! # The limits
//!
//! A handler can run again after an error, a panic, a crash or a lapsed lease, and an error is no
//! proof that nothing was charged. [`Lease::history`] says so on the rerun, and
//! [`Lease::effect_id`] is the same on it. The promise holds within the ttl, and on a store that
//! keeps what it has acknowledged.
#![warn(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

/// The samples of the README and of `docs/`, compiled and run.
#[cfg(all(doctest, feature = "contract"))]
mod manual {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/keys.md")]
    struct Keys;
    #[doc = include_str!("../docs/which-verb.md")]
    struct WhichVerb;
    #[doc = include_str!("../docs/state-machine.md")]
    struct StateMachine;
    #[doc = include_str!("../docs/failures.md")]
    struct Failures;
    #[cfg(feature = "submit")]
    #[doc = include_str!("../docs/dead-letters.md")]
    struct DeadLetters;
    #[doc = include_str!("../docs/cloud-run.md")]
    struct CloudRun;
    #[doc = include_str!("../docs/sizing.md")]
    struct Sizing;
    #[doc = include_str!("../docs/write-a-store.md")]
    struct WriteAStore;
    #[doc = include_str!("../docs/comparison.md")]
    struct Comparison;
    #[doc = include_str!("../docs/decisions.md")]
    struct Decisions;
    #[doc = include_str!("../docs/spec-coverage.md")]
    struct SpecCoverage;
    #[cfg(all(feature = "sqlite", feature = "postgres", feature = "datastore"))]
    #[doc = include_str!("../docs/one-transaction.md")]
    struct OneTransaction;
    #[cfg(feature = "submit")]
    #[doc = include_str!("../docs/submit.md")]
    struct Submit;
    #[doc = include_str!("../docs/trips.md")]
    struct Trips;
    #[doc = include_str!("../docs/costs.md")]
    struct Costs;
    #[doc = include_str!("../docs/runbook.md")]
    struct Runbook;
    #[doc = include_str!("../docs/security.md")]
    struct Security;
    #[doc = include_str!("../docs/telemetry.md")]
    struct Telemetry;
    #[doc = include_str!("../docs/metrics.md")]
    struct Metrics;
}

mod chain;
pub mod dead_letter;
mod disabled;
pub mod idempotent;
mod key;
mod lease;
pub mod maintain;
pub mod measure;
mod meter;
#[cfg(feature = "oidc")]
pub mod oidc;
pub mod publish;
pub mod pubsub;
mod random;
#[cfg(feature = "serve")]
mod serve;
pub mod sizing;
pub mod store;
#[cfg(feature = "submit")]
pub mod submit;
mod task;
#[cfg(any(feature = "telemetry", feature = "prometheus"))]
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
pub mod verbs;

pub use self::disabled::Misplaced;
pub use self::idempotent::{IdempotentLayer, IdempotentService, InvalidLayer, PayloadCheck, Report};
pub use self::key::{Consumer, IntoKey, InvalidKey, Key, KeyInLogs};
pub use self::lease::{
    AfterCommit, CommitError, Completion, DeadLetter, History, Lease, Misuse, Panicked, RunError, Shutdown,
    Skip, TimedOut,
};
pub use self::pubsub::{
    Ack, Delivery, Failure, KeyRule, Outcome, PubSub, attribute, json_pointer, key_fn, message_id, outcome_of,
};
#[cfg(feature = "serve")]
pub use self::serve::{Serve, serve};
pub use self::store::Store;
pub use self::task::{Drained, drain};
pub use self::time::{Clock, SystemClock};
pub use self::verbs::{
    AtMostOnce, DEFAULT_LEASE, DEFAULT_TTL, Guarded, InvalidSetting, Lock, Mutex, Recorded, at_most_once,
    lock, mutex, unless_done,
};

#[cfg(feature = "contract")]
pub use self::lease::contract;
#[cfg(feature = "contract")]
#[doc(hidden)]
pub use self::lease::planted;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::random::seed;
