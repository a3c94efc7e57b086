//! `Tasks`: the tasks of a store, looked at, cancelled, and moved as their messages fare.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::key_record::{self, KeyRecord, age};
use super::{Task, TaskId, TaskState, Why, task_record};
use crate::idempotent::{End, Follow, Wanted};
use crate::lease::{Amend, First, Place, Stamp};
use crate::store::{BoxError, BoxFuture, Store, StoreError, Stored};
use crate::time::{Clock, system_clock};

/// The tasks of a store. Give it to the layer of their worker, so that their records move as it works:
/// `IdempotentLayer::new("charge", store).follow(tasks)`.
#[derive(Clone)]
pub struct Tasks {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

/// What came of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a task that is over was not cancelled"]
pub enum Cancelled {
    /// The task is cancelled, by this call or an earlier one. Work that has begun goes on, and completes it if it succeeds.
    Cancelled(Task),
    /// It is over, and was left as it is.
    Over(Task),
    /// There is no such task.
    Unknown,
}

/// What a task is to become, if it may.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// Its work succeeded, whatever was said of it before: the effect is there.
    Completed,
    /// It failed, unless it is over.
    Failed(Why),
    /// It runs once more, unless it is completed or cancelled.
    Redriven,
    /// Its message is skipped: it expires, if it is still to begin before now.
    Skipped,
}

impl Tasks {
    /// The tasks of that store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::by(store, system_clock())
    }

    pub(super) fn by(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// The task of that id, if it is known.
    ///
    /// # Errors
    /// [`StoreError`]. Ask again.
    pub async fn get(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        let looked = self.task(id)?.amend(First::Unread, |standing, _| looked(standing)).await?;
        Ok(looked.value)
    }

    /// Cancels a task whose work is not to begin any more.
    ///
    /// # Errors
    /// [`StoreError`]. Nobody knows whether it is cancelled: cancel again.
    pub async fn cancel(&self, id: TaskId) -> Result<Cancelled, StoreError> {
        Ok(match self.go(id, Move::Failed(Why::Cancelled)).await? {
            None => Cancelled::Unknown,
            Some(task) if task.why == Some(Why::Cancelled) => Cancelled::Cancelled(task),
            Some(task) => Cancelled::Over(task),
        })
    }

    fn task(&self, id: TaskId) -> Result<Place, StoreError> {
        task_record::place(&self.store, &self.clock, id)
    }

    /// Moves the record of the task, then that of its key. Also where the first stands already: an earlier
    /// move may have come no further.
    async fn go(&self, id: TaskId, to: Move) -> Result<Option<Task>, StoreError> {
        let place = self.task(id)?;
        let moved = place.amend(First::Unread, |standing, stamp| {
            let Some((stored, task)) = found(standing)? else { return Ok(Amend::Leave(None)) };
            let Some((state, why)) = to.of(&task, age(stored)) else { return Ok(Amend::Leave(Some(task))) };
            let run_before = task.run_before.filter(|_| !matches!(to, Move::Redriven));
            let task = Task { state, why, run_before, updated_at: task_record::time(stamp.now), ..task };
            Ok(Amend::Write(Box::new(task_record::rewritten(stored, &task, stamp)?), Some(task)))
        });
        let Some(task) = moved.await?.value else { return Ok(None) };
        if let (Some(scope), Some(key)) = (&task.scope, &task.idempotency_key) {
            let place = key_record::place(&self.store, &self.clock, scope, key)?;
            place.amend(First::Unread, |standing, stamp| follow(standing, &task, stamp)).await?;
        }
        Ok(Some(task))
    }

    async fn is_wanted(&self, id: TaskId) -> Result<Wanted, StoreError> {
        let place = self.task(id)?;
        let looked = place.amend(First::Unread, |standing, _| {
            Ok(Amend::Leave(found(standing)?.map(|(stored, task)| (is_late(&task, age(stored)), task))))
        });
        Ok(match looked.await?.value {
            Some((true, _)) => Wanted::Late { why: "expired" },
            Some((false, Task { why: Some(Why::Cancelled), .. })) => Wanted::No { why: "cancelled" },
            Some((false, Task { why: Some(Why::Expired), .. })) => Wanted::No { why: "expired" },
            _ => Wanted::Yes,
        })
    }
}

impl Move {
    /// The state that a task comes to; `None` where it stays.
    fn of(self, task: &Task, age: Duration) -> Option<(TaskState, Option<Why>)> {
        let next = match self {
            Self::Completed => (TaskState::Completed, None),
            Self::Failed(_) if task.state.is_terminal() => return None,
            Self::Failed(why) => (TaskState::Failed, Some(why)),
            Self::Redriven if task.state == TaskState::Completed || task.why == Some(Why::Cancelled) => {
                return None;
            }
            Self::Redriven => (TaskState::Processing, None),
            Self::Skipped if !is_late(task, age) => return None,
            Self::Skipped => (TaskState::Failed, Some(Why::Expired)),
        };
        Some(next).filter(|next| *next != (task.state, task.why))
    }
}

/// Whether work that has not begun is not to begin any more. A record with a time to begin was never
/// rewritten since it was given that.
fn is_late(task: &Task, age: Duration) -> bool {
    let limit = task.run_before.map(|before| (before - task.updated_at).to_std().unwrap_or_default());
    !task.state.is_terminal() && limit.is_some_and(|limit| age >= limit)
}

fn found(standing: Option<&Stored>) -> Result<Option<(&Stored, Task)>, StoreError> {
    let Some(stored) = standing else { return Ok(None) };
    Ok(task_record::live(stored)?.map(|task| (stored, task)))
}

fn looked(standing: Option<&Stored>) -> Result<Amend<Option<Task>>, StoreError> {
    Ok(Amend::Leave(found(standing)?.map(|(_, task)| task)))
}

/// The record of the key, moved to where its task is. One that names another task by now is left alone.
fn follow(standing: Option<&Stored>, task: &Task, stamp: Stamp) -> Result<Amend<()>, StoreError> {
    let Some(stored) = standing else { return Ok(Amend::Leave(())) };
    let found = KeyRecord::of(&stored.record)?;
    if found.task_id != task.task_id || (found.state, found.why) == (task.state, task.why) {
        return Ok(Amend::Leave(()));
    }
    // Final, as of the task: whoever looked at that before it was completed comes late.
    if found.state == TaskState::Completed {
        return Ok(Amend::Leave(()));
    }
    Ok(Amend::Write(Box::new(KeyRecord::moved(stored, task.state, task.why, stamp)?), ()))
}

impl Follow for Tasks {
    fn attribute(&self) -> &str {
        "task-id"
    }

    fn is_id(&self, text: &str) -> bool {
        text.parse::<TaskId>().is_ok()
    }

    fn wanted<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Wanted, BoxError>> {
        Box::pin(async move {
            let Ok(id) = id.parse() else { return Ok(Wanted::Yes) };
            Ok(self.is_wanted(id).await?)
        })
    }

    fn ended<'a>(&'a self, id: &'a str, end: End) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let Ok(id) = id.parse() else { return Ok(()) };
            let to = match end {
                End::Completed => Move::Completed,
                End::DeadLettered => Move::Failed(Why::DeadLettered),
                End::Lost => Move::Failed(Why::Lost),
                End::Skipped => Move::Skipped,
            };
            self.go(id, to).await?;
            Ok(())
        })
    }

    fn redriven<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let Ok(id) = id.parse() else { return Ok(()) };
            self.go(id, Move::Redriven).await?;
            Ok(())
        })
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("store", &self.store).finish_non_exhaustive()
    }
}
