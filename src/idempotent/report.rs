//! What became of one delivery: one log line, and the hooks.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use tracing::Level;

use super::config::Config;
use crate::chain::{OneLine, chain};
use crate::key::{Consumer, Key, hidden};
use crate::lease::{History, Lease, Skip};
use crate::pubsub::{Delivery, Outcome, Verdict};
use crate::store::BoxError;
use crate::store::record::Receipt;
use crate::time::Clock;

/// What became of one delivery, for a hook.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report<'a> {
    /// What happened.
    pub outcome: Outcome,
    /// The status that was answered.
    pub status: u16,
    /// The status of the handler's own answer, where it gave one. A success is answered 200 whatever
    /// it was, since Pub/Sub acks only some of them.
    pub handler_status: Option<u16>,
    /// The layer's consumer.
    pub consumer: &'a Consumer,
    /// The key, where one was found.
    pub key: Option<&'a Key>,
    /// The delivery, where it could be decoded.
    pub delivery: Option<&'a Delivery>,
    /// The lease under which the handler ran, where it ran under one: its fence, the history that it
    /// found, and what is left of it now that the end is written down.
    pub lease: Option<&'a Lease>,
    /// The error behind it, if there is one.
    pub error: Option<&'a (dyn Error + 'static)>,
    /// Of `serialize`.
    pub(super) entity: Option<&'a Key>,
    pub(super) clock: &'a dyn Clock,
}

impl Report<'_> {
    /// How long ago the message was published, by this machine's clock; zero where that is behind
    /// Pub/Sub's. `None` where the delivery does not say.
    pub fn message_age(&self) -> Option<Duration> {
        let published = self.delivery?.publish_time()?;
        Some((DateTime::<Utc>::from(self.clock.wall()) - published).to_std().unwrap_or_default())
    }

    /// What is recorded of the run that did the work before, where this is a duplicate of it.
    pub fn receipt(&self) -> Option<&Receipt> {
        match self.error?.downcast_ref()? {
            Skip::Duplicate { receipt, .. } => receipt.as_ref(),
            Skip::InProgress { .. } => None,
        }
    }

    /// The key as its line has it. What is uncertain has to be looked into by somebody, so that there
    /// a pseudonym will not do.
    fn key_shown(&self) -> Option<String> {
        self.key.map(|key| match self.outcome {
            Outcome::Uncertain => key.shown(),
            _ => key.to_string(),
        })
    }

    fn error_shown(&self) -> Option<String> {
        self.error.map(|error| self.hidden_in(&chain(error)))
    }

    /// A text of somebody else's, with no more of the keys than their own display has.
    fn hidden_in(&self, text: &str) -> String {
        hidden(self.key.into_iter().chain(self.entity), text)
    }

    /// The name of the history, and the runs before.
    fn history(&self) -> Option<(&'static str, u32)> {
        Some(match self.lease?.history() {
            History::Fresh => ("fresh", 0),
            History::Failed { runs } => ("failed", runs),
            History::Unknown { runs } => ("unknown", runs),
        })
    }
}

pub(super) type Hook = dyn Fn(&Report<'_>) -> Result<(), BoxError> + Send + Sync;

/// Logs it, and tells the hooks. A hook that fails or panics changes nothing.
pub(super) fn tell(config: &Config, verdict: Verdict, report: &Report<'_>) {
    // Expanded once for each level, which a line has from the start; computed only for a line that is written.
    macro_rules! event {
        ($level:expr) => {
            tracing::event!(
                $level,
                event = report.outcome.name(),
                status = report.status,
                handler_status = report.handler_status,
                consumer = %report.consumer,
                key = report.key_shown(),
                message_id = report.delivery.and_then(Delivery::message_id),
                subscription = report.delivery.and_then(Delivery::subscription),
                delivery_attempt = report.delivery.and_then(Delivery::attempt),
                message_age_seconds = report.message_age().map(seconds),
                fence = report.lease.map(Lease::fence),
                history = report.history().map(|(name, _)| name),
                runs = report.history().map(|(_, runs)| runs),
                lease_left_seconds = report.lease.map(|lease| seconds(lease.left())),
                completed_by = report.receipt().and_then(|receipt| receipt.message.as_deref()),
                completed_by_subscription = report.receipt().and_then(|receipt| receipt.delivery.as_deref()),
                completed_at = report.receipt().map(at),
                error = report.error_shown(),
                "{}",
                Line(report),
            )
        };
    }
    match verdict.level() {
        Level::ERROR => event!(Level::ERROR),
        Level::WARN => event!(Level::WARN),
        Level::INFO => event!(Level::INFO),
        _ => event!(Level::DEBUG),
    }
    for (outcome, hook) in &config.hooks {
        if *outcome != report.outcome {
            continue;
        }
        let failed = match catch_unwind(AssertUnwindSafe(|| hook(report))) {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => chain(&*error),
            Err(panic) => crate::verbs::watch::message(&*panic),
        };
        let failed = report.hidden_in(&failed);
        tracing::warn!(outcome = %report.outcome, failed, "a hook failed; that changes nothing");
    }
}

/// What a person reads first: `failed orders:po-1: the handler answered 500`.
struct Line<'a>(&'a Report<'a>);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.outcome.name())?;
        if let Some(key) = self.0.key_shown() {
            write!(f, " {}", OneLine(&key))?;
        }
        match self.0.error_shown() {
            Some(error) => write!(f, ": {}", OneLine(&error)),
            None => Ok(()),
        }
    }
}

/// To the millisecond: more digits would be noise.
fn seconds(time: Duration) -> f64 {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).as_secs_f64()
}

/// When the key was completed.
fn at(receipt: &Receipt) -> String {
    let time = i64::try_from(receipt.at).ok().and_then(DateTime::from_timestamp_micros);
    time.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Micros, true)
}
