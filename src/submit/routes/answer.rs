//! The answer that is a task: one shape, wherever it is given.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use super::links::Links;
use crate::submit::Task;

#[derive(Serialize)]
struct Members<'a> {
    #[serde(flatten)]
    task: &'a Task,
    duplicate: bool,
}

/// Answers that task.
pub(super) fn told(status: StatusCode, task: &Task, duplicate: bool, links: &Links) -> Response {
    // It moves on: what was told of it is not to be kept by anybody between.
    let mut response =
        (status, [(CACHE_CONTROL, "no-store")], Json(Members { task, duplicate })).into_response();
    if let Ok(location) = HeaderValue::try_from(links.to(task.task_id)) {
        response.headers_mut().insert(LOCATION, location);
    }
    if duplicate {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}
