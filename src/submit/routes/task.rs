//! The requests about a task: what it is, and that it is not to be.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use tokio::sync::oneshot;

use super::Routes;
use super::answer::told;
use super::caller::Caller;
use super::links::Links;
use super::part::Part;
use super::problem::{Code, Problem};
use super::refused::store_failed;
use crate::store::StoreError;
use crate::submit::{Cancelled, Task, TaskId};
use crate::task::attached;

pub(super) async fn show(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    id: Part,
) -> Result<Response, Problem> {
    let task = found(&routes, &caller, &id).await?;
    Ok(told(StatusCode::OK, &task, false, &links))
}

pub(super) async fn cancel(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    id: Part,
) -> Result<Response, Problem> {
    let id = found(&routes, &caller, &id).await?.task_id;
    let tasks = routes.submitter.tasks();
    let (reply, answer) = oneshot::channel();
    let cancel = async move {
        // Whoever has hung up finds it cancelled.
        let _ = reply.send(tasks.cancel(id).await);
    };
    let ended = || Err(StoreError::unanswered("the process is shutting down"));
    match attached(cancel, answer).await.unwrap_or_else(ended) {
        Ok(Cancelled::Cancelled(task)) => Ok(told(StatusCode::OK, &task, false, &links)),
        Ok(Cancelled::Over(task)) => {
            let detail = format!("It is {}: there is nothing to cancel.", task.state);
            Err(Problem::new(Code::TaskOver, detail).task(id, &links))
        }
        Ok(Cancelled::Unknown) => Err(not_found()),
        Err(error) => Err(store_failed(&error, "Nobody knows whether it is cancelled. Cancel it again.")),
    }
}

/// The task of the path, if this caller may see it. Another tenant's is not even there.
async fn found(routes: &Routes, caller: &Caller, Part(id): &Part) -> Result<Task, Problem> {
    let id: TaskId = id.parse().map_err(|_| not_found())?;
    let found = routes.submitter.tasks().get(id).await.map_err(|error| store_failed(&error, "Ask again."))?;
    found.filter(|task| caller.may_see(task)).ok_or_else(not_found)
}

fn not_found() -> Problem {
    Problem::new(Code::TaskNotFound, "There is no task of this id, or not any more.")
}
