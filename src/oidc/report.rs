//! One line and one count for refused requests: loud enough to be seen, and not as loud as a flood.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tracing::Span;

use super::refusal::Refusal;
use super::token::{Claims, Expected};
use crate::chain::chain;
use crate::meter;
use crate::pubsub::{Outcome, Trace};
use crate::time::{Clock, Stopwatch};

/// One line for each reason in this time. Whoever can reach the service can fill its log otherwise.
const QUIET: Duration = Duration::from_secs(10);
/// Of a received text, in characters.
const SHOWN: usize = 200;

/// When each reason was last logged.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<HashMap<&'static str, Reported>>);

#[derive(Debug)]
struct Reported {
    at: Stopwatch,
    /// Since then.
    unlogged: u64,
}

impl Reports {
    /// Counts a refusal, and logs it if its reason was not logged a moment ago. Never the token.
    pub(super) fn tell(
        &self,
        why: &Refusal,
        headers: &HeaderMap,
        claims: Option<&Claims>,
        expected: &Expected,
        clock: &Arc<dyn Clock>,
    ) {
        meter::unauthorized(why.reason());
        let Some(unlogged) = self.due(why.reason(), clock) else { return };
        let audience = claims.and_then(Claims::audience).map(|text| shown(&text));
        let email = claims.and_then(Claims::email).map(shown);
        let _joined = joined(headers).entered();
        tracing::error!(
            event = Outcome::Unauthorized.name(),
            status = why.status().as_u16(),
            reason = why.reason(),
            expected_audience = expected.audiences.join(", "),
            audience,
            expected_email = expected.callers.join(", "),
            email,
            unlogged,
            error = chain(why),
        );
    }

    /// How many were not logged since the last line, if one is due.
    fn due(&self, reason: &'static str, clock: &Arc<dyn Clock>) -> Option<u64> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = reported.get_mut(reason).filter(|last| last.at.elapsed() < QUIET) {
            last.unlogged += 1;
            return None;
        }
        let now = Reported { at: Stopwatch::start(clock), unlogged: 0 };
        Some(reported.insert(reason, now).map_or(0, |last| last.unlogged))
    }
}

/// The span that joins a line to the request's trace, since no delivery's span is open yet.
fn joined(headers: &HeaderMap) -> Span {
    let trace = Trace::of(headers);
    tracing::error_span!(
        target: "pushonce::delivery",
        "push",
        trace_id = trace.map(|trace| trace.id()),
        span_id = trace.and_then(|trace| trace.span_id()),
        trace_sampled = trace.and_then(|trace| trace.sampled()),
    )
}

/// A received text, bounded, and such that it can pretend to be no other line.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_default).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}
