//! Why work was not run, or did not succeed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::key::{InvalidKey, Key};
use crate::store::record::{Receipt, Verb};
use crate::store::{BoxError, StoreError};

/// Why [`run`](crate::Guarded::run) did not return the work's value.
///
/// Put this error, not the bare [`Skip`] inside it, into `anyhow` or a boxed error: only sources
/// survive that conversion, and [`outcome_of`](crate::outcome_of) finds them there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The work was not started, since it is done or somebody does it. Ack a duplicate, nack an
    /// in-progress one.
    #[error("not run")]
    Skipped(#[from] Skip),
    /// The work ran and failed (its own error, or [`Panicked`], or [`TimedOut`]). The key was
    /// released, or left to lapse; nack.
    #[error("the work failed")]
    Work(#[source] BoxError),
    /// The store failed before the work; it was not started. Nack.
    #[error("the key could not be claimed")]
    Store(#[source] StoreError),
    /// The key is not one; nothing was stored. Refuse the message.
    #[error("the key cannot be used")]
    Key(#[source] InvalidKey),
    /// The key is used in a way that cannot work; nothing was started. Mend the program.
    #[error("the key is misused")]
    Misuse(#[source] Misuse),
    /// The process is shutting down: the work was not started, or was cancelled. Nack.
    #[error("not done")]
    Shutdown(#[source] Shutdown),
    /// The work was to complete its key in a transaction of its own, which is not committed, or nobody
    /// knows whether it is. Nack, whatever the work itself has said.
    #[error("the work's own transaction")]
    Commit(#[source] CommitError),
}

/// Why work was skipped.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Skip {
    /// The key is recorded: ack.
    #[error("already done{}", told(.receipt.as_ref()))]
    Duplicate {
        /// What was recorded.
        receipt: Option<Receipt>,
        /// Whether the payload was another one (only where it is checked). Look at the producer.
        conflict: bool,
    },
    /// Somebody works on the key: nack, and let it be delivered again.
    #[error("in progress elsewhere, for {left:?} more at most")]
    InProgress {
        /// What is left of the holder's lease.
        left: Duration,
    },
}

fn told(receipt: Option<&Receipt>) -> String {
    let Some(receipt) = receipt else { return String::new() };
    let message = receipt.message.as_deref().unwrap_or("an unnamed message");
    let delivery = receipt.delivery.as_deref().unwrap_or("an unnamed delivery");
    format!(" by {message} of {delivery} at {} µs since the epoch", receipt.at)
}

/// Why a transaction of the work's own did not complete its key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CommitError {
    /// The key cannot be completed in this way. Rolled back, or to be rolled back; mend the program.
    Misuse(Misuse),
    /// The key is this lease's no more: somebody has taken it over, or it is completed already. Rolled
    /// back, or to be rolled back; what stands is left as it is.
    FencedOut {
        /// The key.
        key: Key,
    },
    /// Nothing was committed, and nothing will be. The key is released when the work has ended.
    RolledBack {
        /// What the store said; `None` where the work never came to commit.
        source: Option<Arc<StoreError>>,
    },
    /// The answer to the commit was lost: it is committed, or is not, or will be. When the work has
    /// ended, the record is asked; only if that gives no answer either does this come out.
    Unknown {
        /// What the store said; `None` where the work was to commit by itself.
        source: Option<Arc<StoreError>>,
    },
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(_) | Self::RolledBack { .. } => f.write_str("nothing was committed"),
            Self::FencedOut { key } => write!(
                f,
                "nothing was committed: `{key}` is this lease's no more, since somebody has taken it over or it is completed already"
            ),
            Self::Unknown { .. } => f.write_str("nobody knows whether it is committed"),
        }
    }
}

impl Error for CommitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Misuse(misuse) => Some(misuse),
            Self::FencedOut { .. } => None,
            Self::RolledBack { source } | Self::Unknown { source } => {
                source.as_deref().map(|error| error as &(dyn Error + 'static))
            }
        }
    }
}

/// Work that failed after it had committed its key in a transaction of its own: the key is recorded, so
/// ack. What the work meant to do after the commit is not done, and is not tried again.
#[derive(Debug, thiserror::Error)]
#[error("committed and recorded, but what followed it failed")]
pub struct AfterCommit {
    /// How the work ended.
    pub source: BoxError,
}

/// A key that is used in a way that cannot work. Nothing was started, or it was rolled back; answer 500.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// A live record of another verb stands under the key.
    #[error(
        "`{key}` is live under `{stands}` and was asked for by `{asked}`: give the two uses two consumers or scopes, wait until it lapses, or reset it"
    )]
    WrongVerb {
        /// The key.
        key: Key,
        /// The verb of the record that stands.
        stands: Verb,
        /// The verb that was asked for.
        asked: Verb,
    },
    /// The work takes a key that it holds already, and would wait for itself.
    #[error(
        "`{key}` is taken inside the work that holds it: use another key or scope inside, or drop the inner verb"
    )]
    Reentrant {
        /// The key.
        key: Key,
    },
    /// The key cannot be completed in a transaction of the work's own, which was rolled back.
    #[error("`{key}` cannot be completed in this transaction: {why}")]
    Transaction {
        /// The key.
        key: Key,
        /// Why not, and what to do instead.
        why: &'static str,
    },
    /// A setting that cannot be meant.
    #[error("{0}")]
    Setting(String),
}

/// The process is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process is shutting down")]
pub struct Shutdown;

/// The work panicked. Its key was released with an unknown end.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the work panicked: {message}")]
pub struct Panicked {
    /// What it said.
    pub message: String,
}

/// The message can never succeed: send it to the dead-letter topic, and do not deliver it again.
///
/// The work's own word, anywhere in the chain of its error; nothing else makes a message a dead letter,
/// since no error that a library sees is proof that a later deploy could not work on it. It takes a layer
/// with [`dead_letters`](crate::IdempotentLayer::dead_letters); anywhere else it is misuse, answered 500.
#[derive(Debug, Clone, thiserror::Error)]
#[error("a dead letter: {reason}")]
pub struct DeadLetter {
    /// Why, for the operator who finds it: it goes to the dead-letter topic, and into the log. At most
    /// 1,024 bytes of it.
    pub reason: String,
}

/// The work took longer than its time limit and was cancelled. What it started may go on.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the work took longer than {limit:?} and was cancelled")]
pub struct TimedOut {
    /// The limit.
    pub limit: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Consumer;
    use crate::store::record::Progress;

    #[test]
    fn a_duplicate_says_who_did_the_work_as_far_as_that_is_known() {
        let told = |message: Option<&str>, delivery: Option<&str>| {
            let (message, delivery) = (message.map(Into::into), delivery.map(Into::into));
            let receipt = Receipt { progress: Progress::Finished, at: 7, message, delivery };
            Skip::Duplicate { receipt: Some(receipt), conflict: false }.to_string()
        };
        assert_eq!(told(Some("m-1"), Some("s")), "already done by m-1 of s at 7 µs since the epoch");
        assert_eq!(
            told(None, None),
            "already done by an unnamed message of an unnamed delivery at 7 µs since the epoch"
        );
        assert_eq!(Skip::Duplicate { receipt: None, conflict: false }.to_string(), "already done");
    }

    #[test]
    fn a_transaction_that_did_not_complete_its_key_says_what_is_known_and_why() {
        let key = Key::new(Consumer::default(), "k").unwrap();
        let store = || Some(Arc::new(StoreError::unavailable("down")));
        let misuse = Misuse::Transaction { key: key.clone(), why: "no" };
        for (error, says, source) in [
            (CommitError::Misuse(misuse), "nothing was committed", Some("cannot be completed")),
            (CommitError::FencedOut { key }, "is this lease's no more", None),
            (CommitError::RolledBack { source: store() }, "nothing was committed", Some("down")),
            (CommitError::RolledBack { source: None }, "nothing was committed", None),
            (CommitError::Unknown { source: store() }, "nobody knows", Some("down")),
        ] {
            assert!(error.to_string().contains(says), "{error:?}");
            let told = error.source().map(ToString::to_string);
            assert_eq!(told.is_some(), source.is_some(), "{error:?}");
            assert!(told.unwrap_or_default().contains(source.unwrap_or_default()), "{error:?}");
        }
    }
}
