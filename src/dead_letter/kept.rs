//! The record of a dead letter, under its id.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::DeadLetterEntry;
use crate::key::{Consumer, Key};
use crate::lease::{Amend, Place, Stamp, Status, higher};
use crate::store::record::{DATA_LIMIT, Record, State, Verb};
use crate::store::{Store, StoreError, Stored};
use crate::time::Clock;

/// How long a dead letter is kept: 30 days, as long as anybody can mean to decide about it.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// What is left free of a record, in bytes, so that it can be told later how the dead letter was redriven.
const ROOM: usize = 4 * 1024;
/// What every id begins with.
pub(super) const MARK: &str = "dl-";
/// The hex digits of an id.
pub(super) const DIGITS: usize = 32;

/// The key space of the entries.
pub(super) fn space() -> Consumer {
    Consumer::reserved("dead-letters")
}

/// Where the entry of that id stands; `None` for what is no id.
pub(super) fn place(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, id: &str) -> Option<Place> {
    let digits = id.strip_prefix(MARK)?;
    if digits.len() != DIGITS || !digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    Some(Place { store: store.clone(), key: Key::new(space(), id).ok()?, clock: clock.clone() })
}

/// The entry that a record holds; `None` where its time is over.
pub(super) fn live(stored: &Stored) -> Result<Option<DeadLetterEntry>, StoreError> {
    if Status::of(stored) == Status::Expired {
        return Ok(None);
    }
    let read = serde_json::from_slice(&stored.record.data);
    read.map(Some).map_err(|error| StoreError::Corrupt { what: format!("no dead letter: {error}") })
}

/// What stands, and the entry that it holds.
pub(super) fn found(standing: Option<&Stored>) -> Result<Option<(&Stored, DeadLetterEntry)>, StoreError> {
    let Some(stored) = standing else { return Ok(None) };
    Ok(live(stored)?.map(|entry| (stored, entry)))
}

/// Whether a record has room for it.
pub(super) fn fits(entry: &DeadLetterEntry) -> Result<bool, StoreError> {
    Ok(encoded(entry)?.len() <= DATA_LIMIT - ROOM)
}

/// Writes a new entry, unless it stands already: then what stands comes back. One that was redriven before
/// this dead letter was `published` is given up anew.
pub(super) fn create(
    entry: &DeadLetterEntry,
    published: Option<DateTime<Utc>>,
    standing: Option<&Stored>,
    stamp: Stamp,
) -> Result<Amend<Option<DeadLetterEntry>>, StoreError> {
    if let Some((_, found)) = found(standing)? {
        let redriven = found.redriven.as_ref().map(|redriven| redriven.at);
        if redriven.zip(published).is_none_or(|(redriven, published)| published <= redriven) {
            return Ok(Amend::Leave(Some(found)));
        }
    }
    let blank = || Record::blank(Verb::Lock, Duration::ZERO, KEPT);
    let stood = standing.map_or_else(blank, |stored| stored.record.clone());
    let record = Record {
        state: State::Done,
        ttl: KEPT,
        aged: Duration::ZERO,
        data: encoded(entry)?,
        ..higher(stood, stamp)
    };
    Ok(Amend::Write(Box::new(record.stamped(stamp)), None))
}

/// The same record with what became of the entry. Its 30 days do not begin anew.
pub(super) fn rewritten(
    stored: &Stored,
    entry: &DeadLetterEntry,
    stamp: Stamp,
) -> Result<Box<Record>, StoreError> {
    let aged = stored.record.aged.saturating_add(stored.age);
    let record = Record { aged, data: encoded(entry)?, ..higher(stored.record.clone(), stamp) };
    Ok(Box::new(record.stamped(stamp)))
}

fn encoded(entry: &DeadLetterEntry) -> Result<Bytes, StoreError> {
    serde_json::to_vec(entry).map(Bytes::from).map_err(|error| StoreError::Refused {
        what: "a dead letter cannot be encoded".to_owned(),
        source: Some(error.into()),
    })
}

/// The time of so many microseconds since the Unix epoch.
pub(super) fn time(micros: u64) -> DateTime<Utc> {
    i64::try_from(micros).ok().and_then(DateTime::from_timestamp_micros).unwrap_or_default()
}
