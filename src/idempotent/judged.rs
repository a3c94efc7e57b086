//! The verdict on a delivery that came to the guard, by what the guard says of it.

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Response, StatusCode};

use super::answer::Answering;
use super::config::PayloadCheck;
use super::follow::End;
use super::followed::{Ends, Untold};
use super::handler::{HandlerFailed, inside};
use crate::chain::chain;
use crate::lease::{AfterCommit, RunError, Skip};
use crate::pubsub::{Outcome, Verdict, outcome_of};
use crate::store::BoxError;
use crate::store::record::{Progress, Verb};
use crate::verbs::plan::Ran;
use crate::verbs::reject::{Rejected, Sent};

/// No answer asks Pub/Sub to stay away longer than its own longest backoff.
const LONGEST_RETRY: u64 = 600;

/// What came of a delivery that came to the guard.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) response: Response<Bytes>,
    /// What the handler itself answered.
    pub(super) answered: Option<StatusCode>,
    pub(super) error: Option<BoxError>,
    /// What whoever follows it is told.
    pub(super) ends: Option<Ends>,
}

impl Judged {
    fn new(verdict: Verdict, error: impl Into<BoxError>) -> Self {
        let error = Some(error.into());
        Self { verdict, response: Response::default(), answered: None, error, ends: None }
    }

    pub(super) fn of(at: &Answering, result: Result<Ran<Response<Bytes>>, RunError>) -> Self {
        let mut judged = match result {
            Ok(ran) => return Self::ran(at, ran),
            Err(RunError::Skipped(skip)) => return Self::skipped(at, skip),
            Err(RunError::Work(error)) => match error.downcast() {
                Ok(rejected) => Self::rejected(*rejected),
                Err(error) => Self::failed(error),
            },
            Err(error) => Self::new(outcome_of(&error), error),
        };
        // The mark stands once the work has begun, and with it this run was the only one.
        let over = judged.verdict.outcome == Outcome::DeadLettered && judged.verdict.status.is_success();
        if at.config.settings.verb == Verb::AtMostOnce && at.lease.is_some() && !over {
            judged.verdict = Verdict::new(Outcome::Lost, judged.verdict.status);
            judged.ends = Some(Ends::recorded(End::Lost));
        }
        judged
    }

    fn ran(at: &Answering, Ran { value, uncertain }: Ran<Response<Bytes>>) -> Self {
        let outcome = match (&at.place, uncertain) {
            (None, _) => Outcome::Unguarded,
            (Some(_), None) => Outcome::Ran,
            (Some(_), Some(_)) => Outcome::Uncertain,
        };
        let error = uncertain.map(|why| format!("done, but {why:?}: it may run again").into());
        let answered = Some(value.status());
        let ends = Some(Ends { how: End::Completed, recorded: uncertain.is_none() });
        Self { verdict: Verdict::new(outcome, StatusCode::OK), response: value, answered, error, ends }
    }

    fn skipped(at: &Answering, skip: Skip) -> Self {
        let skip = at.running(&skip).map_or(skip, |left| Skip::InProgress { left });
        let verdict = match &skip {
            // Under a message id, which names one message, another payload is another message: losing it would be worse.
            Skip::Duplicate { conflict: true, .. } if !at.followed && at.config.key.is_message_id() => {
                Verdict::new(Outcome::Conflict, StatusCode::INTERNAL_SERVER_ERROR)
            }
            Skip::Duplicate { conflict: true, .. } if at.config.check == PayloadCheck::Refuse => {
                Verdict::new(Outcome::Conflict, StatusCode::CONFLICT)
            }
            // Marked, but nobody knows whether it ran: by this verb's promise it will not.
            Skip::Duplicate { receipt: Some(receipt), .. } if receipt.progress == Progress::Started => {
                Verdict::new(Outcome::Lost, StatusCode::NO_CONTENT)
            }
            skip => outcome_of(skip),
        };
        let (left, ends) = match &skip {
            Skip::InProgress { left } => (Some(*left), None),
            Skip::Duplicate { receipt, .. } => (None, Some(Ends::before(receipt.as_ref()))),
        };
        let mut judged = Self { ends, ..Self::new(verdict, skip) };
        if let Some(left) = left {
            let seconds = left.as_secs().saturating_add(1).min(LONGEST_RETRY);
            judged.response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        judged
    }

    /// A handler that answered a failure, or a service that returned an error.
    fn failed(error: BoxError) -> Self {
        if let Some(AfterCommit { source }) = error.downcast_ref() {
            let answered = source.downcast_ref().map(|failed: &HandlerFailed| failed.status);
            let ends = Some(Ends::recorded(End::Completed));
            return Self { answered, ends, ..Self::new(outcome_of(&*error), error) };
        }
        match error.downcast::<HandlerFailed>() {
            Ok(mut failed) => {
                let (verdict, response) = (failed.verdict(), std::mem::take(&mut failed.response));
                Self { response, answered: Some(failed.status), ..Self::new(verdict, failed) }
            }
            Err(error) => {
                let found = outcome_of(&*error);
                let verdict = match found.outcome {
                    // A panic or a time limit of the guard itself.
                    Outcome::Failed => found,
                    _ => inside(found, StatusCode::INTERNAL_SERVER_ERROR),
                };
                Self::new(verdict, error)
            }
        }
    }

    /// A handler that has rejected its message.
    fn rejected(rejected: Rejected) -> Self {
        let answered = rejected.source.downcast_ref().map(|failed: &HandlerFailed| failed.status);
        let (status, recorded) = match rejected.sent {
            Sent::Recorded => (StatusCode::OK, Some(true)),
            // The message is where it was to go, and a nack would only send it there again.
            Sent::Unrecorded => (StatusCode::OK, Some(false)),
            // What becomes of it is up to whoever has the key now.
            Sent::FencedOut | Sent::Not(_) => (StatusCode::INTERNAL_SERVER_ERROR, None),
        };
        let ends = recorded.map(|recorded| Ends { how: End::DeadLettered, recorded });
        Self { answered, ends, ..Self::new(Verdict::new(Outcome::DeadLettered, status), rejected) }
    }

    /// An end that was not told: a redelivery tells it again, unless it would repeat the work.
    pub(super) fn untold(self, ends: Ends, untold: Untold) -> Self {
        if ends.recorded {
            let verdict = Verdict::new(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE);
            return Self { answered: self.answered, ..Self::new(verdict, untold) };
        }
        let before = self.error.map(|error| format!("{}; and ", chain(&*error))).unwrap_or_default();
        Self { error: Some(format!("{before}{}", chain(&untold)).into()), ..self }
    }
}
