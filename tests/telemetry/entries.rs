//! The entry of an event: its names, its spans, its trace, and that no value can break it.

use std::error::Error;
use std::fmt;

use serde_json::json;
use tracing::field::Empty;

use crate::lines::{LIMIT, Lines};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

#[test]
fn each_level_has_its_severity_and_a_warning_says_where_it_comes_from() {
    let (lines, _guard) = Lines::capture();
    tracing::trace!("a");
    tracing::debug!("b");
    tracing::info!("c");
    tracing::warn!("d");
    tracing::error!("e");
    let entries = lines.entries();
    let severities: Vec<_> = entries.iter().map(|entry| entry.text("severity")).collect();
    assert_eq!(severities, ["DEBUG", "DEBUG", "INFO", "WARNING", "ERROR"]);
    for (at, entry) in entries.iter().enumerate() {
        let location = entry.get("logging.googleapis.com/sourceLocation");
        assert_eq!(location["file"].as_str().is_some_and(|file| file.ends_with("entries.rs")), at >= 3);
        assert_eq!(location["line"].as_str().is_some_and(|line| line.parse::<u32>().is_ok()), at >= 3);
        assert_eq!((entry.text("target"), entry.get("@type")), ("telemetry::entries", &json!(null)));
    }
}

#[test]
fn fields_stand_at_the_top_with_their_names_and_types() {
    let (lines, _guard) = Lines::capture();
    let absent: Option<u32> = None;
    tracing::info!(delivery_attempt = 3, ok = true, r#type = "x", ratio = 0.5, dotted.name = -1, key = %"k", dbg = ?Some("v"), absent, "hello {}", "you");
    let entry = lines.entry();
    assert_eq!(entry.get("delivery_attempt"), &json!(3));
    assert_eq!((entry.get("ok"), entry.get("ratio")), (&json!(true), &json!(0.5)));
    assert_eq!((entry.text("type"), entry.get("dotted.name")), ("x", &json!(-1)));
    assert_eq!((entry.text("key"), entry.text("dbg")), ("k", "Some(\"v\")"));
    assert_eq!(entry.text("message"), "hello you");
    assert!(!entry.names().contains(&"absent"), "{entry:?}");
}

#[test]
fn the_event_goes_before_its_spans_and_the_inner_before_the_outer() {
    let (lines, _guard) = Lines::capture();
    let outer =
        tracing::info_span!("outer", a = "outer", b = "outer", c = "outer", message = "no", later = Empty);
    let _outer = outer.enter();
    let inner = tracing::info_span!("inner", b = "inner", c = "inner");
    let _inner = inner.enter();
    outer.record("later", "recorded");
    inner.record("b", "again");
    tracing::info!(c = "event", "hello");
    let entry = lines.entry();
    let text = |name| entry.text(name).to_owned();
    assert_eq!([text("a"), text("b"), text("c"), text("later")], ["outer", "again", "event", "recorded"]);
    assert_eq!((entry.text("message"), entry.text("message_")), ("hello", "no"));
}

#[test]
fn a_span_with_a_trace_joins_its_events_to_it() {
    let joined = |project: &str, trace: &str| {
        let (lines, _guard) = Lines::through(|layer| layer.project(project));
        let _outer = tracing::info_span!("a", trace_id = "1".repeat(32), span_id = SPAN).entered();
        let _span =
            tracing::info_span!("b", trace_id = TRACE, span_id = SPAN, trace_sampled = true).entered();
        let _inner = tracing::info_span!("c", consumer = "orders").entered();
        tracing::info!("hello");
        let entry = lines.entry();
        assert_eq!(entry.trace(), trace);
        assert_eq!(entry.text("logging.googleapis.com/spanId"), SPAN);
        assert_eq!(entry.get("logging.googleapis.com/trace_sampled"), &json!(true));
        let twice = entry.names().iter().any(|name| ["trace_id", "span_id", "trace_sampled"].contains(name));
        assert!(!twice, "{entry:?}");
    };
    joined("my-project", &format!("projects/my-project/traces/{TRACE}"));
    joined(" ", TRACE);
}

#[test]
fn what_is_no_trace_is_a_field_like_others_and_so_is_one_of_an_event() {
    let (lines, _guard) = Lines::capture();
    for id in ["", "4bf92f35", &TRACE.to_uppercase(), "Vbf92f3577b34da6a3ce929d0e0e4736"] {
        let _span = tracing::info_span!("a", trace_id = id, span_id = 7).entered();
        tracing::info!("hello");
        let entry = lines.entry();
        assert_eq!((entry.trace(), entry.text("trace_id"), entry.get("span_id")), ("", id, &json!(7)));
    }
    tracing::info!(trace_id = TRACE, "hello");
    let entry = lines.entry();
    assert_eq!((entry.trace(), entry.text("trace_id")), ("", TRACE));
    // Of a trace, what cannot be read of the rest is left out.
    let _span = tracing::info_span!("a", trace_id = TRACE, span_id = "7", trace_sampled = "yes").entered();
    tracing::info!("hello");
    let entry = lines.entry();
    assert_eq!(entry.trace(), format!("projects/p/traces/{TRACE}"));
    assert!(!entry.says("spanId") && !entry.says("sampled"), "{entry:?}");
}

#[test]
fn a_field_that_has_a_name_of_cloud_loggings_own_gets_another() {
    let (lines, _guard) = Lines::capture();
    tracing::info!(
        severity = "x",
        time = 1,
        timestamp = 2,
        target = "t",
        httpRequest = "h",
        severity_ = "y",
        "hello"
    );
    let entry = lines.entry();
    assert_eq!((entry.text("severity"), entry.text("severity_")), ("INFO", "x"));
    assert_eq!((entry.get("time_"), entry.get("timestamp_")), (&json!(1), &json!(2)));
    assert_eq!((entry.text("target_"), entry.text("httpRequest_")), ("t", "h"));
    assert!(!entry.names().contains(&"timestamp"), "{entry:?}");
    tracing::info!("logging.googleapis.com/labels" = "x", "logging.googleapis.com/trace" = "y", "hello");
    let entry = lines.entry();
    assert_eq!((entry.text("logging.googleapis.com/labels_"), entry.trace()), ("x", ""));
}

#[test]
fn numbers_that_json_or_a_double_cannot_hold_are_texts() {
    let (lines, _guard) = Lines::capture();
    let fence: u64 = 1_767_225_600_000_000;
    tracing::info!(
        nan = f64::NAN,
        inf = f64::NEG_INFINITY,
        huge = u128::MAX,
        low = i128::MIN,
        max = u64::MAX,
        min = i64::MIN,
        fence,
        "hello"
    );
    let entry = lines.entry();
    assert_eq!((entry.text("nan"), entry.text("inf")), ("NaN", "-inf"));
    assert_eq!((entry.text("huge"), entry.text("low")), (&*u128::MAX.to_string(), &*i128::MIN.to_string()));
    assert_eq!((entry.text("max"), entry.text("min")), ("18446744073709551615", "-9223372036854775808"));
    assert_eq!(entry.get("fence"), &json!(fence));
}

#[test]
fn whatever_a_text_holds_it_stays_one_line() {
    let (lines, _guard) = Lines::capture();
    let text = "a\nb\r\u{0}\u{7f}\u{2028}\"\\\u{1b}[31m é 🦀";
    let bytes: &[u8] = &[0xff, 0xfe, b'\n'];
    tracing::info!(text, bytes, os = ?std::ffi::OsStr::new("x\ny"), "m\nn {text}");
    let entry = lines.entry();
    assert_eq!(entry.text("text"), text);
    assert_eq!(entry.text("message"), format!("m\nn {text}"));
}

#[derive(Debug)]
struct Failed(Option<Box<Failed>>);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "outer" } else { "inner" })
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[test]
fn an_error_is_told_with_its_sources() {
    let (lines, _guard) = Lines::capture();
    let error = Failed(Some(Box::new(Failed(None))));
    tracing::error!(error = &error as &(dyn Error + 'static), "failed");
    assert_eq!(lines.entry().text("error"), "outer: inner");
}

/// Fails in every way when it is shown.
struct Hostile(bool);

impl fmt::Debug for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half of")?;
        assert!(self.0, "hostile");
        Err(fmt::Error)
    }
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Error for Hostile {}

#[test]
fn a_value_that_fails_or_panics_when_it_is_shown_costs_itself_and_nothing_else() {
    let (lines, _guard) = Lines::capture();
    for hostile in [Hostile(true), Hostile(false)] {
        let span = tracing::info_span!("a", first = ?hostile, later = Empty);
        span.record("later", tracing::field::debug(&hostile));
        let _span = span.enter();
        tracing::info!(?hostile, error = &hostile as &(dyn Error + 'static), kept = 1, "message {hostile}");
        let entry = lines.entry();
        for name in ["first", "later", "hostile"] {
            assert_eq!(entry.text(name), "half of (and it fails when it is shown)", "{entry:?}");
        }
        assert_eq!(entry.text("error"), "an error that panics when it is shown");
        assert_eq!(entry.get("kept"), &json!(1));
        assert!(entry.text("message").starts_with("message half of"), "{entry:?}");
    }
}

#[test]
fn an_entry_is_bounded_whatever_its_values_are() {
    let (lines, _guard) = Lines::capture();
    // Escaped, each of these takes six bytes.
    let large = "\u{1}".repeat(1_000_000);
    let wide = "é".repeat(1_000_000);
    tracing::info!(wide, first = 1, debug = ?wide, "{wide}");
    let entry = lines.entry();
    assert!(entry.text("wide").ends_with("é… (1983616 bytes left out)"), "{}", entry.text("wide").len());
    assert!(entry.text("message").ends_with("bytes left out)") && entry.text("debug").contains("left out"));
    let _span = tracing::info_span!("a", large, trace_id = TRACE).entered();
    tracing::info!(a = large, b = large, c = large, d = large, e = wide, first = 1, "{large}");
    let entry = lines.entry();
    assert!(entry.says(&format!("projects/p/traces/{TRACE}")) && !entry.text("message").is_empty());
    assert_eq!(entry.get("first"), &json!(1));
    assert!(entry.get("fields_left_out").as_u64().unwrap() >= 3, "{:?}", entry.get("fields_left_out"));
    assert!(format!("{entry:?}").len() > LIMIT / 2);
}

#[test]
fn an_event_without_a_message_has_one_that_can_be_read() {
    let (lines, _guard) = Lines::capture();
    tracing::info!(event = "ran", key = "k");
    tracing::info!(key = "k");
    tracing::info!(message = 5);
    let messages: Vec<_> = lines.entries().iter().map(|entry| entry.text("message").to_owned()).collect();
    assert_eq!(messages, ["ran", "an event of telemetry::entries", "5"]);
}

#[test]
fn errors_are_marked_for_error_reporting_where_that_is_asked_for() {
    let (lines, _guard) = Lines::through(|layer| layer.report_errors());
    tracing::error!("e");
    tracing::warn!("w");
    let [error, warning] = &lines.entries()[..] else { panic!("two entries") };
    assert!(error.text("@type").ends_with("v1beta1.ReportedErrorEvent"), "{error:?}");
    assert_eq!(warning.get("@type"), &json!(null));
}

/// An output that takes nothing.
struct Broken;

impl std::io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn an_output_that_takes_nothing_stops_nothing() {
    use tracing_subscriber::layer::SubscriberExt as _;
    let layer = pushonce::telemetry::CloudLogging::new().writer(|| Broken);
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    tracing::error!("nobody reads this");
}
