//! Dead letters: kept where an operator finds them, looked at, discarded, and sent again.

mod entry;

pub use self::entry::{DeadLetterEntry, Source};
