//! JSON Pointer (RFC 6901), walked through the text: what lies beside the path is skipped, not built.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The names on a pointer's path, or what is wrong with the pointer.
pub(super) fn parse(pointer: &str) -> Result<Vec<String>, &'static str> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let path = pointer.strip_prefix('/').ok_or("a JSON pointer begins with `/`")?;
    path.split('/').map(unescape).collect()
}

fn unescape(token: &str) -> Result<String, &'static str> {
    let mut pieces = token.split('~');
    let mut name = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (escaped, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', &piece[1..]),
            Some(b'1') => ('/', &piece[1..]),
            _ => return Err("in a JSON pointer `~` is written `~0`, and `/` in a name `~1`"),
        };
        name.push(escaped);
        name.push_str(rest);
    }
    Ok(name)
}

/// The string, number or boolean at the end of the path, as text; `None` for everything else, and
/// for data that is not JSON.
///
/// A number is the text that the sender wrote, so that none is rounded: `1.0` is not `1`. Of a name
/// that comes twice the last counts, as it does for most parsers.
pub(super) fn find(data: &[u8], path: &[String]) -> Option<String> {
    let mut value: &RawValue = serde_json::from_slice(data).ok()?;
    for name in path {
        value = Member(name).deserialize(&mut serde_json::Deserializer::from_str(value.get())).ok()??;
    }
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.get().to_owned()),
    }
}

/// One member of an object or an array.
struct Member<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(Is(self.0))? {
            if is_it {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let index = self.0.parse().ok().filter(|index: &usize| index.to_string() == self.0);
        let mut found = None;
        let mut at = 0;
        while let Some(value) = seq.next_element()? {
            if Some(at) == index {
                found = Some(value);
            }
            at += 1;
        }
        Ok(found)
    }
}

/// Whether a name is the one that is looked for. Compares where it lies, without a copy.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(data: &str, pointer: &str) -> Option<String> {
        find(data.as_bytes(), &parse(pointer).unwrap())
    }

    #[test]
    fn the_samples_of_the_standard() {
        let data =
            r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, expected) in [
            ("/foo/0", "bar"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(at(data, pointer).as_deref(), Some(expected), "{pointer}");
        }
        for pointer in ["", "/foo", "/foo/2", "/foo/-", "/foo/00", "/foo/+0", "/foo/0/x", "/none", "/foo/bar"]
        {
            assert_eq!(at(data, pointer), None, "{pointer}");
        }
    }

    #[test]
    fn a_pointer_that_is_none_is_said_to_be_none() {
        for pointer in ["order/id", "/a~", "/a~2b", "#/a"] {
            assert!(parse(pointer).is_err(), "{pointer}");
        }
        assert_eq!(parse("/~01").unwrap(), ["~1"]);
    }

    #[test]
    fn numbers_are_never_rounded_and_the_last_of_two_counts() {
        assert_eq!(
            at(r#"{"n":123456789012345678901234567890}"#, "/n").unwrap(),
            "123456789012345678901234567890"
        );
        assert_eq!(at(r#"{"n":1,"n":2}"#, "/n").unwrap(), "2");
        assert_eq!(at(r#"{"n":1"#, "/n"), None);
        assert_eq!(at(r#"{"n":1} x"#, "/n"), None);
        assert_eq!(at(r#""only""#, "").unwrap(), "only");
    }
}
