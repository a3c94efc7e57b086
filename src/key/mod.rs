//! Keys: what is done once, and for which consumer.

mod consumer;
mod parts;
#[cfg(any(feature = "submit", feature = "bucket-s3", feature = "bucket-gcs"))]
pub(crate) mod spaces;

use std::cmp::{Ordering, Reverse};
use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use self::consumer::Consumer;
pub(crate) use self::parts::join;
#[cfg(any(feature = "bucket-s3", feature = "bucket-gcs"))]
pub(crate) use self::parts::split;

/// The longest key that is shown in full, in bytes. A record that held more beside it would be a payload.
const SHOWN_LIMIT: usize = 128 * 1024;

/// What is done once: a [`Consumer`] and any text that is not blank.
///
/// The text is opaque: it is compared byte by byte, never normalised, trimmed or cut. A key whose text
/// is personal data can be kept out of logs: [`in_logs`](Self::in_logs).
///
/// ```
/// use pushonce::{IntoKey, Key};
///
/// let key = ("orders", "po-123").into_key()?;
/// assert_eq!(key.to_string(), "orders:po-123");
/// assert_eq!("po-123".into_key()?.consumer().as_str(), "default");
/// assert!(("orders", "  ").into_key().is_err());
/// # Ok::<(), pushonce::InvalidKey>(())
/// ```
#[derive(Clone)]
pub struct Key {
    consumer: Consumer,
    text: Arc<str>,
    in_logs: KeyInLogs,
}

/// How a key is written wherever it is displayed, so in every log line and every error that names it.
///
/// It is no part of the key: stores keep the full text, and keys that differ in this alone are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeyInLogs {
    /// Consumer, colon and text: `orders:po-123`.
    #[default]
    Shown,
    /// The text's place is taken by the first 32 hex digits of the SHA-256 of consumer, colon and
    /// text: `orders:#d6089526...`, which `printf orders:po-123 | sha256sum` finds again. A pseudonym, no
    /// more: whoever can guess the key can check the guess.
    Hashed,
}

impl Key {
    /// A key of that consumer.
    ///
    /// # Errors
    /// [`InvalidKey::Blank`] if the text is empty or white space: refuse the message, never guard it
    /// with a key that unrelated messages share.
    pub fn new(consumer: Consumer, text: impl AsRef<str>) -> Result<Self, InvalidKey> {
        let text = text.as_ref();
        if text.trim().is_empty() {
            return Err(InvalidKey::Blank { consumer });
        }
        Ok(Self { consumer, text: text.into(), in_logs: KeyInLogs::default() })
    }

    /// The same key, displayed in this way from here on.
    ///
    /// ```
    /// use pushonce::{IntoKey, KeyInLogs};
    ///
    /// let key = ("mail", "ada@example.com").into_key()?;
    /// let quiet = key.clone().in_logs(KeyInLogs::Hashed);
    /// assert_eq!(quiet.to_string(), "mail:#352395191fa7384ea6977d2806dfab03");
    /// assert_eq!(quiet, key);
    /// assert_eq!(quiet.text(), "ada@example.com");
    /// # Ok::<(), pushonce::InvalidKey>(())
    /// ```
    pub fn in_logs(self, in_logs: KeyInLogs) -> Self {
        Self { in_logs, ..self }
    }

    /// The named handler that the key belongs to.
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// The text, as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name under which a store keeps the key: at most `limit` bytes, without control characters.
    ///
    /// It starts with four hex digits of a hash, so that rising ids make no hot range; then `=` and
    /// the key, or, where that would be too long or unsafe, `#` and a SHA-256. Nothing is ever cut
    /// off, so distinct keys have distinct names. `limit` must be at least 160.
    pub fn stored_name(&self, limit: usize) -> String {
        let digest = self.digest();
        let mut name = hex(&digest[..2]);
        let plain = name.len() + 2 + self.consumer.as_str().len() + self.text.len() <= limit
            && !self.text.chars().any(char::is_control);
        let mark = if plain { '=' } else { '#' };
        let text = if plain { self.text.to_string() } else { hex(&digest) };
        // Writing into a String cannot fail.
        let _ = write!(name, "{mark}{}:{text}", self.consumer);
        name
    }

    /// The key as it stands beside its record, for people; one that is longer than anybody can mean
    /// by its name.
    pub(crate) fn shown(&self) -> String {
        let full = self.in_full();
        if full.len() > SHOWN_LIMIT { self.stored_name(1500) } else { full }
    }

    /// Consumer, colon and text, however the key is displayed.
    pub(crate) fn in_full(&self) -> String {
        format!("{}:{}", self.consumer, self.text)
    }

    fn pseudonym(&self) -> String {
        format!("#{}", hex(&self.digest()[..16]))
    }

    fn digest(&self) -> [u8; 32] {
        let hash = Sha256::new().chain_update(self.consumer.as_str()).chain_update(":");
        hash.chain_update(&*self.text).finalize().into()
    }

    /// What makes it the key that it is.
    fn identity(&self) -> (&Consumer, &str) {
        (&self.consumer, &self.text)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_logs {
            KeyInLogs::Shown => write!(f, "{}:{}", self.consumer, self.text),
            KeyInLogs::Hashed => write!(f, "{}:{}", self.consumer, self.pseudonym()),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A text of somebody else's, for a log: the texts of those keys that are hashed are hashed there too.
pub(crate) fn hidden<'a>(keys: impl IntoIterator<Item = &'a Key>, text: &str) -> String {
    fn hide(keys: &[&Key], text: &str) -> String {
        let [key, others @ ..] = keys else { return text.to_owned() };
        // The others only between: what took this one's place stays as it is.
        let parts: Vec<_> = text.split(&*key.text).map(|part| hide(others, part)).collect();
        parts.join(&key.pseudonym())
    }
    let mut hashed: Vec<_> = keys.into_iter().filter(|key| key.in_logs == KeyInLogs::Hashed).collect();
    // A short one may stand inside of a longer one, which would not be found any more.
    hashed.sort_by_key(|key| Reverse(key.text.len()));
    hide(&hashed, text)
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whatever names a key: a [`Key`], `("consumer", "text")`, or a bare text of the consumer `default`.
pub trait IntoKey {
    /// The key.
    ///
    /// # Errors
    /// [`InvalidKey`] if the text is blank or the consumer's name is not one.
    fn into_key(self) -> Result<Key, InvalidKey>;
}

impl IntoKey for Key {
    fn into_key(self) -> Result<Key, InvalidKey> {
        Ok(self)
    }
}

impl IntoKey for &Key {
    fn into_key(self) -> Result<Key, InvalidKey> {
        Ok(self.clone())
    }
}

impl IntoKey for &str {
    fn into_key(self) -> Result<Key, InvalidKey> {
        Key::new(Consumer::default(), self)
    }
}

impl IntoKey for String {
    fn into_key(self) -> Result<Key, InvalidKey> {
        self.as_str().into_key()
    }
}

impl<C: AsRef<str>, T: AsRef<str>> IntoKey for (C, T) {
    fn into_key(self) -> Result<Key, InvalidKey> {
        Key::new(Consumer::new(self.0)?, self.1)
    }
}

/// A text or a name that cannot be a key. Nothing was stored and no work was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The text is empty or white space. Refuse the message: such a key would join unrelated messages.
    #[error("the key of consumer `{consumer}` is blank: expected a text that names what is done once")]
    Blank {
        /// Whose key.
        consumer: Consumer,
    },
    /// The consumer's name is not one. Give the handler another name.
    #[error(
        "`{name}` cannot name a consumer: expected 1 to 64 ASCII letters, digits, `-`, `_` or `.`, and not the library's own prefix `pushonce-`"
    )]
    Consumer {
        /// The name as given.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(text: &str) -> Key {
        ("orders", text).into_key().unwrap()
    }

    #[test]
    fn distinct_keys_have_distinct_safe_names() {
        let long = "x".repeat(1999);
        let texts = [
            "a/b",
            "..",
            "__x__",
            "é",
            "e\u{301}",
            "a",
            "a ",
            "A",
            "nul\0",
            "nul",
            &format!("{long}a"),
            &format!("{long}b"),
            &"é".repeat(600),
            &"k".repeat(1500),
            &"k".repeat(1501),
        ];
        let mut names: Vec<_> = texts.iter().map(|text| key(text).stored_name(1500)).collect();
        assert!(names.iter().all(|name| name.len() <= 1500 && !name.contains('\0')), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), texts.len());
    }

    #[test]
    fn a_hashed_key_is_the_same_key_and_shows_its_text_to_no_log() {
        let (shown, hashed) = (key("ada@x.org"), key("ada@x.org").in_logs(KeyInLogs::Hashed));
        assert_eq!(shown, hashed);
        assert_eq!(shown.cmp(&hashed), Ordering::Equal);
        assert_eq!(HashSet::from([shown.clone(), hashed.clone()]).len(), 1);
        assert_eq!(shown.stored_name(1500), hashed.stored_name(1500));
        assert_eq!((hashed.text(), hashed.shown()), ("ada@x.org", shown.to_string()));
        let told = hidden([&hashed], "no route to ada@x.org: ada@x.org is gone");
        for text in [hashed.to_string(), format!("{hashed:?}"), told] {
            assert!(text.contains(&hashed.pseudonym()) && !text.contains("ada"), "{text}");
        }
        assert_eq!(hidden([&shown], "ada@x.org"), "ada@x.org");
    }

    #[test]
    fn a_short_key_is_not_looked_for_in_the_hash_of_another() {
        let hashed = |text: &str| key(text).in_logs(KeyInLogs::Hashed);
        let (long, short) = (hashed("order a of ada@x.org"), hashed("a"));
        for keys in [[&long, &short], [&short, &long]] {
            let told = hidden(keys, "no order a of ada@x.org: a!");
            assert_eq!(told, format!("no {}: {}!", long.pseudonym(), short.pseudonym()));
        }
    }

    #[test]
    fn a_text_cannot_pass_for_the_hash_of_another() {
        let long = key(&"x".repeat(3000));
        let posing = key(long.stored_name(200).split_once(':').unwrap().1);
        assert_ne!(long.stored_name(200), posing.stored_name(200));
    }

    #[test]
    fn a_consumer_is_a_plain_name() {
        for bad in ["", " ", "a b", "a:b", "a/b", "é", "pushonce-serialize", &"c".repeat(65)] {
            assert!(Consumer::new(bad).is_err(), "{bad:?}");
        }
        assert!(Consumer::new("orders.v2_eu-west").is_ok());
    }
}
