//! The names of objects: `{prefix}/{consumer}/{hash of the key}.json`.

use object_store::path::Path;
use sha2::{Digest as _, Sha256};

use crate::key::{Key, hex};

/// Together with the longest consumer and a hash it stays below the 1024 bytes that a name may have.
const PREFIX_LIMIT: usize = 800;
/// No consumer has a `=` in its name, so this is never the folder of one.
const NOBODY: &str = "=check";
const SUFFIX: &str = ".json";

/// Where a store keeps its objects.
#[derive(Debug, Clone)]
pub(super) struct Names {
    prefix: Path,
}

impl Names {
    /// Names under that prefix; `None` if it is not one.
    pub(super) fn under(prefix: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let fits = prefix.len() <= PREFIX_LIMIT && prefix.chars().all(plain);
        // Refuses `..` and empty segments.
        let prefix = Path::parse(prefix).ok().filter(|prefix| fits && !prefix.is_root())?;
        Some(Self { prefix })
    }

    /// The prefix itself: all that the store has.
    pub(super) fn all(&self) -> &Path {
        &self.prefix
    }

    /// The folder of a consumer. One that is named `..` is percent-encoded.
    pub(super) fn folder(&self, consumer: &str) -> Path {
        self.prefix.clone().join(consumer)
    }

    /// The object of a key.
    pub(super) fn of(&self, key: &Key) -> Path {
        self.folder(key.consumer().as_str()).join(format!("{}{SUFFIX}", hash(key)))
    }

    /// An object that no key has, and that is never written.
    pub(super) fn nobody(&self) -> Path {
        self.prefix.clone().join(NOBODY)
    }

    /// Whether a name under the prefix is that of a key.
    pub(super) fn is_of_a_key(&self, name: &Path) -> bool {
        let parts = name.prefix_match(&self.prefix).map(Iterator::count);
        parts == Some(2) && name.as_ref().ends_with(SUFFIX)
    }
}

/// The SHA-256 of consumer, colon and text, in hex. No consumer has a colon, so it names one key.
pub(super) fn hash(key: &Key) -> String {
    let digest = Sha256::new()
        .chain_update(key.consumer().as_str())
        .chain_update(":")
        .chain_update(key.text())
        .finalize();
    hex(&digest)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::key::{Consumer, IntoKey as _};

    fn names() -> Names {
        Names::under("pushonce").unwrap()
    }

    #[test]
    fn the_layout_is_prefix_consumer_hash() {
        let key = ("orders", "po-1").into_key().unwrap();
        let hash = "a19de901db2bd3757edcb47545ffca7ad6418b310af301943081b91d46093e56";
        assert_eq!(names().of(&key).as_ref(), format!("pushonce/orders/{hash}.json"));
        assert!(names().is_of_a_key(&names().of(&key)));
    }

    // F68
    #[test]
    fn every_key_has_a_name_of_its_own() {
        let long = "x".repeat(1999);
        let texts = [
            "a/b",
            "..",
            "a",
            "A",
            "a ",
            "nul\0",
            "nul",
            "é",
            "e\u{301}",
            &format!("{long}a"),
            &format!("{long}b"),
        ];
        let of = |consumer: &str, text: &str| names().of(&(consumer, text).into_key().unwrap()).to_string();
        let mut all: HashSet<_> = texts.iter().map(|text| of("orders", text)).collect();
        // Case pairs, dots, and a consumer that is spelled as the encoding of another.
        all.extend(["Orders", "..", ".", "...", "2E2E"].map(|consumer| of(consumer, "a")));
        let reserved = Key::new(Consumer::reserved("serialize"), "a").unwrap();
        all.insert(names().of(&reserved).to_string());
        assert_eq!(all.len(), texts.len() + 6);
        assert!(all.iter().all(|name| name.len() <= 1024 && !name.split('/').any(|part| part == "..")));
    }

    #[test]
    fn a_prefix_is_a_plain_path_and_leaves_room_for_a_name() {
        for prefix in ["pushonce", "a/b-c_d.e", "a/", &"p".repeat(PREFIX_LIMIT)] {
            let names = Names::under(prefix).unwrap_or_else(|| panic!("{prefix}"));
            let key = ("c".repeat(64), "k").into_key().unwrap();
            assert!(names.of(&key).as_ref().len() <= 1024, "{prefix}");
        }
        for prefix in ["", "/", "a//b", "..", "a/../b", "a b", "é", "a?b", &"p".repeat(PREFIX_LIMIT + 1)] {
            assert!(Names::under(prefix).is_none(), "{prefix}");
        }
    }

    #[test]
    fn what_lies_about_is_no_key() {
        for name in
            ["pushonce/=check", "pushonce/orders/a/b.json", "pushonce/orders/a.txt", "other/orders/a.json"]
        {
            assert!(!names().is_of_a_key(&Path::parse(name).unwrap()), "{name}");
        }
    }
}
