//! What became of one delivery: one log line, and the hooks.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::Level;

use super::config::Config;
use crate::key::{Consumer, Key};
use crate::pubsub::{Delivery, Outcome, Verdict};
use crate::store::BoxError;

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
    /// The error behind it, if there is one.
    pub error: Option<&'a (dyn Error + 'static)>,
}

pub(super) type Hook = dyn Fn(&Report<'_>) -> Result<(), BoxError> + Send + Sync;

/// Logs it, and tells the hooks. A hook that fails or panics changes nothing.
pub(super) fn tell(config: &Config, verdict: Verdict, report: &Report<'_>, fence: Option<u64>) {
    let key = report.key.map(tracing::field::display);
    let delivery = report.delivery;
    let message_id = delivery.and_then(Delivery::message_id);
    let subscription = delivery.and_then(Delivery::subscription);
    let delivery_attempt = delivery.and_then(Delivery::attempt);
    let error = report.error.map(chain);
    macro_rules! event {
        ($level:expr) => {
            tracing::event!(
                $level,
                event = report.outcome.name(),
                status = report.status,
                handler_status = report.handler_status,
                consumer = %report.consumer,
                key,
                message_id,
                subscription,
                delivery_attempt,
                fence,
                error,
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
        tracing::warn!(outcome = %report.outcome, failed, "a hook failed; that changes nothing");
    }
}

/// An error with its sources, in one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let told = || {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    };
    // A user's error may panic where it should say what it is, and the answer must go out all the same.
    catch_unwind(AssertUnwindSafe(told))
        .unwrap_or_else(|_| "an error that panics when it is shown".to_owned())
}
