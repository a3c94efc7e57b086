//! The record of an idempotency key: which task it names, of which input, and how far it came.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{SubmitError, Task, TaskId, TaskState, Why, task_record};
use crate::key::join;
use crate::key::spaces::{self, Space};
use crate::lease::{Amend, Place, Stamp, Status, higher};
use crate::random::Id;
use crate::store::record::{Record, State, Verb};
use crate::store::{Store, StoreError, Stored};
use crate::time::Clock;

/// What the record says. A part of the format: names are never changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    pub(super) key: String,
    pub(super) scope: String,
    pub(super) key_hash: String,
    pub(super) task_id: TaskId,
    /// The object of the task's record below the prefix, where the store keeps objects.
    pub(super) task_key: String,
    pub(super) task_type: String,
    pub(super) input_hash: String,
    pub(super) state: TaskState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<Why>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<String>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
    pub(super) expires_at: DateTime<Utc>,
}

/// Where the record of a key is kept. Scope and key are joined so that `a` + `b:c` and `a:b` + `c` differ.
pub(super) fn place(
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    scope: &str,
    key: &str,
) -> Result<Place, StoreError> {
    task_record::place_of(Space::Idempotency, joined(scope, key), store, clock)
}

fn joined(scope: &str, key: &str) -> String {
    join(&[scope.to_owned(), key.to_owned()])
}

/// Who asks for a key, and for what.
pub(super) struct Ask {
    /// The record as it would be new.
    pub(super) new: KeyRecord,
    pub(super) me: Id,
    pub(super) creating_lease: Duration,
    pub(super) ttl: Duration,
    /// A task whose record is gone: a key that names it is free.
    pub(super) gone: Option<TaskId>,
}

/// What a submission meets.
#[derive(Debug)]
pub(super) enum Met {
    /// The key is this submission's, to create the task that it names.
    Mine(KeyRecord),
    /// The task was submitted; it is over if its state says so.
    Submitted(KeyRecord),
    /// Another submission creates the task and may be alive, or the key names a task of another input.
    Refused(SubmitError),
}

impl Ask {
    /// What is to be done about what stands.
    pub(super) fn decide(&self, standing: Option<&Stored>, stamp: Stamp) -> Result<Amend<Met>, StoreError> {
        let Some(stored) = standing else { return self.take(None, self.new.clone(), stamp) };
        let found = KeyRecord::of(&stored.record)?;
        if (&found.scope, &found.key) != (&self.new.scope, &self.new.key) {
            return Err(StoreError::Corrupt { what: "it belongs to another idempotency key".to_owned() });
        }
        let status = Status::of(stored);
        let window = stored.record.lease.saturating_add(stored.record.ttl);
        let over = match status {
            Status::Expired => true,
            // An operator has reset it.
            Status::Released if found.state != TaskState::Creating => true,
            Status::Released | Status::Lapsed => age(stored) >= window,
            Status::Held { .. } | Status::Done { .. } | Status::Started { .. } => false,
        };
        if over || self.gone == Some(found.task_id) {
            return self.take(Some(&stored.record), self.new.clone(), stamp);
        }
        // Before all else that is said of it: "in progress" would invite a retry that can never succeed. // F87
        if (&found.input_hash, &found.task_type) != (&self.new.input_hash, &self.new.task_type) {
            return Ok(Amend::Leave(Met::Refused(SubmitError::Conflict)));
        }
        match status {
            // Its answer was lost.
            Status::Held { .. } if stored.record.holder == Some(self.me) => {
                Ok(Amend::Leave(Met::Mine(found)))
            }
            Status::Held { left } => {
                let busy = SubmitError::InProgress { task_id: found.task_id, retry_after: left };
                Ok(Amend::Leave(Met::Refused(busy)))
            }
            // With the same id, since nobody knows whether the message is there already.
            Status::Lapsed | Status::Released => {
                let taken =
                    KeyRecord { updated_at: self.new.updated_at, expires_at: self.new.expires_at, ..found };
                self.take(Some(&stored.record), taken, stamp)
            }
            Status::Done { .. } | Status::Started { .. } | Status::Expired => {
                Ok(Amend::Leave(Met::Submitted(found)))
            }
        }
    }

    fn take(&self, found: Option<&Record>, next: KeyRecord, stamp: Stamp) -> Result<Amend<Met>, StoreError> {
        let found =
            found.cloned().unwrap_or_else(|| Record::blank(Verb::Lock, self.creating_lease, self.ttl));
        let record = Record {
            state: State::Claimed,
            verb: Verb::Lock,
            holder: Some(self.me),
            lease: self.creating_lease,
            ttl: self.ttl,
            aged: Duration::ZERO,
            data: task_record::encoded(&next)?,
            ..higher(found, stamp)
        };
        Ok(Amend::Write(Box::new(record.stamped(stamp)), Met::Mine(next)))
    }
}

impl KeyRecord {
    /// The record of a key that names a new task.
    pub(super) fn new(task: &Task, input_hash: String, ttl: Duration) -> Self {
        let scope = task.scope.clone().unwrap_or_default();
        let key = task.idempotency_key.clone().unwrap_or_default();
        Self {
            key_hash: format!("sha256:{}", spaces::hash(&joined(&scope, &key))),
            key,
            scope,
            task_id: task.task_id,
            task_key: spaces::task(&task.task_id.to_string()),
            task_type: task.task_type.clone(),
            input_hash,
            state: TaskState::Creating,
            why: None,
            queue: task.queue.clone(),
            tenant: task.tenant.clone(),
            created_at: task.created_at,
            updated_at: task.updated_at,
            expires_at: task.created_at + ttl,
        }
    }

    /// What the record holds.
    pub(super) fn of(record: &Record) -> Result<Self, StoreError> {
        serde_json::from_slice(&record.data).map_err(|error| StoreError::Corrupt {
            what: format!("no record of an idempotency key: {error}"),
        })
    }

    /// The same in another state. Its window does not slide.
    pub(super) fn moved(
        stored: &Stored,
        to: TaskState,
        why: Option<Why>,
        stamp: Stamp,
    ) -> Result<Record, StoreError> {
        let found =
            Self { state: to, why, updated_at: task_record::time(stamp.now), ..Self::of(&stored.record)? };
        Ok(Record {
            state: State::Done,
            aged: age(stored),
            data: task_record::encoded(&found)?,
            ..stored.record.clone()
        }
        .stamped(stamp))
    }

    /// The task, as far as its key's record knows it.
    pub(super) fn task(&self) -> Task {
        Task {
            task_id: self.task_id,
            task_type: self.task_type.clone(),
            state: self.state,
            why: self.why,
            queue: self.queue.clone(),
            tenant: self.tenant.clone(),
            scope: Some(self.scope.clone()),
            idempotency_key: Some(self.key.clone()),
            created_at: self.created_at,
            updated_at: self.updated_at,
            run_before: None,
        }
    }
}

/// How long its window has run.
pub(super) fn age(stored: &Stored) -> Duration {
    stored.record.aged.saturating_add(stored.age)
}
