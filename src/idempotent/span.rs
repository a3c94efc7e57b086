//! The span of one delivery: what every log line has that is written while it is worked on.

use http::HeaderMap;
use tracing::Span;
use tracing::field::{Empty, display};

use super::config::Config;
use crate::key::Key;
use crate::pubsub::{Delivery, Trace};

/// Opens the span, with the consumer and the request's trace.
///
/// Its level is the highest, or a filter that leaves only warnings would take their trace from them; it
/// writes nothing by itself. Where nobody listens its fields are not even looked for.
pub(super) fn opened(config: &Config, headers: &HeaderMap) -> Span {
    let span = tracing::error_span!(
        target: "pushonce::delivery",
        "delivery",
        consumer = config.consumer.as_ref().ok().map(display),
        message_id = Empty,
        key = Empty,
        trace_id = Empty,
        span_id = Empty,
        trace_sampled = Empty,
        publisher_trace = Empty,
    );
    if !span.is_disabled()
        && let Some(trace) = Trace::of(headers)
    {
        join(&span, trace);
    }
    span
}

/// Adds what the message says of itself. Its publisher's trace is the one to join where the request,
/// sent by something else than Google's servers, has none.
pub(super) fn read(span: &Span, headers: &HeaderMap, delivery: &Delivery) {
    if span.is_disabled() {
        return;
    }
    if let Some(id) = delivery.message_id() {
        span.record("message_id", id);
    }
    if let Some(trace) = Trace::of_publisher(delivery) {
        span.record("publisher_trace", trace.id());
        if Trace::of(headers).is_none() {
            join(span, trace);
        }
    }
}

/// Adds the key.
pub(super) fn keyed(span: &Span, key: &Key) {
    if !span.is_disabled() {
        span.record("key", display(key));
    }
}

fn join(span: &Span, trace: Trace) {
    span.record("trace_id", trace.id());
    if let Some(id) = trace.span_id() {
        span.record("span_id", id);
    }
    if let Some(sampled) = trace.sampled() {
        span.record("trace_sampled", sampled);
    }
}
