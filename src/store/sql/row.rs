//! A record as a row of the table, and back.

use std::time::Duration;

use super::dialect::{Row, Value};
use crate::key::Key;
use crate::store::{Record, StoreError, Stored, Version, document};

/// The longest name of a key in the table, in bytes; a longer key goes by its hash. So the index stays
/// small, and within what every version of MySQL takes.
const NAME_LIMIT: usize = 255;
/// In microseconds, a thousand years: some databases count no further than the year 9999.
const LONGEST: u64 = 1000 * 365 * 24 * 60 * 60 * 1_000_000;

pub(super) fn name(key: &Key) -> String {
    key.stored_name(NAME_LIMIT)
}

/// What a swap writes, and over which token.
#[derive(Debug)]
pub(super) struct Put<'a> {
    name: String,
    pub(super) token: String,
    document: String,
    /// From the write to the end of its retention, since only the server's clock says when that is.
    kept: i64,
    seen: Option<&'a str>,
}

impl<'a> Put<'a> {
    pub(super) fn new(key: &Key, seen: Option<&'a Version>, next: &Record) -> Result<Self, StoreError> {
        let seen = seen.map(|version| version.as_text().ok_or_else(foreign)).transpose()?;
        let kept = next.expires.saturating_sub(next.written).min(LONGEST);
        Ok(Self {
            name: name(key),
            token: next.token.to_string(),
            document: document::encode(key, next)?,
            kept: i64::try_from(kept).unwrap_or(i64::MAX),
            seen,
        })
    }

    /// A write over what never stands: the name of every key has a `=` or a `#`.
    pub(super) fn nowhere() -> Self {
        let nothing = String::new;
        Self { name: "check".to_owned(), token: nothing(), document: nothing(), kept: 0, seen: Some("") }
    }

    pub(super) fn values(&self) -> Vec<Value<'_>> {
        let texts = [&self.name, &self.token, &self.document].map(|text| Value::Text(text));
        texts.into_iter().chain([Value::Number(self.kept)]).chain(self.seen.map(Value::Text)).collect()
    }
}

/// What stands, as its row has it.
pub(super) fn stored(
    row: Row,
    decode: impl FnOnce(&str) -> Result<Record, StoreError>,
) -> Result<Stored, StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt { what: what.to_owned() };
    let [_, Some(token), Some(document), Some(age)] =
        <[Option<String>; 4]>::try_from(row).unwrap_or_default()
    else {
        return Err(corrupt("a row without a token, a document or a time"));
    };
    let age = age.parse().map_err(|_| corrupt("a row whose age is not a number"))?;
    Ok(Stored { record: decode(&document)?, version: Version::text(token), age: Duration::from_micros(age) })
}

fn foreign() -> StoreError {
    StoreError::Refused {
        what: "the version is not one of this store: give back what `read` or `swap` gave".to_owned(),
        source: None,
    }
}
