//! JSON one level at a time: what is not looked at stays a slice of the body.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::refused::Refused;

/// The most members of an object whose names are the sender's: ten times what Pub/Sub allows, so that
/// no message is refused, and too few to make a small body fill the memory.
pub(super) const MEMBERS: usize = 1000;

/// Reads one level of an object. `otherwise` is what is wrong if it is JSON, but no such object.
pub(super) fn object<'a, T: Deserialize<'a>>(json: &'a [u8], otherwise: Refused) -> Result<T, Refused> {
    // Checked once for the whole, and not again for each part of it.
    let json = std::str::from_utf8(json).map_err(|error| {
        let valid = &json[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Refused::NotJson { line, column: valid.iter().rev().take_while(|byte| **byte != b'\n').count() }
    })?;
    match serde_json::from_str(json) {
        Ok(Object(value)) => Ok(value),
        Err(error) if error.classify() == Category::Data => Err(otherwise),
        Err(error) => Err(Refused::NotJson { line: error.line(), column: error.column() }),
    }
}

/// A member that is there, also where it is `null`: a null `message` is not an absent one.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// A struct of an object only: serde reads one from an array too, and `[]` would pass for `{}`.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<Self, D::Error> {
        object.deserialize_map(Members(PhantomData)).map(Object)
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// `None` where a value is absent or `null`, which the same senders use for the same thing.
pub(super) fn known(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get() != "null")
}

/// A string, without its escapes. Most have none and stay where they lie.
pub(super) fn text<'a>(field: &'static str, value: &'a RawValue) -> Result<Cow<'a, str>, Refused> {
    let plain = value.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match plain.filter(|text| !text.contains('\\')) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => serde_json::from_str(value.get())
            .map(Cow::Owned)
            .map_err(|_| Refused::Field { field, expected: "a string" }),
    }
}

/// One text in two spellings, which must agree where both came.
pub(super) fn either(
    field: &'static str,
    spellings: [Option<&RawValue>; 2],
) -> Result<Option<Arc<str>>, Refused> {
    match spellings.map(known) {
        // Pub/Sub writes both in the same way.
        [Some(one), Some(other)] if one.get() != other.get() => {
            let (one, other) = (text(field, one)?, text(field, other)?);
            if one == other { Ok(Some(one.into())) } else { Err(Refused::twice(field)) }
        }
        [Some(one), _] | [None, Some(one)] => text(field, one).map(|text| Some(text.into())),
        [None, None] => Ok(None),
    }
}

/// What stands between the quotes of a string, as a slice of `body`; `None` if it is no string.
pub(super) fn quoted(body: &Bytes, value: &RawValue) -> Option<Bytes> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    Some(body.slice_ref(inner.as_bytes()))
}

/// All members of an object, unread.
pub(super) struct Fields<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<Self, D::Error> {
        object.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {MEMBERS} members")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            if members.len() == MEMBERS {
                return Err(A::Error::custom("too many members"));
            }
            members.push(member);
        }
        Ok(Fields(members))
    }
}
