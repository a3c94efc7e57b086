//! What is logged, read as Cloud Logging's agent reads it: a line, an object, each name once.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use pushonce::telemetry::CloudLogging;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

/// The most that Cloud Logging takes for an entry, in bytes.
pub(crate) const LIMIT: usize = 256 * 1024;

/// All that this thread logs, as long as the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// With the project `p`.
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        Self::through(|layer| layer.project("p"))
    }

    pub(crate) fn through(with: impl FnOnce(CloudLogging) -> CloudLogging) -> (Self, DefaultGuard) {
        // With a single subscriber in the process, an event that is met first by a thread without one is
        // switched off for all threads. So there is always a second.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| {
            Dispatch::new(tracing_subscriber::registry().with(CloudLogging::new().writer(io::sink)))
        });
        let lines = Self::default();
        let writer = lines.clone();
        let layer = with(CloudLogging::new()).writer(move || writer.clone());
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        (lines, guard)
    }

    /// What was written since the last call.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }

    /// The entries since the last call.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.text().split_inclusive('\n').map(Entry::read).collect()
    }

    /// The one entry since the last call.
    pub(crate) fn entry(&self) -> Entry {
        let entries = self.entries();
        let [entry] = &entries[..] else { panic!("expected one entry: {entries:#?}") };
        entry.clone()
    }

    /// The one outcome since the last call.
    pub(crate) fn outcome(&self) -> Entry {
        let entries = self.entries();
        let mut outcomes = entries.iter().filter(|entry| entry.get("event") != &Value::Null);
        let (Some(outcome), None) = (outcomes.next(), outcomes.next()) else {
            panic!("expected one outcome: {entries:#?}")
        };
        outcome.clone()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One entry.
#[derive(Clone)]
pub(crate) struct Entry {
    line: String,
    fields: BTreeMap<String, Value>,
}

impl Entry {
    /// Reads a line, and checks what every entry must have.
    pub(crate) fn read(line: &str) -> Self {
        let text = line.strip_suffix('\n').unwrap_or_else(|| panic!("a line that does not end: {line}"));
        assert!(line.len() <= LIMIT, "{} bytes", line.len());
        assert!(!text.bytes().any(|byte| byte < b' '), "{line}");
        let Object(fields) = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {line}"));
        let entry = Self { line: line.to_owned(), fields };
        assert!(matches!(entry.text("severity"), "DEBUG" | "INFO" | "WARNING" | "ERROR"), "{line}");
        assert!(!entry.text("message").is_empty() && !entry.text("target").is_empty(), "{line}");
        let time = entry.text("time");
        let read = chrono::DateTime::parse_from_rfc3339(time);
        assert!(read.is_ok() && time.ends_with('Z') && time.len() == 30, "nanoseconds in UTC: {time}");
        entry
    }

    /// A field; null where there is none.
    pub(crate) fn get(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// A field's text; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_default()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.fields.keys().map(String::as_str).collect()
    }

    pub(crate) fn trace(&self) -> &str {
        self.text("logging.googleapis.com/trace")
    }

    /// Whether the whole line has that text anywhere.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.line.contains(text)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// An object in which a name that comes twice is an error, as it is to the agent.
struct Object(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.insert(name.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("`{name}` comes twice")));
                    }
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
