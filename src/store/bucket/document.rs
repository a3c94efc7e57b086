//! The document of an object: what every store keeps of a key, and what people want to read beside it.

use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::names;
use crate::key::Key;
use crate::key::spaces::Space;
use crate::store::{Record, StoreError, document};

const KEY_HASH: &str = "key_hash";
const WRITTEN_AT: &str = "written_at";
const EXPIRES_AT: &str = "expires_at";
const SHOWN: &str = "shown";

/// The document of a key and its record, as JSON in lines.
pub(super) fn encode(key: &Key, record: &Record) -> Result<String, StoreError> {
    let text = document::encode(key, record)?;
    let shown = [
        (KEY_HASH, Some(format!("sha256:{}", names::hash(key)).into())),
        (WRITTEN_AT, rfc3339(record.written)),
        (EXPIRES_AT, rfc3339(record.expires)),
        (SHOWN, data(key, record)),
    ];
    let in_lines = || {
        let mut document: Map<String, Value> = serde_json::from_str(&text)?;
        let shown = shown.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        document.extend(shown);
        serde_json::to_string_pretty(&document)
    };
    in_lines().map_err(|error| StoreError::Refused {
        what: "the record cannot be encoded".to_owned(),
        source: Some(error.into()),
    })
}

/// The record of a document that was found under the key's name.
pub(super) fn decode(key: &Key, body: &[u8]) -> Result<Record, StoreError> {
    document::decode(key, text(body)?).map(without_shown)
}

/// What a document holds: the key as it is shown, and the record.
pub(super) fn parse(body: &[u8]) -> Result<(String, Record), StoreError> {
    let (key, record) = document::parse(text(body)?)?;
    Ok((key, without_shown(record)))
}

/// The key of a document whose record is not understood.
pub(super) fn key(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Shown {
        key: String,
    }
    serde_json::from_slice(body).ok().map(|Shown { key }| key)
}

fn text(body: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(body).map_err(|error| StoreError::Corrupt { what: error.to_string() })
}

/// What is there for people alone is no part of the record.
fn without_shown(mut record: Record) -> Record {
    for name in [KEY_HASH, WRITTEN_AT, EXPIRES_AT, SHOWN] {
        record.unknown.remove(name);
    }
    record
}

/// A time as people read it; `None` beyond the years that have a name.
fn rfc3339(micros: u64) -> Option<Value> {
    let time = DateTime::from_timestamp_micros(i64::try_from(micros).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Micros, true).into())
}

/// What the record of a submission holds, which is JSON and no payload. Of other keys nobody knows that.
fn data(key: &Key, record: &Record) -> Option<Value> {
    Space::of(key.consumer().as_str())?;
    serde_json::from_slice(&record.data).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::key::{Consumer, IntoKey as _};

    fn key() -> Key {
        ("orders", "po-1").into_key().unwrap()
    }

    fn record() -> Record {
        let document = r#"{"format":101,"state":"done","verb":"lock","fence":7,"token":"01","lease_us":1,
            "ttl_us":2,"ended":"fresh","written_us":1700000000000001,"expires_us":1800000000000000,"colour":"blue"}"#;
        Record::decode(document.as_bytes()).unwrap()
    }

    #[test]
    fn people_read_key_hash_state_and_times() {
        let document: Value = serde_json::from_str(&encode(&key(), &record()).unwrap()).unwrap();
        assert_eq!(document["key"], json!("orders:po-1"));
        assert_eq!(document["key_hash"], json!(format!("sha256:{}", names::hash(&key()))));
        assert_eq!(document["state"], json!("done"));
        assert_eq!(document["written_at"], json!("2023-11-14T22:13:20.000001Z"));
        assert_eq!(document["expires_at"], json!("2027-01-15T08:00:00.000000Z"));
    }

    #[test]
    fn what_people_read_is_not_among_the_unknown_fields() {
        let back = decode(&key(), encode(&key(), &record()).unwrap().as_bytes()).unwrap();
        assert_eq!(back, record());
        assert_eq!(back.unknown.keys().collect::<Vec<_>>(), ["colour"]);
        let far = Record { written: u64::MAX, expires: 0, ..record() };
        assert_eq!(decode(&key(), encode(&key(), &far).unwrap().as_bytes()).unwrap(), far);
    }

    #[test]
    fn people_read_the_data_of_a_submission_and_of_nothing_else() {
        let of = |key: &Key, data: &'static str| {
            let record = Record { data: data.into(), ..record() };
            let document = encode(key, &record).unwrap();
            assert_eq!(decode(key, document.as_bytes()).unwrap(), record);
            assert_eq!(parse(document.as_bytes()).unwrap(), (key.shown(), record));
            serde_json::from_str::<Value>(&document).unwrap().get("shown").cloned()
        };
        for space in [Space::Idempotency, Space::Tasks] {
            let key = Key::new(space.consumer(), "a").unwrap();
            assert_eq!(of(&key, r#"{"state":"creating"}"#), Some(json!({ "state": "creating" })));
            assert_eq!(of(&key, "no JSON"), None);
        }
        let entry = Key::new(Consumer::reserved("dead-letters"), "a").unwrap();
        for key in [key(), entry] {
            assert_eq!(of(&key, r#"{"state":"creating"}"#), None);
        }
    }

    #[test]
    fn an_object_of_another_key_or_of_no_record_is_corrupt() {
        let other = ("orders", "po-2").into_key().unwrap();
        let document = encode(&key(), &record()).unwrap();
        for body in [document.as_bytes(), b"", b"\xff", b"{}", b"[]"] {
            assert!(matches!(decode(&other, body), Err(StoreError::Corrupt { .. })), "{body:?}");
        }
        assert!(matches!(decode(&other, br#"{"format":200}"#), Err(StoreError::NewerFormat { .. })));
    }
}
