//! The message of a task: its topic, its attributes, and the one try to publish it.

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures_util::FutureExt as _;

use super::submission::Submission;
use super::{SubmitError, Task};
use crate::publish::{Message, PublishError};
use crate::time::within;

/// Publishes the message of a task, once: whoever submits decides about a retry.
pub(super) async fn publish(submission: &Submission, task: &Task) -> Result<(), SubmitError> {
    let settings = &submission.submitter.0;
    let topic = task.queue.as_ref().and_then(|queue| settings.queues.get(queue)).unwrap_or(&settings.topic);
    let (message, limit) = (message(submission, task), settings.publish_timeout);
    let unanswered = |what| PublishError::Unanswered { what, source: None };
    // A panic of the publisher is a fault like any other: it must not strand the key.
    let publish =
        AssertUnwindSafe(async { settings.publisher.publish(topic, &message).await }).catch_unwind();
    let failed = match within(limit, pin!(publish)).await {
        Some(Ok(Ok(_))) => return Ok(()),
        Some(Ok(Err(error))) => error,
        Some(Err(_)) => unanswered("the publisher panicked".to_owned()),
        None => unanswered(format!("no answer within {limit:?}")),
    };
    Err(SubmitError::Publish { task_id: task.task_id, keyed: task.idempotency_key.is_some(), source: failed })
}

fn message(submission: &Submission, task: &Task) -> Message {
    let ours = [
        ("task-id", Some(task.task_id.to_string())),
        ("task-type", Some(task.task_type.clone())),
        ("task-scope", task.scope.clone()),
        ("idempotency-key", task.idempotency_key.clone()),
        // As Google's client libraries name it.
        ("googclient_traceparent", submission.traceparent.clone()),
    ];
    let mut attributes = submission.attributes.clone();
    attributes.extend(ours.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Message { data: submission.payload.clone(), attributes, ordering_key: submission.ordering_key.clone() }
}
