//! One recorded success per key for each Google Cloud Pub/Sub push.

mod key;
mod lease;
mod random;
pub mod store;
mod task;
mod time;
mod verbs;

pub use self::key::{Consumer, IntoKey, InvalidKey, Key};
pub use self::lease::{History, Lease, Misuse, Panicked, RunError, Shutdown, Skip, TimedOut};
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
