//! The requests that submit a task.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::answer::told;
use super::body::{self, Asked};
use super::caller::Caller;
use super::links::Links;
use super::problem::{Code, Problem};
use super::refused::{broken, refused};
use super::{Routes, key_header, tracked};
use crate::pubsub::Trace;
use crate::submit::{Scope, Submission};

#[derive(Deserialize)]
pub(super) struct InQueue {
    queue: String,
}

#[derive(Deserialize)]
pub(super) struct OfType {
    task: String,
}

pub(super) async fn to_queue(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    path: Result<Path<InQueue>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let Path(InQueue { queue }) = path?;
    submit(&routes, caller, &links, request, |asked| match &asked.task_type {
        Some(task_type) => {
            let submission = routes.submitter.submit_json(task_type, asked.input.get());
            Ok(submission.queue(&queue).scope(Scope::Queue(queue)))
        }
        None => Err(Problem::new(Code::InvalidBody, "The body has no `task_type`.")),
    })
    .await
}

pub(super) async fn of_type(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    path: Result<Path<OfType>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let Path(OfType { task: task_type }) = path?;
    submit(&routes, caller, &links, request, |asked| match &asked.task_type {
        Some(other) if *other != task_type => {
            Err(Problem::new(Code::InvalidBody, "The `task_type` of the body is not that of the path."))
        }
        _ => Ok(routes.submitter.submit_json(task_type, asked.input.get()).scope(Scope::TaskType)),
    })
    .await
}

async fn submit(
    routes: &Routes,
    caller: Caller,
    links: &Links,
    request: Request,
    submission: impl FnOnce(&Asked<'_>) -> Result<Submission, Problem>,
) -> Result<Response, Problem> {
    let header = key_header::read(request.headers()).map_err(|problem| {
        Problem::new(Code::InvalidKey, format!("The header `Idempotency-Key` {problem}."))
    })?;
    let traceparent = traceparent(request.headers());
    let body = body::read(request, routes).await?;
    let asked = Asked::read(&body)?;
    let field = asked.key()?;
    let key = header.or(field);
    let mut submission = caller.sends(submission(&asked)?);
    if let Some(key) = &key {
        submission = submission.idempotency_key(key);
    }
    if let Some(traceparent) = traceparent {
        submission = submission.traceparent(traceparent);
    }
    drop(body);
    match tracked(submission.send()).await {
        Ok(Ok(submitted)) => {
            let status = if submitted.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok(told(status, &submitted.task, submitted.duplicate, links))
        }
        Ok(Err(error)) => Err(refused(error, key.as_deref(), links)),
        Err(panic) => Err(broken(&panic)),
    }
}

/// The request's trace, in the W3C's form. Written anew, so that it fits an attribute whatever was sent.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let trace = Trace::of(headers)?;
    let sampled = u8::from(trace.sampled().unwrap_or(false));
    Some(format!("00-{}-{}-{sampled:02x}", trace.id(), trace.span_id()?))
}
