//! A record as a Datastore entity, and back.

use std::collections::HashMap;
use std::time::Duration;

use gcloud_sdk::google::datastore::v1::key::PathElement;
use gcloud_sdk::google::datastore::v1::key::path_element::IdType;
use gcloud_sdk::google::datastore::v1::value::ValueType;
use gcloud_sdk::prost_types::Timestamp;

use super::pb;
use crate::key::Key;
use crate::store::record::State;
use crate::store::{Record, StoreError, Version, belongs};

/// The longest name of an entity, in bytes, by the limits page of Datastore.
const NAME_LIMIT: usize = 1500;
/// The last second of the year 9999, after which Datastore takes no timestamp.
const LAST_SECOND: u64 = 253_402_300_799;

/// Where a store keeps its entities.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) project: String,
    /// Empty for the default database, as the API spells it.
    pub(super) database: String,
    pub(super) namespace: String,
    pub(super) kind: String,
}

impl Space {
    pub(super) fn partition(&self) -> pb::PartitionId {
        pb::PartitionId {
            project_id: self.project.clone(),
            database_id: self.database.clone(),
            namespace_id: self.namespace.clone(),
        }
    }

    pub(super) fn key(&self, name: String) -> pb::Key {
        let path = vec![PathElement { kind: self.kind.clone(), id_type: Some(IdType::Name(name)) }];
        pb::Key { partition_id: Some(self.partition()), path }
    }

    /// The whole entity: the document that counts, and what people and garbage collection look at.
    pub(super) fn entity(&self, key: &Key, record: &Record) -> Result<pb::Entity, StoreError> {
        let document = String::from_utf8(record.encode()?).map_err(|error| StoreError::Refused {
            what: "the record cannot be encoded as a text".to_owned(),
            source: Some(error.into()),
        })?;
        let state = match record.state {
            State::Claimed => "claimed",
            State::Released => "released",
            State::Done => "done",
        };
        let properties = HashMap::from([
            ("record".to_owned(), unindexed(ValueType::StringValue(document))),
            ("key".to_owned(), unindexed(ValueType::StringValue(key.shown()))),
            ("state".to_owned(), unindexed(ValueType::StringValue(state.to_owned()))),
            ("written_at".to_owned(), unindexed(ValueType::TimestampValue(timestamp(record.written)))),
            ("expires_at".to_owned(), unindexed(ValueType::TimestampValue(timestamp(record.expires)))),
        ]);
        Ok(pb::Entity { key: Some(self.key(name(key))), properties })
    }
}

/// The record of an entity that was found under a key.
pub(super) fn record(key: &Key, entity: &pb::Entity) -> Result<Record, StoreError> {
    // The format before the key: a newer major version may keep its keys in another way.
    let record = any_record(entity)?;
    belongs(key, text(entity, "key")?)?;
    Ok(record)
}

/// The record of an entity, whatever its key.
pub(super) fn any_record(entity: &pb::Entity) -> Result<Record, StoreError> {
    Record::decode(text(entity, "record")?.as_bytes())
}

/// The key of an entity as it is shown; where it does not say, its name.
pub(super) fn shown(entity: &pb::Entity) -> String {
    let named = || match entity.key.as_ref()?.path.last()?.id_type.as_ref()? {
        IdType::Name(name) => Some(name.clone()),
        IdType::Id(id) => Some(id.to_string()),
    };
    text(entity, "key").map_or_else(|_| named().unwrap_or_default(), str::to_owned)
}

fn text<'a>(entity: &'a pb::Entity, property: &str) -> Result<&'a str, StoreError> {
    match entity.properties.get(property).and_then(|value| value.value_type.as_ref()) {
        Some(ValueType::StringValue(text)) => Ok(text),
        _ => Err(StoreError::Corrupt { what: format!("an entity without the text property `{property}`") }),
    }
}

/// The name of the entity of a key.
pub(super) fn name(key: &Key) -> String {
    key.stored_name(NAME_LIMIT)
}

/// The version of an entity, which Datastore counts from one.
pub(super) fn version(number: i64) -> Option<Version> {
    u64::try_from(number).ok().filter(|number| *number > 0).map(Version::number)
}

/// The base version of an update.
pub(super) fn base(version: &Version) -> Result<i64, StoreError> {
    let number = version.as_number().and_then(|number| i64::try_from(number).ok());
    number.ok_or_else(|| StoreError::Refused {
        what: "the version is not one of this store: give back what `read` or `swap` gave".to_owned(),
        source: None,
    })
}

/// Time from the update to the read, by the server's clock; `None` if it told one of them not.
pub(super) fn age(read: Option<&Timestamp>, updated: Option<&Timestamp>) -> Option<Duration> {
    Some(since_epoch(read?).saturating_sub(since_epoch(updated?)))
}

pub(super) fn since_epoch(time: &Timestamp) -> Duration {
    Duration::new(u64::try_from(time.seconds).unwrap_or(0), u32::try_from(time.nanos).unwrap_or(0))
}

// Indexes would cost writes, and a rising indexed timestamp makes a hot range.
fn unindexed(value: ValueType) -> pb::Value {
    pb::Value { exclude_from_indexes: true, value_type: Some(value), ..pb::Value::default() }
}

fn timestamp(micros: u64) -> Timestamp {
    let seconds = (micros / 1_000_000).min(LAST_SECOND);
    // Both are in range: the seconds are capped above, the nanoseconds are below 10^9.
    Timestamp {
        seconds: i64::try_from(seconds).unwrap_or(0),
        nanos: i32::try_from(micros % 1_000_000 * 1_000).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: i32) -> Timestamp {
        Timestamp { seconds, nanos }
    }

    #[test]
    fn age_is_the_servers_and_never_below_zero() {
        let age = |read: &Timestamp, updated: &Timestamp| age(Some(read), Some(updated)).unwrap();
        assert_eq!(age(&at(10, 500_000_000), &at(9, 750_000_000)), Duration::from_millis(750));
        assert_eq!(age(&at(9, 0), &at(10, 0)), Duration::ZERO);
        assert_eq!(super::age(None, Some(&at(1, 0))), None);
        assert_eq!(super::age(Some(&at(1, 0)), None), None);
    }

    #[test]
    fn a_timestamp_keeps_microseconds_and_ends_with_the_year_9999() {
        assert_eq!(timestamp(1_500_001), at(1, 500_001_000));
        assert_eq!(timestamp(u64::MAX).seconds, 253_402_300_799);
    }

    #[test]
    fn a_version_is_positive_and_comes_back_as_the_base() {
        assert_eq!(version(0), None);
        assert_eq!(version(-1), None);
        assert_eq!(base(&version(42).unwrap()).unwrap(), 42);
        assert!(base(&Version::text("etag")).is_err());
        assert!(base(&Version::number(u64::MAX)).is_err());
    }
}
