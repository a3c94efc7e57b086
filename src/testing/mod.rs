//! What a user needs to test a handler without Google (feature `testing`).

mod clock;

pub use self::clock::{ManualClock, TokioClock};
