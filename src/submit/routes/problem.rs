//! Problem details (RFC 9457): every answer that is no task.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use super::links::Links;
use crate::submit::TaskId;

/// What is wrong, as a caller's program may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    InvalidBody,
    InvalidPath,
    InvalidSubmission,
    InvalidKey,
    Unauthenticated,
    Forbidden,
    TaskNotFound,
    MethodNotAllowed,
    BodyTimeout,
    InProgress,
    TaskOver,
    BodyTooLarge,
    BodyEncoded,
    Conflict,
    TooMany,
    Internal,
    Overloaded,
    PublishFailed,
    PublishUnknown,
    StoreFailed,
}

impl Code {
    /// Status, code and title. The codes are a part of the interface: they are never changed.
    const fn told(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as Is;
        match self {
            Self::InvalidBody => (Is::BAD_REQUEST, "INVALID_BODY", "The body is no submission"),
            Self::InvalidPath => (Is::BAD_REQUEST, "INVALID_PATH", "The path cannot be read"),
            Self::InvalidSubmission => {
                (Is::BAD_REQUEST, "INVALID_SUBMISSION", "The submission cannot be as it is")
            }
            Self::InvalidKey => {
                (Is::BAD_REQUEST, "IDEMPOTENCY_KEY_INVALID", "The idempotency key cannot be used")
            }
            Self::Unauthenticated => (Is::UNAUTHORIZED, "UNAUTHENTICATED", "The caller is not known"),
            Self::Forbidden => (Is::FORBIDDEN, "FORBIDDEN", "The caller may not do this"),
            Self::TaskNotFound => (Is::NOT_FOUND, "TASK_NOT_FOUND", "There is no such task"),
            Self::MethodNotAllowed => {
                (Is::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "This cannot be done here")
            }
            Self::BodyTimeout => (Is::REQUEST_TIMEOUT, "BODY_TIMEOUT", "The body did not come in time"),
            Self::InProgress => {
                (Is::CONFLICT, "IDEMPOTENCY_IN_PROGRESS", "The task of this key is in progress")
            }
            Self::TaskOver => (Is::CONFLICT, "TASK_OVER", "The task is over"),
            Self::BodyTooLarge => (Is::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", "The body is too large"),
            Self::BodyEncoded => (Is::UNSUPPORTED_MEDIA_TYPE, "BODY_ENCODED", "The body is encoded"),
            Self::Conflict => {
                (Is::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_CONFLICT", "The key was used for another submission")
            }
            Self::TooMany => (Is::TOO_MANY_REQUESTS, "TOO_MANY_SUBMISSIONS", "Too many submissions"),
            Self::Internal => (Is::INTERNAL_SERVER_ERROR, "INTERNAL", "Something is broken"),
            Self::Overloaded => (Is::SERVICE_UNAVAILABLE, "OVERLOADED", "Too much is waiting"),
            Self::PublishFailed => (Is::SERVICE_UNAVAILABLE, "PUBLISH_FAILED", "The task is not published"),
            Self::PublishUnknown => {
                (Is::SERVICE_UNAVAILABLE, "PUBLISH_UNKNOWN", "The task may or may not be published")
            }
            Self::StoreFailed => (Is::SERVICE_UNAVAILABLE, "STORE_FAILED", "The store failed"),
        }
    }

    /// What HTTP demands, or asks for, beside this status.
    const fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Unauthenticated => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Self::BodyEncoded => Some((ACCEPT_ENCODING, HeaderValue::from_static("identity"))),
            _ => None,
        }
    }
}

/// One answer of that kind.
#[derive(Debug)]
pub(super) struct Problem {
    code: Code,
    detail: String,
    task: Option<(TaskId, String)>,
    retry_after: Option<Duration>,
}

impl Problem {
    /// The detail is for people: whole sentences, and nothing of a payload, a key or an error of the store.
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), task: None, retry_after: None }
    }

    /// Names the task that it is about.
    pub(super) fn task(self, id: TaskId, links: &Links) -> Self {
        Self { task: Some((id, links.to(id))), ..self }
    }

    pub(super) fn retry_after(self, time: Duration) -> Self {
        Self { retry_after: Some(time), ..self }
    }
}

#[derive(Serialize)]
struct Members<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_url: Option<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code, title) = self.code.told();
        let (task_id, task_url) = self.task.unzip();
        let members = Members {
            r#type: format!("urn:pushonce:problem:{}", code.to_lowercase().replace('_', "-")),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            code,
            task_id,
            task_url: task_url.as_deref(),
        };
        // Numbers and texts: they can always be written.
        let body = serde_json::to_vec(&members).unwrap_or_default();
        let mut response =
            (status, [(CONTENT_TYPE, "application/problem+json"), (CACHE_CONTROL, "no-store")], body)
                .into_response();
        let whole_seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let retry_after = self.retry_after.map(|time| HeaderValue::from(whole_seconds(time).max(1)));
        let location = task_url.and_then(|url| HeaderValue::try_from(url).ok());
        let headers =
            [retry_after.map(|value| (RETRY_AFTER, value)), location.map(|value| (LOCATION, value))];
        response.headers_mut().extend(headers.into_iter().chain([self.code.header()]).flatten());
        response
    }
}

pub(super) async fn method_not_allowed() -> Problem {
    Problem::new(Code::MethodNotAllowed, "The header `Allow` says what can be done.")
}
