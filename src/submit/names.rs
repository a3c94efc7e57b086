//! The rules for what a caller may send as a key or a name.

/// The longest key, in bytes: what a header, an attribute and a table bear alike.
const KEY_LIMIT: usize = 255;
/// The longest name of a task type, queue, tenant or custom scope, in bytes, so that a scope fits an attribute.
const NAME_LIMIT: usize = 128;

/// A submission that cannot be: nothing was recorded or published. Answer 400, and let the caller mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSubmission {
    /// The idempotency key is empty, blank, too long, or has control characters.
    #[error(
        "the idempotency key {problem}: expected 1 to 255 bytes that are not blank and have no control characters"
    )]
    Key {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A name is empty, blank, too long, or has control characters.
    #[error(
        "the {what} {problem}: expected 1 to 128 bytes that are not blank and have no control characters"
    )]
    Name {
        /// Which name.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An attribute that the library sets itself, or one that Pub/Sub would refuse.
    #[error("the attribute `{name}` {problem}")]
    Attribute {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The input cannot be written as JSON, or is not JSON.
    #[error("the input is no JSON: {what}")]
    Input {
        /// What is wrong with it, without any of it.
        what: String,
    },
    /// A time is zero or too long.
    #[error("the {what} cannot be meant: expected more than zero and at most a year")]
    Time {
        /// Which time.
        what: &'static str,
    },
}

pub(super) fn key(text: &str) -> Result<(), InvalidSubmission> {
    problem(text, KEY_LIMIT).map_or(Ok(()), |problem| Err(InvalidSubmission::Key { problem }))
}

pub(super) fn name(what: &'static str, text: &str) -> Result<(), InvalidSubmission> {
    problem(text, NAME_LIMIT).map_or(Ok(()), |problem| Err(InvalidSubmission::Name { what, problem }))
}

fn problem(text: &str, limit: usize) -> Option<&'static str> {
    if text.is_empty() {
        Some("is empty")
    } else if text.trim().is_empty() {
        Some("is blank")
    } else if text.len() > limit {
        Some("is too long")
    } else if text.chars().any(char::is_control) {
        Some("has a control character")
    } else {
        None
    }
}
