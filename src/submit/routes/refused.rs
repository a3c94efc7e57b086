//! The answer to a submission that gave no task, and the one log line of those that nobody asked for.

use std::time::Duration;

use super::links::Links;
use super::problem::{Code, Problem};
use crate::chain::{chain, chain_about};
use crate::key::{Consumer, Key, KeyInLogs};
use crate::store::StoreError;
use crate::submit::{InvalidSubmission, Overload, SubmitError};

/// What a caller waits before it tries what failed.
const RETRY: Duration = Duration::from_secs(5);
const SAME_KEY: &str =
    "Send it again with the same idempotency key: it gives one task, whatever became of this.";

/// The answer to a submission that gave no task.
pub(super) fn refused(error: SubmitError, key: Option<&str>, links: &Links) -> Problem {
    match error {
        SubmitError::InProgress { task_id, retry_after } => {
            let detail = "Ask for the task by its id, or send the same again later.";
            Problem::new(Code::InProgress, detail).task(task_id, links).retry_after(retry_after)
        }
        // Says nothing of the other one: who guesses a key learns only that it is taken.
        SubmitError::Conflict => Problem::new(
            Code::Conflict,
            "The key names a task of another input or type. Use another key, or send what was sent before.",
        ),
        SubmitError::Invalid(invalid @ InvalidSubmission::Key { .. }) => {
            Problem::new(Code::InvalidKey, sentence(&invalid))
        }
        SubmitError::Invalid(invalid) => Problem::new(Code::InvalidSubmission, sentence(&invalid)),
        SubmitError::Submitter(invalid) => {
            tracing::error!(error = chain(&invalid), "no submission can be taken");
            Problem::new(Code::Internal, "Nothing was recorded.")
        }
        SubmitError::Overloaded(Overload::TooMany { retry_after }) => {
            Problem::new(Code::TooMany, "Nothing was recorded. Send it again later.").retry_after(retry_after)
        }
        SubmitError::Overloaded(Overload::Unavailable { retry_after }) => {
            Problem::new(Code::Overloaded, "Nothing was recorded. Send it again later.")
                .retry_after(retry_after)
        }
        SubmitError::Publish { task_id, keyed, source } => {
            tracing::error!(%task_id, error = told(&source, key), "a task is not known to be published");
            let unknown = source.may_have_published();
            let code = if unknown { Code::PublishUnknown } else { Code::PublishFailed };
            let detail = match (keyed, unknown) {
                (true, _) => SAME_KEY,
                (false, true) => "It may run. Without an idempotency key another submission is another task.",
                (false, false) => "It will not run. Send it again.",
            };
            Problem::new(code, detail).task(task_id, links).retry_after(RETRY)
        }
        SubmitError::Store(source) => {
            tracing::error!(error = told(&source, key), "a submission could not be recorded");
            let detail = if key.is_some() { SAME_KEY } else { "Nothing was published. Send it again." };
            Problem::new(Code::StoreFailed, detail).retry_after(RETRY)
        }
    }
}

/// The answer to a request about a task that the store did not answer.
pub(super) fn store_failed(error: &StoreError, what_to_do: &str) -> Problem {
    tracing::error!(error = chain(error), "a request about a task failed");
    Problem::new(Code::StoreFailed, what_to_do).retry_after(RETRY)
}

/// The error for the log, in which the key may not stand.
fn told(error: &(dyn std::error::Error + 'static), key: Option<&str>) -> String {
    match key.map(|key| Key::new(Consumer::reserved("idempotency"), key)) {
        Some(Ok(key)) => chain_about(&key.in_logs(KeyInLogs::Hashed), error),
        Some(Err(_)) | None => chain(error),
    }
}

fn sentence(invalid: &InvalidSubmission) -> String {
    let text = invalid.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
