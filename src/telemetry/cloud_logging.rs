//! `CloudLogging`: a layer that writes each event as one structured entry of Cloud Logging.

use std::fmt;
use std::io::{self, Write as _};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::entry::Entry;
use super::value::Fields;
use crate::time::{Clock as _, SystemClock};

/// The fields by which a span names its trace.
const TRACE: [&str; 3] = ["trace_id", "span_id", "trace_sampled"];
/// What tells Error Reporting that an entry is an error of its own, with or without a stack trace.
/// <https://cloud.google.com/error-reporting/docs/formatting-error-messages>
const REPORTED: &str = "type.googleapis.com/google.devtools.clouderrorreporting.v1beta1.ReportedErrorEvent";

/// A [`Layer`] that writes each event as one line of JSON, as Cloud Logging reads it from the output
/// of a container. [`init`](super::init) uses it; take it by itself to build a subscriber of your own.
///
/// An event's fields and those of the spans around it stand side by side; the event's go before its
/// spans', an inner span's before an outer's. A span that has a field `trace_id` (32 lower-case hex
/// digits) joins its events to that trace; with `span_id` (16 of them) and `trace_sampled` (a boolean)
/// beside it. A field that has a name of Cloud Logging's own gets an underscore behind it.
///
/// ```
/// use pushonce::telemetry::CloudLogging;
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let subscriber = tracing_subscriber::registry().with(CloudLogging::new().project("my-project"));
/// # let _ = subscriber;
/// ```
#[must_use = "a layer writes nothing until a subscriber has it"]
pub struct CloudLogging<W = fn() -> io::Stdout> {
    writer: W,
    project: Option<String>,
    report_errors: bool,
}

impl CloudLogging {
    /// A layer that writes to standard output, for the project of `GOOGLE_CLOUD_PROJECT`.
    pub fn new() -> Self {
        Self { writer: io::stdout, project: None, report_errors: false }.project_of_env()
    }

    fn project_of_env(self) -> Self {
        match std::env::var("GOOGLE_CLOUD_PROJECT") {
            Ok(project) => self.project(project),
            Err(_) => self,
        }
    }
}

impl Default for CloudLogging {
    fn default() -> Self {
        Self::new()
    }
}

impl<W> CloudLogging<W> {
    /// The project whose traces the entries join. Without one a trace is written by its id alone,
    /// which Cloud Logging takes for one of the project that the entry goes to.
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into().trim().to_owned()).filter(|project| !project.is_empty());
        self
    }

    /// Marks each entry of severity `ERROR` for Error Reporting, which groups them by their text. Off by
    /// default, since what needs a person is better told by an alert on its `event`.
    pub fn report_errors(mut self) -> Self {
        self.report_errors = true;
        self
    }

    /// Writes to somewhere else: one call of `write_all` for each entry. What it answers is not looked at.
    pub fn writer<V>(self, writer: V) -> CloudLogging<V>
    where
        V: for<'a> MakeWriter<'a> + 'static,
    {
        CloudLogging { writer, project: self.project, report_errors: self.report_errors }
    }

    /// What every entry has, whatever its event says.
    fn begun(&self, metadata: &Metadata<'_>, fields: &Fields) -> Entry {
        let mut entry = Entry::new();
        let level = *metadata.level();
        entry.own("severity", &severity(level));
        let now = DateTime::<Utc>::from(SystemClock.wall());
        entry.own("time", &now.to_rfc3339_opts(SecondsFormat::Nanos, true));
        match fields.get("message").or_else(|| fields.get("event")) {
            Some(text) if text.starts_with('"') => entry.own_json("message", text),
            Some(other) => entry.own("message", &other),
            None => entry.own("message", &format_args!("an event of {}", metadata.target())),
        }
        entry.own("target", &metadata.target());
        if level <= Level::WARN
            && let (Some(file), Some(line)) = (metadata.file(), metadata.line())
        {
            let location = json!({ "file": file, "line": line.to_string() });
            entry.own("logging.googleapis.com/sourceLocation", &location);
        }
        if level == Level::ERROR && self.report_errors {
            entry.own("@type", &REPORTED);
        }
        entry
    }

    /// Joins the entry to the trace that a span names; whether it names one.
    fn join(&self, entry: &mut Entry, span: &Fields) -> bool {
        let [id, span_id, sampled] = TRACE.map(|name| span.get(name));
        let Some(id) = id.and_then(|id| hex(id, 32)) else { return false };
        match &self.project {
            Some(project) => {
                let trace = format_args!("projects/{project}/traces/{id}");
                entry.own("logging.googleapis.com/trace", &trace);
            }
            None => entry.own("logging.googleapis.com/trace", &id),
        }
        if let Some(id) = span_id.and_then(|id| hex(id, 16)) {
            entry.own("logging.googleapis.com/spanId", &id);
        }
        if let Some(sampled) = sampled.filter(|sampled| matches!(*sampled, "true" | "false")) {
            entry.own_json("logging.googleapis.com/trace_sampled", sampled);
        }
        true
    }
}

impl<S, W> Layer<S> for CloudLogging<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        // Read before anything is locked: a value that is shown may log.
        let mut later = Fields::default();
        values.record(&mut later);
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            fields.update(later);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut entry = self.begun(event.metadata(), &fields);
        for (name, value) in fields.iter().filter(|(name, _)| *name != "message") {
            entry.field(name, value);
        }
        let mut joined = false;
        for span in context.event_scope(event).into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<Fields>() else { continue };
            joined = joined || self.join(&mut entry, fields);
            for (name, value) in fields.iter().filter(|(name, _)| !joined || !TRACE.contains(name)) {
                entry.field(name, value);
            }
        }
        // A log that cannot be written has nowhere to say so, and must not stop what it tells of.
        let _ = self.writer.make_writer_for(event.metadata()).write_all(&entry.ended());
    }
}

impl<W> fmt::Debug for CloudLogging<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudLogging")
            .field("project", &self.project)
            .field("report_errors", &self.report_errors)
            .finish_non_exhaustive()
    }
}

/// Cloud Logging's name of a level.
fn severity(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        _ => "DEBUG",
    }
}

/// The text of a piece of JSON that is a string of so many lower-case hex digits.
fn hex(json: &str, length: usize) -> Option<&str> {
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (text.len() == length && digits).then_some(text)
}
