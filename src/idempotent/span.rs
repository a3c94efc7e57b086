//! The span of one delivery: what every log line has that is written while it is worked on.

use http::HeaderMap;
use tracing::field::Empty;
use tracing::{Level, Span};

use super::config::Config;
use crate::key::Key;
use crate::pubsub::{Delivery, Trace};

/// Opens the span, with the consumer and the request's trace. Where nobody listens nothing is looked for.
///
/// Its level is the highest, or a filter that leaves only warnings would take their trace from them; it
/// writes nothing by itself.
pub(super) fn opened(config: &Config, headers: &HeaderMap) -> Span {
    if !tracing::span_enabled!(target: "pushonce::delivery", Level::ERROR) {
        return Span::none();
    }
    let trace = Trace::of(headers);
    tracing::error_span!(
        target: "pushonce::delivery",
        "delivery",
        consumer = config.consumer.as_ref().ok().map(display),
        message_id = Empty,
        key = Empty,
        trace_id = trace.map(|trace| trace.id()),
        span_id = trace.and_then(|trace| trace.span_id()),
        trace_sampled = trace.and_then(|trace| trace.sampled()),
        publisher_trace = Empty,
    )
}

/// Adds what the message says of itself, and its key. Its publisher's trace is the one to join where
/// the request, sent by something else than Google's servers, has none.
pub(super) fn read(span: &Span, headers: &HeaderMap, delivery: &Delivery, key: Option<&Key>) {
    if span.is_disabled() {
        return;
    }
    // A text, which every format escapes, and no display.
    let (id, key) = (delivery.message_id(), key.map(Key::to_string));
    let Some(published) = Trace::of_publisher(delivery) else {
        tracing::record_all!(span, message_id = id, key = key);
        return;
    };
    let joined = Some(published).filter(|_| Trace::of(headers).is_none());
    tracing::record_all!(
        span,
        message_id = id,
        key = key,
        publisher_trace = published.id(),
        trace_id = joined.map(|trace| trace.id()),
        span_id = joined.and_then(|trace| trace.span_id()),
        trace_sampled = joined.and_then(|trace| trace.sampled()),
    );
}
