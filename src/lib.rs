//! One recorded success per key for each Google Cloud Pub/Sub push.
#![warn(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod disabled;
mod idempotent;
mod key;
mod lease;
pub mod pubsub;
mod random;
#[cfg(feature = "serve")]
mod serve;
pub mod store;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod verbs;

pub use self::disabled::Misplaced;
pub use self::idempotent::{
    IdempotentLayer, IdempotentService, InvalidLayer, PayloadCheck, Report, Unguarded,
};
pub use self::key::{Consumer, IntoKey, InvalidKey, Key};
pub use self::lease::{History, Lease, Misuse, Panicked, RunError, Shutdown, Skip, TimedOut};
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
    lock, mutex,
};

#[cfg(feature = "contract")]
pub use self::lease::contract;
#[cfg(feature = "contract")]
#[doc(hidden)]
pub use self::lease::planted;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::random::seed;
