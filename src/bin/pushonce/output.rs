//! What goes out: texts that change nothing at a terminal, JSON, and errors in one line.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::HumanDuration;
use serde::Serialize;

use crate::{Answer, Failed};

/// Whether a terminal would do something else with a character than show it: control characters, and
/// those that turn the direction of a line.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text of somebody else's for people, with such characters escaped.
pub(crate) fn plain(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut plain, c| {
        if is_unsafe(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
        plain
    })
}

/// The same in JSON, where what is left by serde stands in texts only.
fn escaped(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut escaped, c| {
        if is_unsafe(c) && c != '\n' {
            // Writing into a String cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
        escaped
    })
}

/// One document.
pub(crate) fn document(what: &impl Serialize) -> Result<String, Failed> {
    Ok(escaped(&serde_json::to_string_pretty(what)?) + "\n")
}

/// One object in one line.
pub(crate) fn line(what: &impl Serialize) -> Result<String, Failed> {
    Ok(escaped(&serde_json::to_string(what)?) + "\n")
}

/// A document, or the text for people.
pub(crate) fn answer(
    json: bool,
    what: &impl Serialize,
    text: impl FnOnce() -> String,
    refused: bool,
) -> Result<Answer, Failed> {
    let text = if json { document(what)? } else { text() };
    Ok(Answer { text, refused })
}

/// Whoever reads may have seen enough (`| head`): that is no error, but nothing more is to be written.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<ControlFlow<()>> {
    match written {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error),
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Drivers repeat what they wrap.
        if !line.contains(&cause_text) {
            line = format!("{line}: {cause_text}");
        }
        source = cause.source();
    }
    plain(&line)
}

/// The same, to stderr. Nobody is left to be told that it cannot be written.
pub(crate) fn complain(error: &dyn Error) {
    let _ = writeln!(io::stderr(), "pushonce: {}", chain(error));
}

/// A refusal on stderr, where stdout is for something else.
pub(crate) fn refuse(why: &str) -> Answer {
    complain(&*Failed::from(why.trim_end().to_owned()));
    Answer { text: String::new(), refused: true }
}

/// A time of the library's: microseconds since the Unix epoch.
pub(crate) fn time(micros: u64) -> Option<DateTime<Utc>> {
    i64::try_from(micros).ok().and_then(DateTime::from_timestamp_micros)
}

/// A time for people, to the second.
pub(crate) fn moment(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(|| "?".to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// A length for people, in one unit.
pub(crate) fn length(length: Duration) -> String {
    format!("{:#}", HumanDuration(length))
}
