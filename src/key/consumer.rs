//! `Consumer`: the name of a handler.

use std::fmt;
use std::sync::Arc;

use super::InvalidKey;

/// The longest name of a consumer, in characters.
const CONSUMER_LIMIT: usize = 64;
/// Consumers of our own (the key spaces of `serialize` and of the ledger).
const RESERVED: &str = "pushonce-";

/// A named handler: part of every key, log line and metric.
///
/// Two handlers that share a store need two consumers, or the second would silently skip what the
/// first has done. ASCII letters, digits, `-`, `_` and `.`, at most 64 of them; names that begin
/// with `pushonce-` are the library's own.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Consumer(Arc<str>);

impl Consumer {
    /// A consumer of that name.
    ///
    /// # Errors
    /// [`InvalidKey`] if the name is empty, too long, reserved or has another character: give the handler another name.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidKey> {
        let name = name.as_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty()
            || name.len() > CONSUMER_LIMIT
            || !name.chars().all(plain)
            || name.starts_with(RESERVED)
        {
            return Err(InvalidKey::Consumer { name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// One of the library's own key spaces; no user can name it.
    pub(crate) fn reserved(space: &str) -> Self {
        Self(format!("{RESERVED}{space}").into())
    }
}

impl Default for Consumer {
    /// The consumer of a bare text: `default`.
    fn default() -> Self {
        Self("default".into())
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}
