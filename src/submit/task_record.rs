//! The record of a task, under its id.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::key_record::age;
use super::{Task, TaskId};
use crate::key::Key;
use crate::key::spaces::Space;
use crate::lease::{Amend, Place, Stamp, Status, higher};
use crate::store::record::{Record, State, Verb};
use crate::store::{Store, StoreError, Stored};
use crate::time::Clock;

/// Where the record of a task is kept.
pub(super) fn place(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, id: TaskId) -> Result<Place, StoreError> {
    place_of(Space::Tasks, id.to_string(), store, clock)
}

/// A place in one of the key spaces of submission. Its text is never blank.
pub(super) fn place_of(
    space: Space,
    text: String,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> Result<Place, StoreError> {
    let key = Key::new(space.consumer(), text)
        .map_err(|error| StoreError::Refused { what: error.to_string(), source: None })?;
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

/// Writes a new task, unless it stands already. One that was to begin within a time has that time anew:
/// it was submitted again, and until now nobody knew whether its message is there.
pub(super) fn create(
    task: &Task,
    ttl: Duration,
    standing: Option<&Stored>,
    stamp: Stamp,
) -> Result<Amend<Task>, StoreError> {
    let task = match (standing, standing.map(live).transpose()?.flatten()) {
        (Some(stored), Some(found)) if found.state.is_terminal() || found.run_before == task.run_before => {
            // It is never over before the key that names it, which has its window anew.
            if stored.record.ttl.saturating_sub(age(stored)) >= ttl {
                return Ok(Amend::Leave(found));
            }
            found
        }
        _ => task.clone(),
    };
    let found = standing
        .map_or_else(|| Record::blank(Verb::Lock, Duration::ZERO, ttl), |stored| stored.record.clone());
    let record = Record {
        state: State::Done,
        ttl,
        aged: Duration::ZERO,
        data: encoded(&task)?,
        ..higher(found, stamp)
    };
    Ok(Amend::Write(Box::new(record.stamped(stamp)), task))
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
