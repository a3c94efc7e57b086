//! From what the guard says to what Pub/Sub is told: the answer, its log line and its hooks.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use tokio::sync::oneshot;

use super::body::{Buffered, Unread};
use super::config::Config;
use super::follow::Follow;
use super::judged::Judged;
use super::keys::Unkeyed;
use super::rejected;
use super::report::{self, Report};
use crate::key::Key;
use crate::lease::{DeadLetter, Lease, Place, RunError, Skip};
use crate::meter::{self, Run};
use crate::pubsub::outcome::HEADER;
use crate::pubsub::{Delivery, KeyRuleError, Outcome, Refused, Verdict, outcome_of};
use crate::store::record::Progress;
use crate::store::{BoxError, BoxFuture};
use crate::time::micros;
use crate::verbs::plan::{Ran, Reply};

/// Where the guard's result goes: one answer, one log line, the hooks. Also where the caller has gone,
/// so that no delivery is without its log line.
pub(super) struct Answering {
    pub(super) config: Arc<Config>,
    pub(super) delivery: Delivery,
    /// Where its key stands; `None` for a message without one.
    pub(super) place: Option<Arc<Place>>,
    /// Where the entity of `serialize` stands, if there is one.
    pub(super) entity: Option<Arc<Place>>,
    /// Whether somebody follows what the message is about.
    pub(super) followed: bool,
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

    fn reject(&self, letter: &DeadLetter) -> Option<BoxFuture<'static, Result<(), BoxError>>> {
        let (publisher, topic) = self.config.dead_letters.clone()?;
        let message = rejected::message(&self.config, self.place.as_deref(), &self.delivery, letter);
        Some(Box::pin(rejected::publish(publisher, topic, message)))
    }

    fn send(self, result: Result<Ran<Response<Bytes>>, RunError>) -> Option<BoxFuture<'static, ()>> {
        let judged = Judged::of(&self, result);
        let Some((ends, (follow, place))) = judged.ends.zip(self.follower()) else {
            self.answer(judged);
            return None;
        };
        Some(Box::pin(async move {
            match ends.tell(follow.clone(), &place.key).await {
                Ok(()) => self.answer(judged),
                Err(untold) => {
                    self.answer(judged.untold(ends, untold));
                    if !ends.recorded {
                        ends.tell_on(&follow, &place.key).await;
                    }
                }
            }
        }))
    }
}

impl Answering {
    /// Of work that runs without a guard.
    pub(super) fn measured(&self) -> Run {
        Run::begin(self.config.consumer(), &self.config.clock)
    }

    /// What is left of the lease of a mark of `at_most_once` that somebody follows: until then the work may be
    /// running, and whoever follows is not to be told that it is lost.
    pub(super) fn running(&self, skip: &Skip) -> Option<Duration> {
        let Skip::Duplicate { receipt: Some(receipt), .. } = skip else { return None };
        if !self.followed || receipt.progress != Progress::Started {
            return None;
        }
        let age = micros(self.config.clock.wall()).saturating_sub(receipt.at);
        self.config.settings.lease.checked_sub(Duration::from_micros(age)).filter(|left| !left.is_zero())
    }

    /// Who follows what the message is about, if anybody does.
    fn follower(&self) -> Option<(Arc<dyn Follow>, Arc<Place>)> {
        self.config.follow.clone().filter(|_| self.followed).zip(self.place.clone())
    }

    fn answer(self, judged: Judged) {
        let Judged { verdict, response, answered, error, .. } = judged;
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
    #[error("nobody wants the work any more: {why}")]
    Unwanted { why: &'static str },
    #[error("nobody can say whether the work is still wanted")]
    Unasked(#[source] BoxError),
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
            Self::Unwanted { .. } => Verdict::new(Outcome::Skipped, StatusCode::NO_CONTENT),
            Self::Unasked(_) => Verdict::new(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

/// Answers a push that never came to the guard.
pub(super) fn refuse(
    config: &Config,
    refusal: &Refusal,
    delivery: Option<&Delivery>,
    key: Option<&Key>,
) -> Response<Bytes> {
    let about = About { delivery, key, ..About::default() };
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
