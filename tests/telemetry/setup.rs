//! Setting up the log of a process: once, with a filter that can be read, and never by a panic.

use std::fmt;

use pushonce::telemetry::{CloudLogging, InvalidLogs, Logs, init};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::lines::Lines;
use crate::process::alone;

#[test]
fn a_second_log_is_an_error_and_changes_nothing() {
    alone("setup::a_second_log_is_an_error_and_changes_nothing", &[("RUST_LOG", "off")], async {
        init().unwrap();
        let error = init().unwrap_err();
        assert!(matches!(error, InvalidLogs::Taken(_)), "{error:?}");
        assert_eq!(error.to_string(), "this process has a log already");
    });
}

#[test]
fn a_log_of_somebody_elses_is_left_as_it_is() {
    alone("setup::a_log_of_somebody_elses_is_left_as_it_is", &[], async {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = CloudLogging::new().writer(move || writer.clone());
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
        assert!(matches!(init(), Err(InvalidLogs::Taken(_))));
        tracing::info!("still here");
        assert_eq!(lines.entry().text("message"), "still here");
    });
}

#[test]
fn a_filter_that_cannot_be_read_is_an_error_that_says_what_would_do() {
    alone("setup::a_filter_that_cannot_be_read_is_an_error_that_says_what_would_do", &[], async {
        for filter in ["pushonce=loud", "a=b=c", "info,[span]=debug", "info,[{key=1}]=debug"] {
            let error = Logs::new().filter(filter).try_init().unwrap_err();
            assert!(matches!(error, InvalidLogs::Filter { .. }), "{filter}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(filter) && text.contains("`info,pushonce=debug`"), "{text}");
        }
        // None of them has set anything.
        Logs::new().filter("off").try_init().unwrap();
    });
}

/// Logs while it is shown.
#[derive(Clone, Copy)]
struct Talkative;

impl fmt::Debug for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tracing::info!("from inside");
        f.write_str("shown")
    }
}

// For the whole process: a subscriber of one thread is not asked again from inside.
#[test]
fn a_value_that_logs_while_it_is_shown_locks_nothing_up() {
    alone("setup::a_value_that_logs_while_it_is_shown_locks_nothing_up", &[], async {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = CloudLogging::new().writer(move || writer.clone());
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
        let span = tracing::info_span!("a", first = ?Talkative, later = tracing::field::Empty);
        let _span = span.enter();
        span.record("later", tracing::field::debug(Talkative));
        tracing::info!(value = ?Talkative, "outside");
        let entries = lines.entries();
        assert_eq!(entries.len(), 4, "{entries:#?}");
        let outside = entries.last().unwrap();
        let shown = ["first", "later", "value"].map(|name| outside.text(name));
        assert_eq!((outside.text("message"), shown), ("outside", ["shown"; 3]));
    });
}
