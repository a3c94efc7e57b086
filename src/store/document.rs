//! The document that a store keeps for a key: the record, and the key in full beside it.

use serde::{Deserialize, Serialize};

use super::{Record, StoreError, belongs, record};
use crate::key::Key;

/// The document of a key and its record, as JSON.
pub(super) fn encode(key: &Key, record: &Record) -> Result<String, StoreError> {
    #[derive(Serialize)]
    struct Written<'a> {
        key: &'a str,
        #[serde(flatten)]
        record: &'a Record,
    }
    record.fits()?;
    serde_json::to_string(&Written { key: &key.shown(), record }).map_err(|error| StoreError::Refused {
        what: "the record cannot be encoded".to_owned(),
        source: Some(error.into()),
    })
}

/// The record of a document that was found under the key's name.
pub(super) fn decode(key: &Key, document: &str) -> Result<Record, StoreError> {
    let (found, record) = parse(document)?;
    belongs(key, &found)?;
    Ok(record)
}

/// What a document holds: the key as it is shown, and the record.
pub(super) fn parse(document: &str) -> Result<(String, Record), StoreError> {
    #[derive(Deserialize)]
    struct Read {
        key: String,
        #[serde(flatten)]
        record: Record,
    }
    record::readable(document.as_bytes())?;
    let Read { key, record } =
        serde_json::from_str(document).map_err(|error| StoreError::Corrupt { what: error.to_string() })?;
    Ok((key, record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::IntoKey as _;

    const DOCUMENT: &str = r#"{"key":"orders:a\u0000b","format":100,"state":"claimed","verb":"lock","fence":7,
        "token":"01","lease_us":1,"ttl_us":2,"ended":"fresh","written_us":3,"expires_us":4,"colour":"blue"}"#;

    #[test]
    fn a_document_comes_back_without_its_key_among_the_unknown_fields() {
        let key = ("orders", "a\0b").into_key().unwrap();
        let record = decode(&key, DOCUMENT).unwrap();
        assert_eq!(record.unknown.keys().collect::<Vec<_>>(), ["colour"]);
        assert_eq!(decode(&key, &encode(&key, &record).unwrap()).unwrap(), record);
    }

    #[test]
    fn a_document_of_another_key_is_corrupt_and_a_newer_one_is_newer_whatever_its_key() {
        let other = ("orders", "ab").into_key().unwrap();
        assert!(matches!(decode(&other, DOCUMENT), Err(StoreError::Corrupt { .. })));
        assert!(matches!(decode(&other, r#"{"format":200}"#), Err(StoreError::NewerFormat { .. })));
    }
}
