//! The wrapped service and its request: called once, and its answer read to the end before anybody is told.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::body::{self, Limits};
use crate::chain::chain;
use crate::lease::Lease;
use crate::pubsub::extract::{Cause, verdict};
use crate::pubsub::{Outcome, Verdict};
use crate::store::BoxError;

/// The wrapped service, ready, with its request.
pub(super) struct Handler<S, B> {
    pub(super) ready: S,
    pub(super) request: Request<B>,
    pub(super) response_limit: usize,
}

impl<S, B> Handler<S, B> {
    /// Calls it and reads its answer to the end, since work may be done inside of a streamed body.
    pub(super) async fn run<R>(mut self, lease: Option<Lease>) -> Result<Response<Bytes>, BoxError>
    where
        S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>>,
        R: Body<Error: Into<BoxError>>,
    {
        if let Some(lease) = lease {
            self.request.extensions_mut().insert(lease);
        }
        let response = self.ready.call(self.request).await.map_err(Into::into)?;
        let (parts, body) = response.into_parts();
        let limits = Limits {
            name: "response_limit",
            body: self.response_limit,
            budget: usize::MAX,
            time: Duration::MAX,
        };
        let (bytes, _) = body::read(body, limits)
            .await
            .map_err(|error| format!("the handler's answer: {}", chain(&error)))?;
        let response = Response::from_parts(parts, bytes);
        // A `Failure` may carry the status of another key's duplicate, 204, and is a failure all the same.
        if response.status().is_success() && verdict(response.extensions()).is_none() {
            Ok(response)
        } else {
            Err(HandlerFailed::of(response).into())
        }
    }
}

/// A handler that answered something else than success.
pub(super) struct HandlerFailed {
    /// What it answered.
    pub(super) status: StatusCode,
    /// All of the answer.
    pub(super) response: Response<Bytes>,
    cause: Option<Cause>,
}

impl HandlerFailed {
    fn of(response: Response<Bytes>) -> Self {
        let cause = response.extensions().get::<Cause>().cloned();
        Self { status: response.status(), response, cause }
    }

    /// What it means under a layer, and the status that goes out: 4xx and 5xx as they are.
    pub(super) fn verdict(&self) -> Verdict {
        let failing = self.status.is_client_error() || self.status.is_server_error();
        let status = if failing { self.status } else { StatusCode::INTERNAL_SERVER_ERROR };
        let plain = Verdict::new(Outcome::Failed, status);
        verdict(self.response.extensions()).map_or(plain, |found| inside(found, status))
    }
}

/// What an error inside of the handler means: only the layer's own key can make a duplicate, and only
/// its own store an outage before the work. All but two of them are this handler's failure.
pub(super) fn inside(found: Verdict, status: StatusCode) -> Verdict {
    match found.outcome {
        Outcome::InProgress | Outcome::Misuse => found,
        _ => Verdict::new(Outcome::Failed, status),
    }
}

impl fmt::Debug for HandlerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFailed").field("status", &self.status).field("cause", &self.cause).finish()
    }
}

impl fmt::Display for HandlerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handler answered {}", self.status)
    }
}

impl Error for HandlerFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause.0 as &(dyn Error + 'static))
    }
}
