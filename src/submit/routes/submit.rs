//! The requests that submit a task.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::answer::told;
use super::body::{self, Asked};
use super::caller::Caller;
use super::links::Links;
use super::part::Part;
use super::problem::{Code, Problem};
use super::refused::refused;
use super::{Routes, key_header};
use crate::pubsub::Trace;
use crate::submit::{Scope, Submission};

pub(super) async fn to_queue(
    State(routes): State<Arc<Routes>>,
    caller: Caller,
    links: Links,
    Part(queue): Part,
    request: Request,
) -> Result<Response, Problem> {
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
    Part(task_type): Part,
    request: Request,
) -> Result<Response, Problem> {
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
    let submitted = submission.send().await.map_err(|error| refused(error, key.as_deref(), links))?;
    let status = if submitted.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(told(status, &submitted.task, submitted.duplicate, links))
}

/// The request's trace, in the W3C's form. Written anew, so that it fits an attribute whatever was sent.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let trace = Trace::of(headers)?;
    let sampled = u8::from(trace.sampled().unwrap_or(false));
    Some(format!("00-{}-{}-{sampled:02x}", trace.id(), trace.span_id()?))
}
