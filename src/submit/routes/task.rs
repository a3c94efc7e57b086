//! The requests about a task: what it is, and that it is not to be.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;

use super::answer::told;
use super::caller::Caller;
use super::links::Links;
use super::problem::{Code, Problem};
use super::refused::{broken, store_failed};
use super::{Routes, tracked};
use crate::submit::{Cancelled, Task, TaskId};

#[derive(Deserialize)]
pub(super) struct Named {
    task: String,
}

type AtTask = Result<Path<Named>, PathRejection>;

pub(super) async fn show(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    path: AtTask,
) -> Result<Response, Problem> {
    let task = found(&routes, &caller, path).await?;
    Ok(told(StatusCode::OK, &task, false, &links))
}

pub(super) async fn cancel(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    path: AtTask,
) -> Result<Response, Problem> {
    let id = found(&routes, &caller, path).await?.task_id;
    let tasks = routes.submitter.tasks();
    match tracked(async move { tasks.cancel(id).await }).await {
        Ok(Ok(Cancelled::Cancelled(task))) => Ok(told(StatusCode::OK, &task, false, &links)),
        Ok(Ok(Cancelled::Over(task))) => {
            let detail = format!("It is {}: there is nothing to cancel.", task.state);
            Err(Problem::new(Code::TaskOver, detail).task(id, &links))
        }
        Ok(Ok(Cancelled::Unknown)) => Err(not_found()),
        Ok(Err(error)) => Err(store_failed(&error, "Nobody knows whether it is cancelled. Cancel it again.")),
        Err(panic) => Err(broken(&panic)),
    }
}

/// The task of the path, if this caller may see it. Another tenant's is not even there.
async fn found(routes: &Routes, caller: &Caller, path: AtTask) -> Result<Task, Problem> {
    let Path(Named { task }) = path?;
    let id: TaskId = task.parse().map_err(|_| not_found())?;
    let found = routes.submitter.tasks().get(id).await.map_err(|error| store_failed(&error, "Ask again."))?;
    found.filter(|task| caller.may_see(task)).ok_or_else(not_found)
}

fn not_found() -> Problem {
    Problem::new(Code::TaskNotFound, "There is no task of this id, or not any more.")
}
