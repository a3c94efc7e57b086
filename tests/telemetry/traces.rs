//! The trace that the lines of a delivery join: the request's, else the publisher's, also where the caller has gone.

use std::sync::Arc;

use axum::body::Body;
use axum::routing::post;
use pushonce::testing::Push;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt as _;
use tracing::Instrument as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::lines::{Entry, Lines};
use crate::world::{World, answering, app, message};

const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const OTHER: &str = "0af7651916cd43dd8448eb211c80319c";

fn w3c(id: &str) -> String {
    format!("00-{id}-00f067aa0ba902b7-01")
}

/// All lines of one push: the handler's own, and the outcome's.
async fn logged(push: Push) -> [Entry; 2] {
    let (lines, _guard) = Lines::capture();
    let handler = post(async || tracing::info!(step = 1, "in the handler"));
    push.send(&app(handler, World::new().layer())).await;
    lines.entries().try_into().unwrap_or_else(|entries| panic!("two entries: {entries:#?}"))
}

/// The trace, the span, whether it is kept, and the publisher's trace.
fn joined(entry: &Entry) -> (&str, &str, &Value, &str) {
    (
        entry.trace(),
        entry.text("logging.googleapis.com/spanId"),
        entry.get("logging.googleapis.com/trace_sampled"),
        entry.text("publisher_trace"),
    )
}

#[tokio::test]
async fn the_handlers_own_line_has_consumer_message_key_and_trace() {
    let [handlers, outcome] = logged(message("1").header("traceparent", &w3c(ID))).await;
    assert_eq!((handlers.text("message"), handlers.get("step")), ("in the handler", &json!(1)));
    for entry in [&handlers, &outcome] {
        assert_eq!((entry.text("consumer"), entry.text("message_id")), ("orders", "1"));
        assert_eq!(entry.text("key"), "orders:1");
        let trace = format!("projects/p/traces/{ID}");
        assert_eq!(joined(entry), (&*trace, "00f067aa0ba902b7", &json!(true), ""));
    }
}

#[tokio::test]
async fn each_header_and_the_publishers_attribute_is_read_in_every_shape() {
    let shapes: [fn(Push) -> Push; 4] = [|push| push, Push::unwrapped, Push::eventarc, Push::structured];
    let (request, publisher) = (format!("projects/p/traces/{ID}"), format!("projects/p/traces/{OTHER}"));
    let (yes, no, unknown) = (&json!(true), &json!(false), &Value::Null);
    for shape in shapes {
        let push = || shape(message("1"));
        let cloud = |value: &str| push().header("x-cloud-trace-context", value);
        let published = |push: Push| push.attribute("googclient_traceparent", w3c(OTHER));
        for (push, wanted) in [
            (push(), ("", "", unknown, "")),
            (cloud(&format!("{ID}/74;o=0")), (&*request, "000000000000004a", no, "")),
            (cloud(ID), (&request, "", unknown, "")),
            (
                cloud(&format!("{OTHER}/1;o=0")).header("traceparent", &w3c(ID)),
                (&request, "00f067aa0ba902b7", yes, ""),
            ),
            (
                cloud(&format!("{ID}/74;o=1")).header("traceparent", "00-x"),
                (&request, "000000000000004a", yes, ""),
            ),
            (cloud("x").header("traceparent", "ff"), ("", "", unknown, "")),
            (published(push()), (&publisher, "00f067aa0ba902b7", yes, OTHER)),
            (published(cloud(&format!("{ID}/74;o=0"))), (&request, "000000000000004a", no, OTHER)),
            (push().attribute("googclient_traceparent", "x"), ("", "", unknown, "")),
        ] {
            for entry in logged(push).await {
                assert_eq!(joined(&entry), wanted, "{entry:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_push_that_is_refused_joins_its_trace_too() {
    let (lines, _guard) = Lines::capture();
    let app = app(answering(200), World::new().layer());
    let request = http::Request::post("/").header("traceparent", w3c(ID)).body(Body::from("[]")).unwrap();
    app.oneshot(request).await.unwrap();
    let entry = lines.outcome();
    assert_eq!((entry.text("event"), entry.trace()), ("refused", &*format!("projects/p/traces/{ID}")));
}

// F48
#[tokio::test]
async fn after_a_hang_up_the_handlers_lines_still_have_their_spans_and_their_trace() {
    let (lines, _guard) = Lines::capture();
    let (started, release, ended) =
        (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, released) = (started.clone(), release.clone());
    let handler = post(async move || {
        start.notify_one();
        released.notified().await;
        tracing::info!("after the hang-up");
    });
    let tell = ended.clone();
    let layer = World::new().layer().on(pushonce::Outcome::Ran, move |_| {
        tell.notify_one();
        Ok(())
    });
    let request = message("1").header("traceparent", &w3c(ID)).request::<Body>();
    let server = tracing::info_span!("server", region = "eu");
    let caller = tokio::spawn(app(handler, layer).oneshot(request).instrument(server));
    started.notified().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    release.notify_one();
    ended.notified().await;
    let entries = lines.entries();
    assert_eq!(entries.len(), 2, "{entries:#?}");
    for entry in &entries {
        assert_eq!(entry.trace(), format!("projects/p/traces/{ID}"), "{entry:?}");
        assert_eq!((entry.text("consumer"), entry.text("region")), ("orders", "eu"), "{entry:?}");
    }
    assert_eq!(entries[0].text("message"), "after the hang-up");
}

#[tokio::test]
async fn deliveries_that_are_worked_on_at_the_same_time_keep_their_traces_apart() {
    let (lines, _guard) = Lines::capture();
    let handler = post(async || {
        tokio::task::yield_now().await;
        tracing::info!("in the handler");
    });
    let app = app(handler, World::new().layer());
    let ids: Vec<_> = (1..=20_u128).map(|id| format!("{id:032x}")).collect();
    let sent = ids.iter().map(|id| message(id).header("traceparent", &w3c(id)));
    let all = sent.map(|push| {
        let app = app.clone();
        tokio::spawn(async move { push.send(&app).await })
    });
    for sent in all.collect::<Vec<_>>() {
        sent.await.unwrap();
    }
    let entries = lines.entries();
    assert_eq!(entries.len(), 40);
    for entry in entries {
        assert_eq!(entry.trace(), format!("projects/p/traces/{}", entry.text("message_id")));
    }
}

#[tokio::test]
async fn a_filter_that_leaves_only_warnings_leaves_them_their_trace() {
    let lines = Lines::default();
    let writer = lines.clone();
    let layer = pushonce::telemetry::CloudLogging::new().project("p").writer(move || writer.clone());
    let filter = Targets::new().with_default(tracing::Level::WARN);
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    let _guard = tracing::subscriber::set_default(subscriber);
    message("1").header("traceparent", &w3c(ID)).send(&app(answering(500), World::new().layer())).await;
    let entry = lines.entry();
    assert_eq!((entry.text("event"), entry.trace()), ("failed", &*format!("projects/p/traces/{ID}")));
}
