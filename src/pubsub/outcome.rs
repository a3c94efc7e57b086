//! The one table: what happened, what Pub/Sub is told, and how loudly it is logged.

use std::error::Error;
use std::fmt;

use http::{HeaderName, StatusCode};
use tracing::Level;

use crate::key::InvalidKey;
use crate::lease::{AfterCommit, CommitError, DeadLetter, Misuse, RunError, Shutdown, Skip, TimedOut};
use crate::store::StoreError;

/// The header that every answer of the layer carries: the [`Outcome`]'s name.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("pushonce-outcome");

/// What became of one delivery. The names are part of the API: they are the `event` of the log line
/// and the value of the header `pushonce-outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler answered 2xx and the key is recorded; or it committed the key in a transaction of
    /// its own, whatever it answered then. Acked.
    Ran,
    /// The key was recorded before; the handler did not run. Acked.
    Duplicate,
    /// A duplicate with another payload (only where it is checked).
    Conflict,
    /// The handler succeeded, but nobody recorded it: it may run again. Acked, and to be looked at.
    Uncertain,
    /// The handler failed; the key was released or left to lapse. Nacked.
    Failed,
    /// Somebody else works on the key. Nacked.
    InProgress,
    /// `at_most_once`: the work failed or crashed after its mark and will not run again.
    Lost,
    /// The store, a budget or a shutdown stood in the way, and the handler did not run; or a shutdown
    /// cut it off; or its own transaction was fenced out, or nobody knows of it. Nacked.
    Unavailable,
    /// The program is wrong: the key rule failed, or the key is used by two verbs. Nacked.
    Misuse,
    /// The message has no key. Nacked, and the handler did not run.
    Unkeyed,
    /// The request is no push, is too large, or was not read in time. Nacked.
    Refused,
    /// The message has no key, and the layer allows that: the handler ran without a guard.
    Unguarded,
    /// The push carries no token, a wrong one, or one of somebody else; or nobody can check it now.
    /// Nacked, and nothing was claimed.
    Unauthorized,
    /// The handler asked for it, and the message went to the dead-letter topic: acked. Or it could not be
    /// published there: nacked.
    DeadLettered,
    /// Nobody wants the work any more (its task is cancelled or expired); the handler did not run. Acked.
    Skipped,
}

impl Outcome {
    /// All of them, in the order of the table.
    pub const ALL: &'static [Self] = &[
        Self::Ran,
        Self::Duplicate,
        Self::Conflict,
        Self::Uncertain,
        Self::Failed,
        Self::InProgress,
        Self::Lost,
        Self::Unavailable,
        Self::Misuse,
        Self::Unkeyed,
        Self::Refused,
        Self::Unguarded,
        Self::Unauthorized,
        Self::DeadLettered,
        Self::Skipped,
    ];

    /// The event's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Uncertain => "uncertain",
            Self::Failed => "failed",
            Self::InProgress => "in-progress",
            Self::Lost => "lost",
            Self::Unavailable => "unavailable",
            Self::Misuse => "misuse",
            Self::Unkeyed => "unkeyed",
            Self::Refused => "refused",
            Self::Unguarded => "unguarded",
            Self::Unauthorized => "unauthorized",
            Self::DeadLettered => "dead-lettered",
            Self::Skipped => "skipped",
        }
    }

    /// The outcome of that name, as the header `pushonce-outcome` has it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|outcome| outcome.name() == name)
    }

    /// How loudly it is logged.
    pub(crate) const fn level(self) -> Level {
        match self {
            Self::Duplicate => Level::DEBUG,
            Self::Ran | Self::Skipped => Level::INFO,
            Self::Failed | Self::InProgress | Self::Unguarded => Level::WARN,
            Self::Conflict
            | Self::Uncertain
            | Self::Lost
            | Self::Unavailable
            | Self::Misuse
            | Self::Unkeyed
            | Self::Refused
            | Self::Unauthorized
            | Self::DeadLettered => Level::ERROR,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An outcome, the status that tells Pub/Sub, and the level of its log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// What happened.
    pub outcome: Outcome,
    /// The answer: 200 and 204 ack; Pub/Sub takes everything else that we send for a nack.
    pub status: StatusCode,
    level: Level,
}

impl Verdict {
    pub(crate) const fn new(outcome: Outcome, status: StatusCode) -> Self {
        Self { outcome, status, level: outcome.level() }
    }

    pub(crate) const fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    pub(crate) const fn level(self) -> Level {
        self.level
    }
}

/// What an error means for the delivery, wherever it stands in a chain of sources: for those who
/// map their own error type to an answer.
///
/// Put the [`RunError`], not the bare [`Skip`], into `anyhow` or a boxed error: only sources survive.
///
/// ```
/// use pushonce::{Outcome, RunError, Skip, outcome_of};
/// use std::time::Duration;
///
/// let error = RunError::Skipped(Skip::InProgress { left: Duration::from_secs(9) });
/// let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
/// let verdict = outcome_of(&*boxed);
/// assert_eq!((verdict.outcome, verdict.status.as_u16()), (Outcome::InProgress, 503));
/// ```
pub fn outcome_of(error: &(dyn Error + 'static)) -> Verdict {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(verdict) = known(error) {
            return verdict;
        }
        at = error.source();
    }
    Verdict::new(Outcome::Failed, StatusCode::INTERNAL_SERVER_ERROR)
}

fn known(error: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(skip) = error.downcast_ref::<Skip>() {
        return Some(match skip {
            Skip::Duplicate { conflict: false, .. } => {
                Verdict::new(Outcome::Duplicate, StatusCode::NO_CONTENT)
            }
            Skip::Duplicate { conflict: true, .. } => Verdict::new(Outcome::Conflict, StatusCode::NO_CONTENT),
            Skip::InProgress { .. } => Verdict::new(Outcome::InProgress, StatusCode::SERVICE_UNAVAILABLE),
        });
    }
    if let Some(RunError::Skipped(skip)) = error.downcast_ref::<RunError>() {
        return known(skip);
    }
    if let Some(error) = error.downcast_ref::<CommitError>() {
        return Some(match error {
            CommitError::Misuse(misuse) => return known(misuse),
            CommitError::RolledBack { .. } => {
                Verdict::new(Outcome::Failed, StatusCode::INTERNAL_SERVER_ERROR)
            }
            CommitError::FencedOut { .. } | CommitError::Unknown { .. } => {
                Verdict::new(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE)
            }
        });
    }
    // Recorded, so a nack would change nothing; but nobody will do what was to follow.
    if error.is::<AfterCommit>() {
        return Some(Verdict::new(Outcome::Ran, StatusCode::OK).at(Level::ERROR));
    }
    if error.is::<StoreError>() {
        return Some(Verdict::new(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE));
    }
    if error.is::<Shutdown>() {
        return Some(Verdict::new(Outcome::Unavailable, StatusCode::SERVICE_UNAVAILABLE).at(Level::INFO));
    }
    // Under a layer that has a place for it, the layer answers before this is asked.
    if error.is::<Misuse>() || error.is::<DeadLetter>() {
        return Some(Verdict::new(Outcome::Misuse, StatusCode::INTERNAL_SERVER_ERROR));
    }
    if error.is::<InvalidKey>() {
        return Some(Verdict::new(Outcome::Unkeyed, StatusCode::UNPROCESSABLE_ENTITY));
    }
    if error.is::<TimedOut>() {
        return Some(Verdict::new(Outcome::Failed, StatusCode::GATEWAY_TIMEOUT).at(Level::ERROR));
    }
    if error.is::<crate::lease::Panicked>() {
        return Some(Verdict::new(Outcome::Failed, StatusCode::INTERNAL_SERVER_ERROR).at(Level::ERROR));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lease::Panicked;
    use crate::store::BoxError;

    // Never edited: alerts and dashboards are made of them.
    #[test]
    fn every_outcome_has_one_name_and_is_found_by_it() {
        let names: Vec<_> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();
        assert_eq!(
            names.join(" "),
            "ran duplicate conflict uncertain failed in-progress lost unavailable misuse unkeyed refused unguarded \
             unauthorized dead-lettered skipped"
        );
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(&outcome.to_string()), Some(*outcome));
        }
        assert_eq!(Outcome::from_name("no such outcome"), None);
    }

    #[test]
    fn what_an_error_means_is_found_wherever_it_stands_in_its_chain() {
        use Level as L;
        use Outcome as O;
        let left = Duration::from_secs(1);
        let duplicate = |conflict| RunError::Skipped(Skip::Duplicate { receipt: None, conflict });
        let setting = || Misuse::Setting("no".into());
        let cases: Vec<(BoxError, (O, u16, L))> = vec![
            (duplicate(false).into(), (O::Duplicate, 204, L::DEBUG)),
            (duplicate(true).into(), (O::Conflict, 204, L::ERROR)),
            (RunError::Skipped(Skip::InProgress { left }).into(), (O::InProgress, 503, L::WARN)),
            (RunError::Store(StoreError::unavailable("")).into(), (O::Unavailable, 503, L::ERROR)),
            (RunError::Shutdown(Shutdown).into(), (O::Unavailable, 503, L::INFO)),
            (RunError::Misuse(setting()).into(), (O::Misuse, 500, L::ERROR)),
            (DeadLetter { reason: "no".into() }.into(), (O::Misuse, 500, L::ERROR)),
            (CommitError::Misuse(setting()).into(), (O::Misuse, 500, L::ERROR)),
            (CommitError::RolledBack { source: None }.into(), (O::Failed, 500, L::WARN)),
            (CommitError::Unknown { source: None }.into(), (O::Unavailable, 503, L::ERROR)),
            (AfterCommit { source: "no".into() }.into(), (O::Ran, 200, L::ERROR)),
            (RunError::Work(TimedOut { limit: left }.into()).into(), (O::Failed, 504, L::ERROR)),
            (Panicked { message: "no".into() }.into(), (O::Failed, 500, L::ERROR)),
            ("anything else".into(), (O::Failed, 500, L::WARN)),
        ];
        for (error, meant) in cases {
            let wrapped = RunError::Work(error);
            let verdict = outcome_of(&wrapped);
            assert_eq!((verdict.outcome, verdict.status.as_u16(), verdict.level()), meant, "{wrapped:?}");
        }
    }
}
