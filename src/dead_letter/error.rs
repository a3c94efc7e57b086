//! Why a dead letter was not kept, sent again or discarded, and what that obliges whoever asked to do.

use std::time::Duration;

use super::turn::Busy;
use crate::key::Key;
use crate::publish::PublishError;
use crate::pubsub::BadData;
use crate::store::{BoxError, StoreError};

/// Why a dead letter was not sent again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedriveError {
    /// There is no dead letter of that id, or its 30 days are over. Nothing was published.
    #[error("no dead letter `{id}` is kept")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Somebody has discarded it. Nothing was published.
    #[error("dead letter `{id}` is discarded")]
    Discarded {
        /// The id.
        id: String,
    },
    /// Its data was too large to be kept, so it cannot be published from here. Its message is still with
    /// the dead-letter subscription, which is not told to drop it: pull it there, publish it by hand, then
    /// discard it here, and the next delivery of it is acked.
    #[error(
        "dead letter `{id}` has {bytes} bytes of data, too many to be kept: its message is still with the dead-letter subscription; pull it there, publish it by hand, then discard it here"
    )]
    TooLarge {
        /// The id.
        id: String,
        /// How long its data is, in bytes.
        bytes: u64,
    },
    /// Somebody else redrives or discards it, or it is just being received. Nothing was published by this
    /// call. Try again then: a redrive that has succeeded meanwhile is told.
    #[error("somebody else is at this dead letter, for {left:?} more at most: try again then")]
    InProgress {
        /// The most that it may take.
        left: Duration,
    },
    /// Its key is held by a run that is not over, and was spared. Nothing was published. Try again when
    /// its lease is over.
    #[error("`{key}` is held by a run for another {left:?}: try again then")]
    Held {
        /// The key.
        key: Key,
        /// What is left of the lease.
        left: Duration,
    },
    /// The work of its key is recorded by now, by another message or an earlier redrive. Nothing was
    /// published: it would be skipped as a duplicate. Discard the dead letter.
    #[error("the work of `{key}` is recorded since{}: discard the dead letter", by(.message.as_deref()))]
    Done {
        /// The key.
        key: Key,
        /// The message that was worked on, where one is known.
        message: Option<String>,
    },
    /// Its task could not be set to run once more. Nothing was published. Redrive again.
    #[error("its task could not be set to run once more: redrive again")]
    Follow(#[source] BoxError),
    /// It was not published, and its task is failed as before. Mend what the source says, or wait; then
    /// redrive again.
    #[error("it was not published: mend what is named here, or wait, then redrive again")]
    NotPublished(#[source] PublishError),
    /// It was not published, and its task could not be set back: it looks as if it were processing. Redrive
    /// again; discarding does not mend it.
    #[error("it was not published ({publish}), and its task is left as processing: redrive again")]
    NotSetBack {
        /// What the publisher said.
        publish: PublishError,
        /// Why the task is not failed again.
        #[source]
        follow: BoxError,
    },
    /// Nobody knows whether it was published. Look whether the work is done, else redrive again: a second
    /// copy does no harm where the consumer's key is a task id or a business key, and runs twice where
    /// it is the message id.
    #[error(
        "nobody knows whether it was published: redriving again may publish a second copy, which does no harm under a task id or a business key, but runs twice under the message id"
    )]
    Unanswered(#[source] PublishError),
    /// It was published, but not marked as redriven. Redriving again publishes a second copy: see
    /// [`Unanswered`](Self::Unanswered).
    #[error(
        "it was published as message {message_id}, but is not marked as redriven: redriving again may publish a second copy, which does no harm under a task id or a business key, but runs twice under the message id"
    )]
    NotMarked {
        /// The id of the message.
        message_id: String,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// It was cut off, as by a shutdown; it may have been published. See [`Unanswered`](Self::Unanswered).
    #[error("cut off, and nobody knows whether it was published: redrive again")]
    Interrupted(#[source] BoxError),
    /// The store failed before anything was published. Redrive again.
    #[error("nothing was published: redrive again")]
    Store(#[from] StoreError),
}

fn by(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| format!(", by message {message}"))
}

/// Why a dead letter is not kept. Do not ack it: it is delivered again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotKept {
    /// It has no message id, so a copy of it could not be known. Let the subscription wrap its pushes, or
    /// set `write_metadata` where it unwraps them. 400.
    #[error(
        "the push has no message id: let the dead-letter subscription wrap its pushes, or set `write_metadata` on it"
    )]
    Unnamed,
    /// Its data cannot be read. 400.
    #[error(transparent)]
    Data(BadData),
    /// It is too large to be kept whole. It is listed without its data, if it fits so, and its message
    /// stays with the dead-letter subscription: pull it there, publish it by hand, then discard the entry,
    /// and the next delivery is acked. 413.
    #[error(
        "a dead letter with {bytes} bytes of data is too large to be kept: its message stays with the dead-letter subscription; pull it there, publish it by hand, then discard {}",
        .id.as_deref().unwrap_or("it by an ack")
    )]
    TooLarge {
        /// The id under which it is listed; `None` where its attributes do not fit either.
        id: Option<String>,
        /// How long its data is, in bytes.
        bytes: u64,
    },
    /// Somebody redrives or discards it just now. 503.
    #[error("somebody else is at this dead letter, for {left:?} more at most")]
    InProgress {
        /// The most that it may take.
        left: Duration,
    },
    /// It is kept, but its task could not be told. 503.
    #[error("the dead letter is kept, but its task is not failed yet")]
    Follow(#[source] BoxError),
    /// The store failed, or the process shuts down. 503.
    #[error("the dead letter is not known to be kept")]
    Store(#[from] StoreError),
}

/// Why a dead letter was not discarded. Try again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscardError {
    /// Somebody else redrives or discards it, or it is just being received. Nothing was changed by this call.
    #[error("somebody else is at this dead letter, for {left:?} more at most: try again then")]
    InProgress {
        /// The most that it may take.
        left: Duration,
    },
    /// The store failed. Nobody knows whether it is discarded.
    #[error("the dead letter is not known to be discarded")]
    Store(#[from] StoreError),
}

/// What was cut off before it was known to be done.
fn cut_off(source: BoxError) -> StoreError {
    let what = "cut off".to_owned();
    StoreError::Unavailable { what, may_have_written: true, source: Some(source) }
}

impl From<Busy> for RedriveError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::InProgress { left } => Self::InProgress { left },
            Busy::Store(error) => Self::Store(error),
            Busy::Interrupted(error) => Self::Interrupted(error),
        }
    }
}

impl From<Busy> for DiscardError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::InProgress { left } => Self::InProgress { left },
            Busy::Store(error) => Self::Store(error),
            Busy::Interrupted(error) => Self::Store(cut_off(error)),
        }
    }
}

impl From<Busy> for NotKept {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::InProgress { left } => Self::InProgress { left },
            Busy::Store(error) => Self::Store(error),
            Busy::Interrupted(error) => Self::Store(cut_off(error)),
        }
    }
}
