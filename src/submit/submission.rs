//! `Submission`: one task to be submitted, and what came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::submitter::{LONGEST, Submitter};
use super::{InvalidSubmission, Scope, SubmitError, Task, digest, engine, names};
use crate::pubsub::Trace;
use crate::store::StoreError;
use crate::task::{self, attached};

/// What Pub/Sub takes of attributes, beside those that are set here.
const ATTRIBUTES: usize = 90;

/// A task to be submitted. Nothing happens before [`send`](Self::send). `Debug` shows neither its input
/// nor the values of its attributes.
#[derive(Clone)]
#[must_use = "nothing is submitted before `send`"]
pub struct Submission {
    pub(super) submitter: Submitter,
    pub(super) task_type: String,
    pub(super) payload: Bytes,
    pub(super) input_hash: Result<String, InvalidSubmission>,
    pub(super) queue: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) key: Option<String>,
    pub(super) ttl: Duration,
    pub(super) scope: Scope,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) ordering_key: Option<String>,
    pub(super) run_within: Option<Duration>,
    pub(super) traceparent: Option<String>,
}

/// What a submission gave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// The task.
    pub task: Task,
    /// Whether an earlier submission of the same key made it, and it is over: nothing was published now.
    pub duplicate: bool,
}

/// How a back-pressure hook turns a submission away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overload {
    /// This caller sends too much: 429.
    TooMany {
        /// When it may try again.
        retry_after: Duration,
    },
    /// There is too much for everybody: 503.
    Unavailable {
        /// When it may try again.
        retry_after: Duration,
    },
}

impl Submission {
    pub(super) fn json(
        submitter: &Submitter,
        task_type: String,
        input: Result<String, InvalidSubmission>,
    ) -> Self {
        let input_hash = input.as_deref().map_err(Clone::clone).and_then(digest::json);
        Self::new(submitter, task_type, input.unwrap_or_default().into(), input_hash)
    }

    pub(super) fn bytes(submitter: &Submitter, task_type: String, input: Bytes) -> Self {
        let input_hash = Ok(digest::bytes(&input));
        Self::new(submitter, task_type, input, input_hash)
    }

    fn new(
        submitter: &Submitter,
        task_type: String,
        payload: Bytes,
        input_hash: Result<String, InvalidSubmission>,
    ) -> Self {
        Self {
            submitter: submitter.clone(),
            task_type,
            payload,
            input_hash,
            queue: None,
            tenant: None,
            key: None,
            ttl: submitter.0.idempotency_ttl,
            scope: Scope::default(),
            attributes: BTreeMap::new(),
            ordering_key: None,
            run_within: None,
            traceparent: None,
        }
    }

    /// The queue that it goes to. Its key still counts within its [`scope`](Self::scope).
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Whose submission it is: callers never share a key.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The key under which a retry gives the same task. Without one each submission is a new task.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long the key names its task. Default: the submitter's.
    pub fn idempotency_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Within what the key counts. Default: the task's type.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// An attribute of the message. `task-id`, `task-scope`, `task-type`, `idempotency-key` and
    /// `traceparent` are the library's own; names that begin with `goog` are Google's.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// The ordering key of the message.
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// Gives the task up, as failed and expired, if its work has not begun within this time. Off by default.
    pub fn run_within(mut self, limit: Duration) -> Self {
        self.run_within = Some(limit);
        self
    }

    /// The W3C `traceparent` of whoever submits, for the worker's logs to join. What is none is left out.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into()).filter(|text| Trace::from_traceparent(text).is_some());
        self
    }

    /// Submits it. Dropping this future once it was polled stops nothing: a submission that has begun
    /// goes on as a tracked task, for which [`drain`](crate::drain) waits, so that a caller who hangs up
    /// leaves no key behind that keeps his retry out.
    ///
    /// # Errors
    /// [`SubmitError`], which says what to do.
    pub async fn send(self) -> Result<Submitted, SubmitError> {
        self.submitter.0.checked()?;
        self.checked()?;
        if task::crowded() {
            let what = "nothing was asked of it: too much work of this process goes on without its caller";
            return Err(StoreError::unavailable(what).into());
        }
        let (reply, answer) = oneshot::channel();
        let work = async move {
            // Whoever has hung up finds the same task by his key.
            let _ = reply.send(engine::send(self).await);
        };
        // It answers before it ends, unless the runtime itself goes away.
        let ended = || Err(StoreError::unanswered("the process is shutting down").into());
        attached(work, answer).await.unwrap_or_else(ended)
    }

    fn checked(&self) -> Result<(), InvalidSubmission> {
        self.input_hash.as_ref().map_err(Clone::clone)?;
        names::name("task type", &self.task_type)?;
        if let Some(queue) = &self.queue {
            names::name("queue", queue)?;
        }
        if let Some(tenant) = &self.tenant {
            names::name("tenant", tenant)?;
        }
        if let Scope::Queue(name) | Scope::Custom(name) = &self.scope {
            names::name("scope", name)?;
        }
        if let Some(key) = &self.key {
            names::key(key)?;
        }
        for (what, time) in [("idempotency ttl", Some(self.ttl)), ("time to run", self.run_within)] {
            if time.is_some_and(|time| time.is_zero() || time > LONGEST) {
                return Err(InvalidSubmission::Time { what });
            }
        }
        for (name, value) in &self.attributes {
            let problem = match name.as_str() {
                "task-id" | "task-scope" | "task-type" | "idempotency-key" | "traceparent" => {
                    "is set by the library: use another name"
                }
                name if name.is_empty() || name.len() > 256 => "has a name that is empty or over 256 bytes",
                name if name.starts_with("goog") => "has a name that begins with `goog`, which is Google's",
                _ if value.len() > 1024 => "has a value of more than 1024 bytes",
                _ if self.attributes.len() > ATTRIBUTES => "is one of too many: expected at most 90",
                _ => continue,
            };
            return Err(InvalidSubmission::Attribute { name: name.clone(), problem });
        }
        Ok(())
    }
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("task_type", &self.task_type)
            .field("queue", &self.queue)
            .field("tenant", &self.tenant)
            .field("scope", &self.scope)
            .field("key", &self.key)
            .field("input_len", &self.payload.len())
            .field("attributes", &self.attributes.keys())
            .finish_non_exhaustive()
    }
}
