//! Why a submission gave no task.

use std::time::Duration;

use super::{InvalidSubmission, InvalidSubmitter, Overload, TaskId};
use crate::publish::PublishError;
use crate::store::StoreError;

/// Why a submission gave no task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The task of this key exists and is not over. Ask for it by its id, or submit again later: 409.
    #[error("task {task_id} of this key is in progress")]
    InProgress {
        /// The task.
        task_id: TaskId,
        /// When another try may be answered otherwise, as far as is known.
        retry_after: Duration,
    },
    /// The key was used for another input or another type of task: mend the caller, or use another key. 422.
    #[error("the idempotency key was used for another submission")]
    Conflict,
    /// The submission cannot be; nothing was recorded or published. 400.
    #[error(transparent)]
    Invalid(#[from] InvalidSubmission),
    /// The submitter cannot work as it was built; nothing was recorded or published. Mend the program, and
    /// build it with [`checked`](super::Submitter::checked). 500.
    #[error(transparent)]
    Submitter(#[from] InvalidSubmitter),
    /// The back-pressure hook turned it away; nothing was recorded or published. Submit again later.
    #[error("turned away for now: too much is waiting")]
    Overloaded(Overload),
    /// The message was not published, or nobody knows whether it was. With a key: submit again with the
    /// same key, which gives this task, at once. Without one: the task may run, and another submission is
    /// another task; the record of this one says processing until it does, or its time is over. 503.
    #[error("task {task_id} is not known to be published")]
    Publish {
        /// The task.
        task_id: TaskId,
        /// Whether the submission has a key, so that it may be sent again.
        keyed: bool,
        /// What the publisher said.
        #[source]
        source: PublishError,
    },
    /// The store failed, or too much of this process goes on without its caller; nothing was published.
    /// Submit again, with the same key if there is one. 503.
    #[error("the submission could not be recorded")]
    Store(#[from] StoreError),
}
