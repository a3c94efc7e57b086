//! One entry of Cloud Logging: an object of JSON on one line, each name once, bounded.

use std::borrow::Cow;

use serde::Serialize;

/// The most that the fields of an entry come to, in bytes: below the 256 KB of Cloud Logging by what an
/// entry has besides.
pub(super) const ENTRY_LIMIT: usize = 200 * 1024;
/// What Cloud Logging's agent takes out of an entry's fields for itself, and what we write ourselves.
/// <https://cloud.google.com/logging/docs/structured-logging#structured_logging_special_fields>
const RESERVED: [&str; 7] =
    ["@type", "fields_left_out", "httpRequest", "message", "severity", "target", "time"];
const RESERVED_PREFIXES: [&str; 2] = ["logging.googleapis.com/", "timestamp"];

/// An entry that is being written.
#[derive(Debug)]
pub(super) struct Entry {
    line: Vec<u8>,
    names: Vec<Cow<'static, str>>,
    left_out: usize,
}

impl Entry {
    pub(super) fn new() -> Self {
        let mut line = Vec::with_capacity(1024);
        line.push(b'{');
        Self { line, names: Vec::with_capacity(24), left_out: 0 }
    }

    /// Adds what an entry has by itself.
    pub(super) fn own(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        write_json(&mut self.line, value);
    }

    /// The same, of a value that is JSON already.
    pub(super) fn own_json(&mut self, name: &'static str, value: &str) {
        self.name(name);
        self.line.extend_from_slice(value.as_bytes());
    }

    /// Adds a field, if none of its name is there. One that would be taken for something else gets
    /// another name; one that there is no room for is counted.
    pub(super) fn field(&mut self, name: &'static str, value: &str) {
        let reserved =
            RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let name = if reserved { Cow::Owned(format!("{name}_")) } else { Cow::Borrowed(name) };
        if self.names.contains(&name) {
            return;
        }
        if self.line.len() + name.len() + value.len() > ENTRY_LIMIT {
            self.left_out += 1;
            return;
        }
        self.name(&name);
        self.line.extend_from_slice(value.as_bytes());
        self.names.push(name);
    }

    /// The line.
    pub(super) fn ended(mut self) -> Vec<u8> {
        if self.left_out > 0 {
            let count = self.left_out;
            self.own("fields_left_out", &count);
        }
        self.line.extend_from_slice(b"}\n");
        self.line
    }

    fn name(&mut self, name: &str) {
        if self.line.len() > 1 {
            self.line.push(b',');
        }
        write_json(&mut self.line, &name);
        self.line.push(b':');
    }
}

/// Newlines and all other control characters come out escaped, so that a line stays one.
fn write_json(line: &mut Vec<u8>, value: &impl Serialize) {
    // Writing into a Vec cannot fail, and nothing that is written here can fail to be JSON.
    let _ = serde_json::to_writer(line, value);
}
