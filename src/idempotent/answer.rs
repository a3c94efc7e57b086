//! From what the guard says to what Pub/Sub is told: the answer, its log line and its hooks.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use tokio::sync::oneshot;

use super::body::{Buffered, Unread};
use super::config::{Config, PayloadCheck};
use super::handler::{HandlerFailed, inside};
use super::keys::Unkeyed;
use super::report::{self, Report};
use crate::key::Key;
use crate::lease::{AfterCommit, Lease, Place, RunError, Skip};
use crate::meter::{self, Run};
use crate::pubsub::outcome::HEADER;
use crate::pubsub::{Delivery, KeyRuleError, Outcome, Refused, Verdict, outcome_of};
use crate::store::BoxError;
use crate::store::record::{Progress, Verb};
use crate::verbs::plan::{Ran, Reply};

/// No answer asks Pub/Sub to stay away longer than its own longest backoff.
const LONGEST_RETRY: u64 = 600;

/// Where the guard's result goes: one answer, one log line, the hooks. Also where the caller has gone,
/// so that no delivery is without its log line.
pub(super) struct Answering {
    pub(super) config: Arc<Config>,
    pub(super) delivery: Delivery,
    /// Where its key stands; `None` for a message without one.
    pub(super) place: Option<Arc<Place>>,
    /// Where the entity of `serialize` stands, if there is one.
    pub(super) entity: Option<Arc<Place>>,
    /// Set when the work begins, unless it was found that it cannot.
    pub(super) lease: Option<Lease>,
    pub(super) sender: oneshot::Sender<Response<Bytes>>,
    /// The body counts against the budget until the answer is known.
    pub(super) buffered: Buffered,
}

impl Reply<Response<Bytes>> for Answering {
    async fn closed(&mut self) {
        self.sender.closed().await;
    }

    fn began(&mut self, lease: &Lease) {
        self.lease = Some(lease.clone());
    }

    fn send(self, result: Result<Ran<Response<Bytes>>, RunError>) {
        let Judged { verdict, response, answered, error } = self.judged(result);
        let about = About {
            key: self.place.as_ref().map(|place| &place.key),
            entity: self.entity.as_ref().map(|place| &place.key),
            delivery: Some(&self.delivery),
            lease: self.lease.as_ref(),
            answered,
        };
        let error = error.as_ref().map(|error| &**error as &(dyn Error + 'static));
        let response = told(&self.config, verdict, response, error, about);
        drop(self.buffered);
        // An error means that nobody waits, which changes nothing.
        let _ = self.sender.send(response);
    }
}

/// What came of a delivery that came to the guard.
struct Judged {
    verdict: Verdict,
    response: Response<Bytes>,
    /// What the handler itself answered.
    answered: Option<StatusCode>,
    error: Option<BoxError>,
}

impl Judged {
    fn new(verdict: Verdict, error: impl Into<BoxError>) -> Self {
        Self { verdict, response: Response::default(), answered: None, error: Some(error.into()) }
    }
}

impl Answering {
    /// Of work that runs without a guard.
    pub(super) fn measured(&self) -> Run {
        Run::begin(self.config.consumer(), &self.config.clock)
    }

    fn judged(&self, result: Result<Ran<Response<Bytes>>, RunError>) -> Judged {
        let mut judged = match result {
            Ok(ran) => return self.ran(ran),
            Err(RunError::Skipped(skip)) => return self.skipped(skip),
            Err(RunError::Work(error)) => worked(error),
            Err(error) => Judged::new(outcome_of(&error), error),
        };
        // The mark stands once the work has begun, and with it this run was the only one.
        if self.config.settings.verb == Verb::AtMostOnce && self.lease.is_some() {
            judged.verdict = Verdict::new(Outcome::Lost, judged.verdict.status);
        }
        judged
    }

    fn ran(&self, Ran { value, uncertain }: Ran<Response<Bytes>>) -> Judged {
        let outcome = match (&self.place, uncertain) {
            (None, _) => Outcome::Unguarded,
            (Some(_), None) => Outcome::Ran,
            (Some(_), Some(_)) => Outcome::Uncertain,
        };
        let error = uncertain.map(|why| format!("done, but {why:?}: it may run again").into());
        let answered = Some(value.status());
        Judged { verdict: Verdict::new(outcome, StatusCode::OK), response: value, answered, error }
    }

    fn skipped(&self, skip: Skip) -> Judged {
        let verdict = match &skip {
            // Under a message id, which names one message, another payload is another message: losing it would be worse.
            Skip::Duplicate { conflict: true, .. } if self.config.key.is_message_id() => {
                Verdict::new(Outcome::Conflict, StatusCode::INTERNAL_SERVER_ERROR)
            }
            Skip::Duplicate { conflict: true, .. } if self.config.check == PayloadCheck::Refuse => {
                Verdict::new(Outcome::Conflict, StatusCode::CONFLICT)
            }
            // Marked, but nobody knows whether it ran: by this verb's promise it will not.
            Skip::Duplicate { receipt: Some(receipt), .. } if receipt.progress == Progress::Started => {
                Verdict::new(Outcome::Lost, StatusCode::NO_CONTENT)
            }
            skip => outcome_of(skip),
        };
        let left = match &skip {
            Skip::InProgress { left } => Some(*left),
            Skip::Duplicate { .. } => None,
        };
        let mut judged = Judged::new(verdict, skip);
        if let Some(left) = left {
            let seconds = left.as_secs().saturating_add(1).min(LONGEST_RETRY);
            judged.response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        judged
    }
}

/// A handler that answered a failure, or a service that returned an error.
fn worked(error: BoxError) -> Judged {
    if let Some(AfterCommit { source }) = error.downcast_ref() {
        let answered = source.downcast_ref().map(|failed: &HandlerFailed| failed.status);
        return Judged { answered, ..Judged::new(outcome_of(&*error), error) };
    }
    match error.downcast::<HandlerFailed>() {
        Ok(mut failed) => {
            let (verdict, response) = (failed.verdict(), std::mem::take(&mut failed.response));
            Judged { verdict, response, answered: Some(failed.status), error: Some(failed) }
        }
        Err(error) => {
            let found = outcome_of(&*error);
            let verdict = match found.outcome {
                // A panic or a time limit of the guard itself.
                Outcome::Failed => found,
                _ => inside(found, StatusCode::INTERNAL_SERVER_ERROR),
            };
            Judged::new(verdict, error)
        }
    }
}

/// Why a push never came to the guard.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(transparent)]
    Unread(#[from] Unread),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Rule(#[from] KeyRuleError),
    #[error(transparent)]
    Unkeyed(#[from] Unkeyed),
    #[error(transparent)]
    Data(#[from] crate::pubsub::BadData),
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Refusal {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Unread(Unread::TooLarge { .. }) => {
                Verdict::new(Outcome::Refused, StatusCode::PAYLOAD_TOO_LARGE)
            }
            Self::Unread(Unread::Slow { .. }) => Verdict::new(Outcome::Refused, StatusCode::REQUEST_TIMEOUT),
            Self::Unread(Unread::OverBudget { .. }) => {
                Verdict::new(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE)
            }
            Self::Unread(Unread::Broken(_)) | Self::Refused(_) | Self::Data(_) => {
                Verdict::new(Outcome::Refused, StatusCode::BAD_REQUEST)
            }
            Self::Rule(_) => Verdict::new(Outcome::Misuse, StatusCode::INTERNAL_SERVER_ERROR),
            Self::Unkeyed(_) => Verdict::new(Outcome::Unkeyed, StatusCode::UNPROCESSABLE_ENTITY),
            Self::Run(error) => outcome_of(error),
        }
    }
}

/// Answers a push that never came to the guard.
pub(super) fn refuse(config: &Config, refusal: &Refusal, delivery: Option<&Delivery>) -> Response<Bytes> {
    let about = About { delivery, ..About::default() };
    told(config, refusal.verdict(), Response::default(), Some(refusal), about)
}

/// What a delivery was about, as far as that is known.
#[derive(Clone, Copy, Default)]
struct About<'a> {
    key: Option<&'a Key>,
    entity: Option<&'a Key>,
    delivery: Option<&'a Delivery>,
    lease: Option<&'a Lease>,
    answered: Option<StatusCode>,
}

/// The answer of that verdict, after it was logged and the hooks were told.
fn told(
    config: &Config,
    verdict: Verdict,
    mut response: Response<Bytes>,
    error: Option<&(dyn Error + 'static)>,
    about: About<'_>,
) -> Response<Bytes> {
    *response.status_mut() = verdict.status;
    response.headers_mut().insert(HEADER, HeaderValue::from_static(verdict.outcome.name()));
    let report = Report {
        outcome: verdict.outcome,
        status: verdict.status.as_u16(),
        handler_status: about.answered.map(|status| status.as_u16()),
        consumer: config.consumer(),
        key: about.key,
        delivery: about.delivery,
        lease: about.lease,
        error,
        entity: about.entity,
        clock: &*config.clock,
    };
    meter::count(report.consumer, verdict.outcome.name());
    report::tell(config, verdict, &report);
    response
}
