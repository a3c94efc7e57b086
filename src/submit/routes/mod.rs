//! The HTTP routes of a submitter, to be nested anywhere.

mod answer;
mod body;
mod caller;
mod key_header;
mod links;
mod part;
mod problem;
mod refused;
mod submit;
mod task;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http::request::Parts;

pub use self::caller::Denied;
use self::problem::method_not_allowed;
use super::Submitter;

/// Pub/Sub takes messages of up to 10 MB.
const BODY_LIMIT: usize = 10_000_000;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

type Tenant = dyn Fn(&Parts) -> Result<Option<String>, Denied> + Send + Sync;

/// The routes of a submitter.
///
/// ```
/// use axum::Router;
/// use pushonce::submit::{Denied, Submitter, routes};
///
/// # fn app(submitter: Submitter) -> Router {
/// let tasks = routes(submitter).tenant(|request| {
///     // Whoever checked the caller's token has put this into the request.
///     let customer = request.extensions.get::<String>().ok_or(Denied::Unauthenticated)?;
///     Ok(Some(customer.clone()))
/// });
/// Router::new().nest("/api", tasks.router())
/// # }
/// ```
///
/// | request | its body |
/// |---|---|
/// | `POST /queues/{queue}/tasks` | `{"task_type": "..", "input": .., "idempotency_key": ".."}`: the key counts within the queue |
/// | `POST /tasks/{type}` | `{"input": .., "idempotency_key": ".."}`: the key counts within the type; a `task_type` must be that of the path |
/// | `GET /tasks/{id}` | |
/// | `POST /tasks/{id}/cancel` | |
///
/// The input is any JSON, and is published as it was written. A member of another name is refused, since
/// a misspelt key would be no key. The body's content type is not looked at; it must not be compressed.
/// A slash at the end of a path changes nothing.
///
/// # The key
///
/// The header `Idempotency-Key`, else the member `idempotency_key` (`null` is none). The header is a
/// quoted string, in which `\"` and `\\` stand for `"` and `\` (as in the IETF's draft), or bare:
/// `"abc"` and `abc` are one key. A comma outside of quotes separates two values, since proxies join
/// headers so; equal ones are one key. An empty or blank key, one of more than 255 bytes, with control
/// characters or, in the header, with anything but ASCII, and two that differ are answered 400: what
/// is there and cannot be read is never taken for no key.
///
/// # The answers
///
/// A task is answered as JSON, a serialised [`Task`](super::Task) with `duplicate`, and the header
/// `Location` names it. Everything else is problem details (RFC 9457) with a `code`:
///
/// | status | code | what it means |
/// |---|---|---|
/// | 202 | | a new task |
/// | 200 | | the task that was asked for, or is cancelled; after a submission: a replay of one that is over, with `"duplicate": true` and the header `idempotent-replayed: true` |
/// | 400 | `INVALID_BODY`, `INVALID_PATH`, `INVALID_SUBMISSION`, `IDEMPOTENCY_KEY_INVALID` | nothing was recorded: mend the request |
/// | 401, 403 | `UNAUTHENTICATED`, `FORBIDDEN` | by [`tenant`](Routes::tenant) |
/// | 404 | `TASK_NOT_FOUND` | no such task, or another tenant's |
/// | 405, 408, 413, 415 | `METHOD_NOT_ALLOWED`, `BODY_TIMEOUT`, `BODY_TOO_LARGE`, `BODY_ENCODED` | |
/// | 409 | `IDEMPOTENCY_IN_PROGRESS` | the task of this key is not over: `task_id`, `task_url`, `Retry-After` |
/// | 409 | `TASK_OVER` | too late to cancel |
/// | 422 | `IDEMPOTENCY_CONFLICT` | the key was used for another input or type: use another key |
/// | 429, 503 | `TOO_MANY_SUBMISSIONS`, `OVERLOADED` | by the submitter's back-pressure hook, with `Retry-After`; never before a replay |
/// | 503 | `PUBLISH_FAILED`, `PUBLISH_UNKNOWN`, `STORE_FAILED` | `Retry-After`; with a key, the same key is safe to send again |
/// | 500 | `INTERNAL` | the submitter cannot work as it was built: nothing was recorded |
///
/// A submission and a cancellation run to their end, also where the caller hangs up.
pub fn routes(submitter: Submitter) -> Routes {
    Routes { submitter, tenant: None, body_limit: BODY_LIMIT, body_timeout: BODY_TIMEOUT }
}

/// The routes of a submitter, to be set up. Made by [`routes`].
#[derive(Clone)]
#[must_use = "there are no routes before `router`"]
pub struct Routes {
    submitter: Submitter,
    tenant: Option<Arc<Tenant>>,
    body_limit: usize,
    body_timeout: Duration,
}

impl Routes {
    /// Says whose a request is. Tenants share no key, and a task of another tenant is not found; without
    /// this all callers are one, and see every task.
    ///
    /// It believes only what was checked. A browser sends cookies along with requests that other sites
    /// make, and these routes take any content type: where a cookie tells who it is, check the `Origin` too.
    pub fn tenant(
        self,
        tenant: impl Fn(&Parts) -> Result<Option<String>, Denied> + Send + Sync + 'static,
    ) -> Self {
        Self { tenant: Some(Arc::new(tenant)), ..self }
    }

    /// The largest body, in bytes. Default 10 MB, what Pub/Sub takes.
    pub fn body_limit(self, bytes: usize) -> Self {
        Self { body_limit: bytes, ..self }
    }

    /// How long a body may take to come. Default 30 seconds.
    pub fn body_timeout(self, limit: Duration) -> Self {
        Self { body_timeout: limit, ..self }
    }

    /// The routes, to be nested or merged. They have no fallback: a path that is none of theirs is the
    /// application's.
    pub fn router(self) -> Router {
        let routes = [
            ("/queues/{queue}/tasks", post(submit::to_queue)),
            ("/tasks/{task}", get(task::show).post(submit::of_type)),
            ("/tasks/{task}/cancel", post(task::cancel)),
        ];
        let router = routes.into_iter().fold(Router::new(), |router, (path, route)| {
            let route = route.fallback(method_not_allowed);
            router.route(path, route.clone()).route(&format!("{path}/"), route)
        });
        router.with_state(Arc::new(self))
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes")
            .field("submitter", &self.submitter)
            .field("tenant", &self.tenant.is_some())
            .field("body_limit", &self.body_limit)
            .field("body_timeout", &self.body_timeout)
            .finish()
    }
}
