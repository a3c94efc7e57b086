//! The record of a task, under its id.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::key_record::age;
use super::{Task, TaskId};
use crate::key::spaces::Space;
use crate::key::{InvalidKey, Key};
use crate::lease::{Amend, Place, Stamp, Status, higher};
use crate::store::record::{Record, State, Verb};
use crate::store::{Store, StoreError, Stored};
use crate::time::Clock;

/// The key of a task's record in the store.
pub(super) fn place(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, id: TaskId) -> Result<Place, InvalidKey> {
    let key = Key::new(Space::Tasks.consumer(), id.to_string())?;
    Ok(Place { store: store.clone(), key, clock: clock.clone() })
}

/// The task that a record holds; `None` where its time is over.
pub(super) fn live(stored: &Stored) -> Result<Option<Task>, StoreError> {
    if Status::of(stored) == Status::Expired {
        return Ok(None);
    }
    read(&stored.record).map(Some)
}

fn read(record: &Record) -> Result<Task, StoreError> {
    serde_json::from_slice(&record.data)
        .map_err(|error| StoreError::Corrupt { what: format!("no record of a task: {error}") })
}

/// Writes a new task, unless it stands already.
pub(super) fn create(
    task: &Task,
    ttl: Duration,
    standing: Option<&Stored>,
    stamp: Stamp,
) -> Result<Amend<Task>, StoreError> {
    if let Some(found) = standing.map(live).transpose()?.flatten() {
        return Ok(Amend::Leave(found));
    }
    let found = standing
        .map_or_else(|| Record::blank(Verb::Lock, Duration::ZERO, ttl), |stored| stored.record.clone());
    let record = Record {
        state: State::Done,
        ttl,
        aged: Duration::ZERO,
        data: encoded(task)?,
        ..higher(found, stamp)
    };
    Ok(Amend::Write(Box::new(record.stamped(stamp)), task.clone()))
}

/// The same record with another task in it. Its window does not slide.
pub(super) fn rewritten(stored: &Stored, task: &Task, stamp: Stamp) -> Result<Record, StoreError> {
    let record = Record { aged: age(stored), data: encoded(task)?, ..higher(stored.record.clone(), stamp) };
    Ok(record.stamped(stamp))
}

pub(super) fn encoded(what: &impl Serialize) -> Result<Bytes, StoreError> {
    serde_json::to_vec(what).map(Bytes::from).map_err(|error| StoreError::Refused {
        what: "a record of a submission cannot be encoded".to_owned(),
        source: Some(error.into()),
    })
}

/// The time of so many microseconds since the Unix epoch.
pub(super) fn time(micros: u64) -> DateTime<Utc> {
    i64::try_from(micros).ok().and_then(DateTime::from_timestamp_micros).unwrap_or_default()
}
