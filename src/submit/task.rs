//! `Task`: what is known of a task, its id and its states.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::random;
use crate::time::{Clock, micros};

/// The id of a task: a UUID of version 7, so that ids sort by the time at which they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(Uuid);

impl TaskId {
    pub(super) fn new(clock: &dyn Clock) -> Self {
        let now = micros(clock.wall());
        let mut below = [0; 10];
        below.copy_from_slice(&random::id().to_bytes()[..10]);
        // The upper twelve of the random bits are the fraction of the millisecond (RFC 9562, 6.2, method 3).
        let fraction = u16::try_from(now % 1000 * 4096 / 1000).unwrap_or_default();
        below[..2].copy_from_slice(&fraction.to_be_bytes());
        Self(uuid::Builder::from_unix_timestamp_millis(now / 1000, &below).into_uuid())
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.hyphenated())
    }
}

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, InvalidTaskId> {
        // One spelling for each id, so that it can be compared as text too.
        let id = Uuid::try_parse(text).ok().map(Self).filter(|id| id.to_string() == text);
        id.ok_or(InvalidTaskId)
    }
}

/// A text that is no task's id: expected a UUID in lower case with hyphens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no id of a task: expected a UUID in lower case with hyphens")]
pub struct InvalidTaskId;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// Its message is not known to be published yet. Only the record of its key says so, for as long as
    /// its submission takes; its own says processing from the start.
    Creating,
    /// Its message is published, and its work has not ended.
    Processing,
    /// Its work succeeded.
    Completed,
    /// It will not be worked on any more; [`Why`] says why.
    Failed,
}

impl TaskState {
    /// Whether it is over: completed or failed.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creating => "creating",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        })
    }
}

/// Why a task failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Why {
    /// It was cancelled before its work began.
    Cancelled,
    /// Its work had not begun in the time that it was given.
    Expired,
    /// Its message went to the dead-letter topic.
    DeadLettered,
    /// Its worker is `at_most_once`, and failed or crashed.
    Lost,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::DeadLettered => "dead-lettered",
            Self::Lost => "lost",
        })
    }
}

/// A task, as its record says. It holds no input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Its id.
    pub task_id: TaskId,
    /// What is to be done.
    pub task_type: String,
    /// Where it stands.
    pub state: TaskState,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// The queue that it was submitted to, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Whose it is, if its submitter tells callers apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The scope of its idempotency key, if it has one: see [`Scope`](super::Scope).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Its idempotency key, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// When it was submitted.
    pub created_at: DateTime<Utc>,
    /// When it came to its state.
    pub updated_at: DateTime<Utc>,
    /// By when its work has to begin, if it was given a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_before: Option<DateTime<Utc>>,
}
