//! From what the guard says to what Pub/Sub is told: the answer, its log line and its hooks.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::body::{Buffered, Unread};
use super::layer::{Config, PayloadCheck};
use super::report::{self, Report};
use super::service::Unkeyed;
use crate::key::{Consumer, Key};
use crate::lease::{Lease, RunError, Skip};
use crate::pubsub::extract::{Cause, verdict};
use crate::pubsub::outcome::HEADER;
use crate::pubsub::{Delivery, KeyRuleError, Outcome, Refused, Verdict, outcome_of};
use crate::store::BoxError;
use crate::store::record::{Progress, Verb};
use crate::verbs::guard::{Ran, Reply};

/// No answer asks Pub/Sub to stay away longer than its own longest backoff.
const LONGEST_RETRY: u64 = 600;

/// A handler that answered something else than success.
pub(super) struct HandlerFailed(pub(super) Response<Bytes>);

impl HandlerFailed {
    /// What it means under a layer, where only the layer's own key can make a duplicate.
    fn verdict(&self) -> Verdict {
        let status = self.0.status();
        let failing = if status.is_client_error() || status.is_server_error() {
            status
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        match verdict(self.0.extensions()) {
            Some(verdict) if verdict.outcome == Outcome::InProgress => verdict,
            _ => Verdict::new(Outcome::Failed, failing),
        }
    }
}

impl fmt::Debug for HandlerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerFailed({})", self.0.status())
    }
}

impl fmt::Display for HandlerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handler answered {}", self.0.status())?;
        match self.0.extensions().get::<Cause>() {
            Some(cause) => write!(f, ": {}", cause.0),
            None => Ok(()),
        }
    }
}

impl Error for HandlerFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.extensions().get::<Cause>().and_then(|cause| cause.0.source())
    }
}

/// Where the guard's result goes: one answer, one log line, the hooks. Also where the caller has gone,
/// so that no delivery is without its log line.
pub(super) struct Answering {
    pub(super) config: Arc<Config>,
    pub(super) delivery: Delivery,
    pub(super) key: Option<Key>,
    /// Set when the work starts.
    pub(super) lease: Option<Lease>,
    pub(super) sender: oneshot::Sender<Response<Bytes>>,
    /// Told that the caller has gone, where an inner guard has to know.
    pub(super) gone: Option<CancellationToken>,
    /// The body counts against the budget until the answer is known.
    pub(super) buffered: Buffered,
}

impl Reply<Response<Bytes>> for Answering {
    async fn closed(&mut self) {
        self.sender.closed().await;
        if let Some(gone) = &self.gone {
            gone.cancel();
        }
    }

    fn began(&mut self, lease: &Lease) {
        self.lease = Some(lease.clone());
    }

    fn send(self, result: Result<Ran<Response<Bytes>>, RunError>) {
        let (verdict, response, error) = self.judged(result);
        let fence = self.lease.as_ref().map(Lease::fence);
        let about = About { key: self.key.as_ref(), delivery: Some(&self.delivery), fence };
        let error = error.as_ref().map(|error| &**error as &(dyn Error + 'static));
        let response = told(&self.config, verdict, response, error, about);
        drop(self.buffered);
        // An error means that nobody waits, which changes nothing.
        let _ = self.sender.send(response);
    }
}

type Judged = (Verdict, Response<Bytes>, Option<BoxError>);

impl Answering {
    fn judged(&self, result: Result<Ran<Response<Bytes>>, RunError>) -> Judged {
        let marks = self.config.settings.verb == Verb::AtMostOnce;
        let error = match result {
            Ok(Ran { value, uncertain }) => {
                let outcome = match (&self.key, uncertain) {
                    (None, _) => Outcome::Unguarded,
                    (Some(_), None) => Outcome::Ran,
                    (Some(_), Some(_)) => Outcome::Uncertain,
                };
                let why = uncertain.map(|why| format!("done, but {why:?}: it may run again").into());
                return (Verdict::new(outcome, StatusCode::OK), value, why);
            }
            Err(error) => error,
        };
        let (verdict, response, error): Judged = match error {
            RunError::Work(error) => match error.downcast::<HandlerFailed>() {
                Ok(failed) => {
                    let verdict = failed.verdict();
                    let text: BoxError = failed.to_string().into();
                    (verdict, failed.0, Some(text))
                }
                Err(error) => {
                    let found = outcome_of(&*error);
                    let verdict = match found.outcome {
                        Outcome::Failed => found,
                        // Another key's duplicate, or another store's outage, is this handler's failure.
                        _ => Verdict::new(Outcome::Failed, StatusCode::INTERNAL_SERVER_ERROR),
                    };
                    (verdict, Response::default(), Some(error))
                }
            },
            RunError::Skipped(skip) => {
                let mut response = Response::default();
                if let Skip::InProgress { left } = &skip {
                    let seconds = left.as_secs().saturating_add(1).min(LONGEST_RETRY);
                    response.headers_mut().insert(RETRY_AFTER, seconds.into());
                }
                return (self.skipped(&skip), response, Some(skip.into()));
            }
            error => return (outcome_of(&error), Response::default(), Some(error.into())),
        };
        let verdict = if marks { Verdict::new(Outcome::Lost, verdict.status) } else { verdict };
        (verdict, response, error)
    }

    fn skipped(&self, skip: &Skip) -> Verdict {
        match skip {
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
    let about = About { key: None, delivery, fence: None };
    told(config, refusal.verdict(), Response::default(), Some(refusal), about)
}

/// What a delivery was about, as far as that is known.
#[derive(Clone, Copy)]
struct About<'a> {
    key: Option<&'a Key>,
    delivery: Option<&'a Delivery>,
    fence: Option<u64>,
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
    let unnamed = Consumer::default();
    let report = Report {
        outcome: verdict.outcome,
        status: verdict.status.as_u16(),
        consumer: config.consumer.as_ref().unwrap_or(&unnamed),
        key: about.key,
        delivery: about.delivery,
        error,
    };
    report::tell(config, verdict, &report, about.fence);
    response
}
