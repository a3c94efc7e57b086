//! Dead letters: kept where an operator finds them, looked at, discarded, and sent again.

mod entry;
mod error;
mod letters;
#[cfg(feature = "serve")]
mod receiver;
mod redrive;

pub use self::entry::{DeadLetterEntry, DeadLetterState, Republished, Source};
pub use self::error::{DiscardError, RedriveError};
pub use self::letters::{DeadLetterPage, DeadLetters, Discarded};
#[cfg(feature = "serve")]
pub use self::receiver::{Receiver, receiver};
pub use self::redrive::{Redrive, Redriven};
