//! The body of a submission: read within bounds, and taken apart without touching the input.

use std::pin::pin;

use axum::extract::Request;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::Routes;
use super::problem::{Code, Problem};
use crate::time::within;

const MEMBERS: &str = "expected the members `task_type` (a string, not needed where the path has it), `input` (any JSON), `idempotency_key` (a string, may be left out), each once, and no others";

/// What is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked<'a> {
    pub(super) task_type: Option<String>,
    /// As it was written: a number read as a float would be another number.
    #[serde(borrow)]
    pub(super) input: &'a RawValue,
    #[serde(borrow)]
    idempotency_key: Option<&'a RawValue>,
}

impl<'a> Asked<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Problem> {
        // An array of the members' values would be read as well.
        if body.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
            return Err(Problem::new(Code::InvalidBody, format!("The body is an array: {MEMBERS}.")));
        }
        // Its own text may repeat what was sent.
        serde_json::from_slice(body).map_err(|error| {
            let what = match error.classify() {
                Category::Data => MEMBERS,
                Category::Eof => "the JSON ends too early",
                Category::Syntax | Category::Io => "that is no JSON",
            };
            let (line, column) = (error.line(), error.column());
            Problem::new(Code::InvalidBody, format!("The body, at line {line}, column {column}: {what}."))
        })
    }

    /// The member `idempotency_key`.
    pub(super) fn key(&self) -> Result<Option<String>, Problem> {
        let key = self.idempotency_key.map(|raw| serde_json::from_str(raw.get())).transpose();
        key.map_err(|_| Problem::new(Code::InvalidKey, "The member `idempotency_key` is no string."))
    }
}

/// Reads the whole body.
pub(super) async fn read(request: Request, routes: &Routes) -> Result<Bytes, Problem> {
    if is_encoded(request.headers()) {
        return Err(Problem::new(Code::BodyEncoded, "Send the body without a `Content-Encoding`."));
    }
    let (limit, time) = (routes.body_limit, routes.body_timeout);
    let body = request.into_body();
    let too_large = || Problem::new(Code::BodyTooLarge, format!("The body is larger than {limit} bytes."));
    // Before the caller is told to go on with it.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match within(time, pin!(Limited::new(body, limit).collect())).await {
        Some(Ok(whole)) => Ok(whole.to_bytes()),
        Some(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Some(Err(_)) => Err(Problem::new(Code::InvalidBody, "The body ended early.")),
        None => Err(Problem::new(Code::BodyTimeout, format!("The body did not come within {time:?}."))),
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|encoding| {
        let encoding = encoding.as_bytes().trim_ascii();
        !encoding.is_empty() && !encoding.eq_ignore_ascii_case(b"identity")
    })
}
