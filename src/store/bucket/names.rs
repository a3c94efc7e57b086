//! The names of objects: `{prefix}/{consumer}/{hash of the key}.json`, and submission's, as people look for them.

use object_store::path::{Path, PathPart};

use crate::key::spaces::{self, Space};
use crate::key::{Key, split};

/// Together with the longest consumer and a hash it stays below the 1024 bytes that a name may have.
const PREFIX_LIMIT: usize = 800;
/// The longest folder of a scope, in bytes: what is left beside the longest prefix.
const SCOPE_LIMIT: usize = 140;
/// How much of a scope is shown whose folder would be longer.
const SCOPE_SHOWN: usize = 100;
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
    ///
    /// That of a space of submission is also that of the user's consumer of this name, whose objects lie
    /// beside its folders.
    pub(super) fn folder(&self, consumer: &str) -> Path {
        self.prefix.clone().join(Space::of(consumer).map_or(consumer, |space| space.name()))
    }

    /// The object of a key.
    pub(super) fn of(&self, key: &Key) -> Path {
        let consumer = key.consumer().as_str();
        let hashed = || format!("{}{SUFFIX}", hash(key));
        match Space::of(consumer) {
            None => self.folder(consumer).join(hashed()),
            Some(Space::Idempotency) => self.folder(consumer).join(scope(key.text())).join(hashed()),
            Some(Space::Tasks) if is_id(key.text()) => self.below(&spaces::task(key.text())),
            Some(Space::Tasks) => self.below(&spaces::task(&hash(key))),
        }
    }

    fn below(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), Path::join)
    }

    /// An object that no key has, and that is never written.
    pub(super) fn nobody(&self) -> Path {
        self.prefix.clone().join(NOBODY)
    }

    /// Whether a name is that of a key, and of that consumer if one is named.
    pub(super) fn is_of_a_key(&self, name: &Path, of: Option<&str>) -> bool {
        let parts: Vec<PathPart<'_>> = name.prefix_match(&self.prefix).into_iter().flatten().collect();
        let is_one = match parts.as_slice() {
            [_, _] => of.is_none_or(|consumer| Space::of(consumer).is_none()),
            [folder, _, _] => [Space::Idempotency, Space::Tasks].into_iter().any(|space| {
                folder.as_ref() == space.name()
                    && of.is_none_or(|consumer| Space::of(consumer) == Some(space))
            }),
            _ => false,
        };
        is_one && name.as_ref().ends_with(SUFFIX)
    }
}

/// The hash that names the object of a key, in hex: of consumer, colon and text (no consumer has a colon, so
/// it names one key); of an idempotency key, whose record tells it, of the text alone.
pub(super) fn hash(key: &Key) -> String {
    match Space::of(key.consumer().as_str()) {
        Some(Space::Idempotency) => spaces::hash(key.text()),
        Some(Space::Tasks) | None => spaces::hash(&key.in_full()),
    }
}

/// The folder of an idempotency key: its scope, for people. Two scopes may share one, since the hash beneath
/// names scope and key.
fn scope(text: &str) -> String {
    let scope = split(text).and_then(|parts| parts.first().copied()).unwrap_or(text);
    if !scope.is_empty() && PathPart::from(scope).as_ref().len() <= SCOPE_LIMIT {
        return scope.to_owned();
    }
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    let shown: String = scope.chars().filter(plain).take(SCOPE_SHOWN).collect();
    format!("{shown}={}", &spaces::hash(scope)[..16])
}

/// Whether a text is spelled as the id of a task, and so no hash.
fn is_id(text: &str) -> bool {
    text.len() == 36 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f' | '-'))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::key::{Consumer, IntoKey as _, join};

    const TASK: &str = "0199a3c0-7c1e-7d2a-9f00-0123456789ab";

    fn names() -> Names {
        Names::under("pushonce").unwrap()
    }

    #[test]
    fn the_layout_is_prefix_consumer_hash() {
        let key = ("orders", "po-1").into_key().unwrap();
        let hash = "a19de901db2bd3757edcb47545ffca7ad6418b310af301943081b91d46093e56";
        assert_eq!(names().of(&key).as_ref(), format!("pushonce/orders/{hash}.json"));
        assert!(names().is_of_a_key(&names().of(&key), None));
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

    fn idempotency(scope: &str, key: &str) -> Key {
        Key::new(Space::Idempotency.consumer(), join(&[scope.to_owned(), key.to_owned()])).unwrap()
    }

    fn task(text: &str) -> Key {
        Key::new(Space::Tasks.consumer(), text).unwrap()
    }

    #[test]
    fn an_idempotency_key_lies_under_its_scope_and_a_task_under_its_id() {
        let hash = "1c241490cc43fbae13a0880c8b0fc11eaee6c72a624e8210bbf726c4cf1caccc";
        let of = |key: &Key| names().of(key).to_string();
        assert_eq!(
            of(&idempotency("type:charge", "charge-ORD-123")),
            format!("pushonce/idempotency/type:charge/{hash}.json")
        );
        assert_eq!(of(&task(TASK)), format!("pushonce/tasks/b/{TASK}.json"));
        assert_eq!(of(&task(TASK)), format!("pushonce/{}", spaces::task(TASK)));
    }

    // F68
    #[test]
    fn any_scope_is_a_folder_and_no_two_keys_share_an_object() {
        let long = "é".repeat(128);
        let scopes = [
            "type:a",
            "type:A",
            "..",
            ".",
            "...",
            "a/b",
            "a",
            "a%2Fb",
            "%2E%2E",
            "%",
            "é",
            "nul\0",
            "nul",
            " ",
            "a#b|c",
            "",
            &long,
            &format!("{long}b"),
            &"s".repeat(140),
            &"s".repeat(141),
            &"/".repeat(60),
        ];
        let widest = Names::under(&"p".repeat(PREFIX_LIMIT)).unwrap();
        let mut all = HashSet::new();
        for scope in scopes {
            for key in ["k", "K", "a/b", "..", &"k".repeat(255)] {
                let key = idempotency(scope, key);
                let name = names().of(&key);
                assert!(names().is_of_a_key(&name, None) && widest.of(&key).as_ref().len() <= 1024, "{name}");
                assert_eq!(Path::parse(name.as_ref()).unwrap(), name);
                assert!(name.parts().all(|part| !matches!(part.as_ref(), "" | "." | "..")), "{name}");
                all.insert(name.to_string());
            }
        }
        assert_eq!(all.len(), scopes.len() * 5);
        // Joined in another way, and texts that were not joined at all.
        let odd = ["1.a|3.b:c", "3.a:b|1.c", "a:b:c", "a", "/"];
        let odd =
            odd.map(|text| names().of(&Key::new(Space::Idempotency.consumer(), text).unwrap()).to_string());
        assert_eq!(HashSet::from(odd).len(), 5);
    }

    #[test]
    fn whatever_names_a_task_has_an_object_of_its_own() {
        let hash = hash(&task("a"));
        let texts = [TASK, &TASK.to_uppercase(), &TASK.replace('-', ""), "a", &hash, "..", "a/b", " b", "é"];
        let of = texts.map(|text| names().of(&task(text)));
        assert!(of.iter().all(|name| names().is_of_a_key(name, Some("pushonce-tasks"))), "{of:?}");
        assert_eq!(of.iter().collect::<HashSet<_>>().len(), texts.len());
    }

    #[test]
    fn a_consumer_of_the_name_of_a_space_never_meets_its_objects() {
        let of_a_space = [idempotency("a", "k"), task(TASK)];
        let of_a_user = ["idempotency", "tasks"].map(|consumer| (consumer, TASK).into_key().unwrap());
        for (space, user) in of_a_space.iter().zip(&of_a_user) {
            assert_eq!(names().folder(space.consumer().as_str()), names().folder(user.consumer().as_str()));
            for (one, other) in [(space, user), (user, space)] {
                let name = names().of(one);
                assert!(names().is_of_a_key(&name, Some(one.consumer().as_str())), "{name}");
                assert!(!names().is_of_a_key(&name, Some(other.consumer().as_str())), "{name}");
            }
        }
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
        for name in [
            "pushonce/=check",
            "pushonce/orders/a/b.json",
            "pushonce/orders/a.txt",
            "other/orders/a.json",
            "pushonce/tasks/a/b/c.json",
            "pushonce/idempotency/a/b.txt",
            "pushonce",
        ] {
            assert!(!names().is_of_a_key(&Path::parse(name).unwrap(), None), "{name}");
        }
    }
}
