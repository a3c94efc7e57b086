//! One recorded success per key for each Google Cloud Pub/Sub push.

mod key;
pub mod pubsub;
pub mod store;
mod task;
mod time;

pub use self::key::{Consumer, IntoKey, InvalidKey, Key};
pub use self::store::Store;
pub use self::task::{Drained, drain};
pub use self::time::{Clock, SystemClock};
