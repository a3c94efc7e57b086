//! `pushonce tasks`: where a task stands, and cancelling one.

use std::sync::Arc;

use clap::{Args, Subcommand};
use pushonce::store::Store;
use pushonce::submit::{Cancelled, Task, TaskId, Tasks as Known};
use serde_json::json;

use crate::output::{answer, moment};
use crate::place::Place;
use crate::{Answer, Failed, table};

/// Looks at tasks that were submitted, and cancels them.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Tasks {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Fields of --json, one document; those without a value are left out:
  task_id, task_type     its id, and what is to be done
  state                  creating, processing, completed, failed
  why                    why it failed: cancelled, expired, dead-lettered, lost
  queue, tenant          where it was submitted, and whose it is
  scope, idempotency_key the key that names it, and within what
  created_at, updated_at, run_before
`get` of an unknown task: null. `cancel`: cancelled (true, false), and task (null where it is unknown).

Exit codes: 0 done; 1 there is no such task, or it is over (`cancel`); 2 it could not be looked at.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows where a task stands; exit code 1 where there is none
    Get {
        /// The task's id
        id: TaskId,
    },
    /// Cancels a task whose work is not to begin any more
    ///
    /// Its message stays where it is and is acked without a run. Work that has begun goes on, and completes
    /// the task if it succeeds.
    Cancel {
        /// The task's id
        id: TaskId,
    },
}

impl Tasks {
    pub(crate) async fn run(&self) -> Result<Answer, Failed> {
        let store: Arc<dyn Store> = self.place.open()?;
        let (tasks, json) = (Known::new(store), self.place.json);
        match self.command {
            Command::Get { id } => {
                let task = tasks.get(id).await?;
                let text = || task.as_ref().map_or_else(|| unknown(id), facts);
                answer(json, &task, text, task.is_none())
            }
            Command::Cancel { id } => {
                let (cancelled, task, text) = match tasks.cancel(id).await? {
                    Cancelled::Cancelled(task) => (
                        true,
                        Some(task),
                        format!("Task {id} is cancelled: its work will not begin, unless it has begun.\n"),
                    ),
                    Cancelled::Over(task) => {
                        let text = format!("Task {id} is over and was left as it is: {}.\n", state(&task));
                        (false, Some(task), text)
                    }
                    Cancelled::Unknown => (false, None, unknown(id)),
                };
                answer(json, &json!({"cancelled": cancelled, "task": task}), || text, !cancelled)
            }
        }
    }
}

fn unknown(id: TaskId) -> String {
    format!("There is no task {id}.\n")
}

fn state(task: &Task) -> String {
    let why = task.why.map(|why| format!(", {why}")).unwrap_or_default();
    format!("{}{why}", task.state)
}

fn facts(task: &Task) -> String {
    table::facts([
        ("task", Some(task.task_id.to_string())),
        ("type", Some(task.task_type.clone())),
        ("state", Some(state(task))),
        ("queue", task.queue.clone()),
        ("tenant", task.tenant.clone()),
        ("scope", task.scope.clone()),
        ("key", task.idempotency_key.clone()),
        ("created", Some(moment(Some(task.created_at)))),
        ("updated", Some(moment(Some(task.updated_at)))),
        ("run before", task.run_before.map(|time| moment(Some(time)))),
    ])
}
