//! What the layer logs, as data.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// All events of this thread, as long as the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Line>>>);

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Line {
    /// A field's text; empty where the event has none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Log {
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        // With a single subscriber in the process, an event that is met first by a thread without one is
        // switched off for all threads. So there is always a second, which looks at nothing.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Capture(Self::default())));
        let log = Self::default();
        let guard = tracing::subscriber::set_default(Capture(log.clone()));
        (log, guard)
    }

    /// The outcomes that were logged, in order.
    pub(crate) fn outcomes(&self) -> Vec<Line> {
        self.lines().into_iter().filter(|line| line.fields.contains_key("event")).collect()
    }

    /// The one outcome since the last call.
    pub(crate) fn outcome(&self) -> Line {
        let lines = self.outcomes();
        self.0.lock().unwrap().clear();
        let [line] = &lines[..] else { panic!("expected one outcome: {lines:#?}") };
        line.clone()
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap().clone()
    }
}

struct Capture(Log);

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("pushonce")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut line);
        self.0.0.lock().unwrap().push(line);
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}
