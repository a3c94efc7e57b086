//! Dead letters: kept where an operator finds them, looked at, discarded, and sent again.

mod entry;
mod error;
mod kept;
mod letters;
mod received;
mod receiver;
mod redrive;
#[cfg(feature = "serve")]
mod route;
mod turn;

pub use self::entry::{DeadLetterEntry, DeadLetterState, Republished, Source};
pub use self::error::{DiscardError, NotKept, RedriveError};
pub use self::letters::{DeadLetterPage, DeadLetters, Discarded};
pub use self::receiver::{Received, Receiver, receiver};
pub use self::redrive::{Redrive, Redriven};
