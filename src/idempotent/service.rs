//! The service: what happens to one request, from its first byte to its answer.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use tracing::Instrument as _;

use super::answer::{Answering, HandlerFailed, Refusal, refuse};
use super::body::{self, Limits};
use super::layer::{Config, PayloadCheck, Unguarded};
use super::report::chain;
use crate::key::{Consumer, InvalidKey, Key, join};
use crate::lease::{Lease, Note, Panicked, RunError, Shutdown};
use crate::pubsub::extract::{lift_body_limit, verdict};
use crate::pubsub::{CloudEvent, Delivery, KeyRule, Shape};
use crate::store::record::Verb;
use crate::store::{BoxError, BoxFuture, StoreError};
use crate::task;
use crate::verbs::Settings;
use crate::verbs::guard::{self, NotStarted, Plan, Ran, Reply};

/// A service whose POSTs are guarded. Made by [`IdempotentLayer`](super::IdempotentLayer).
#[derive(Clone)]
pub struct IdempotentService<S> {
    inner: S,
    config: Arc<Config>,
    disabled: bool,
}

impl<S> IdempotentService<S> {
    pub(super) fn new(inner: S, config: Arc<Config>, disabled: bool) -> Self {
        Self { inner, config, disabled }
    }
}

impl<S> fmt::Debug for IdempotentService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentService").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for IdempotentService<S>
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    B::Data: Send,
    R: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R::Data: Send,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The instance that was polled ready is the one to be called; its clone stays behind.
        let clone = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, clone);
        if request.method() != Method::POST || self.disabled {
            return Box::pin(ready.call(request));
        }
        let config = self.config.clone();
        Box::pin(async move { Ok(guarded(config, ready, request).await.map(R::from)) })
    }
}

/// Reads, decodes and keys a push, then hands it to the guard and waits for the answer.
async fn guarded<S, B, R>(config: Arc<Config>, ready: S, request: Request<B>) -> Response<Bytes>
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    let (parts, body) = request.into_parts();
    let read = body::read(body, config.limits).await;
    let (bytes, buffered) = match read {
        Ok(read) => read,
        Err(error) => return refuse(&config, &error.into(), None),
    };
    let delivery = match Delivery::decode(&parts.headers, bytes) {
        Ok(delivery) => delivery,
        Err(error) => return refuse(&config, &error.into(), None),
    };
    let keys = match Keys::of(&config, &delivery) {
        Ok(keys) => keys,
        Err(error) => return refuse(&config, &error, Some(&delivery)),
    };
    let request = restored(Request::from_parts(parts, B::from(delivery.body().clone())), &delivery);
    let gone = CancellationToken::new();
    // Cancelled when this future is dropped, that is when the caller has hung up.
    let _here = gone.clone().drop_guard();
    let (sender, answer) = oneshot::channel();
    let lease = Arc::new(OnceLock::new());
    let key = keys.as_ref().map(|keys| keys.key.clone());
    let answering = Answering {
        config: config.clone(),
        delivery: delivery.clone(),
        key,
        lease: lease.clone(),
        sender,
        gone: gone.clone(),
        buffered,
    };
    let handler = Handler { ready, request, lease, response_limit: config.response_limit };
    match keys {
        Some(keys) => keys.guard(&config, &delivery, handler, answering, gone),
        None => drop(task::spawn(unguarded(handler, answering).in_current_span())),
    }
    answer.await.unwrap_or_else(|_| refuse(&config, &RunError::Shutdown(Shutdown).into(), Some(&delivery)))
}

/// The request as the handler sees it: the same body, and what the layer knows of it.
fn restored<B>(mut request: Request<B>, delivery: &Delivery) -> Request<B> {
    request.extensions_mut().insert(delivery.clone());
    lift_body_limit(&mut request);
    // axum's `Json` answers 415 where an unwrapped push says nothing of its type, which would be nacked for ever.
    if delivery.shape() == Shape::Unwrapped && !request.headers().contains_key(CONTENT_TYPE) {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    request
}

/// The keys of one push.
struct Keys {
    key: Key,
    entity: Option<Key>,
    digest: Option<[u8; 32]>,
}

impl Keys {
    /// `None` where the message has no key and the layer allows that.
    fn of(config: &Config, delivery: &Delivery) -> Result<Option<Self>, Refusal> {
        let consumer = config.consumer.clone().map_err(RunError::Key)?;
        let entity = match &config.serialize {
            None => None,
            Some(rule) => match rule.resolve(delivery)? {
                None => return Err(Unkeyed::of(delivery, "the entity of `serialize`").into()),
                Some(text) => Some(entity(rule, &consumer, text).map_err(RunError::Key)?),
            },
        };
        let Some(text) = config.key.resolve(delivery)? else {
            return match config.unguarded {
                Unguarded::Allow => Ok(None),
                Unguarded::Refuse => Err(Unkeyed::of(delivery, "the key").into()),
            };
        };
        let key = Key::new(consumer, text).map_err(RunError::Key)?;
        let digest = match config.check {
            PayloadCheck::Off => None,
            PayloadCheck::Alert | PayloadCheck::Refuse => Some(delivery.digest()?),
        };
        Ok(Some(Self { key, entity, digest }))
    }

    /// Starts the handler under the key, and under the entity's mutex where there is one.
    fn guard<S, B, R>(
        self,
        config: &Config,
        delivery: &Delivery,
        handler: Handler<S, B>,
        answering: Answering,
        gone: CancellationToken,
    ) where
        S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
        B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
        R: Body<Error: Into<BoxError>> + Send + 'static,
    {
        let note = Note {
            message: delivery
                .message_id()
                .or_else(|| delivery.event().map(CloudEvent::id))
                .map(str::to_owned),
            delivery: delivery.subscription().map(str::to_owned),
        };
        let mut settings = config.settings.clone();
        let Some(entity) = self.entity else {
            let plan =
                Plan { key: self.key, store: config.store.clone(), settings, digest: self.digest, note };
            return guard::start(plan, move |lease| handler.run(Some(lease)), answering);
        };
        let inner = Settings { verb: Verb::Mutex, wait: config.serialize_wait, ..settings.clone() };
        // The time limit is the handler's alone: waiting for the entity has its own.
        settings.work_timeout = None;
        let store = config.store.clone();
        let inner =
            Plan { key: entity, store: store.clone(), settings: inner, digest: None, note: note.clone() };
        let plan = Plan { key: self.key, store, settings, digest: self.digest, note };
        guard::start(plan, move |lease| serialized(inner, handler, lease, gone), answering);
    }
}

/// The entity's key, in a key space of its own that no de-duplicated key can meet.
fn entity(rule: &KeyRule, consumer: &Consumer, text: String) -> Result<Key, InvalidKey> {
    let scope = rule.scope_name().unwrap_or(consumer.as_str()).to_owned();
    Key::new(Consumer::reserved("serialize"), join(&[scope, text]))
}

/// Runs the handler under the entity's mutex. If that cannot be had the outer claim was for nothing,
/// and says so to its guard.
async fn serialized<S, B, R>(
    plan: Plan,
    handler: Handler<S, B>,
    lease: Lease,
    gone: CancellationToken,
) -> Result<Response<Bytes>, BoxError>
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    let began = Arc::new(AtomicBool::new(false));
    let begin = began.clone();
    let (sender, result) = oneshot::channel();
    let work = move |_| async move {
        // While the entity was awaited this lease ran on, and somebody else may have the key by now.
        if !lease.fresh() {
            let what = "the wait for the entity took more than half of the key's lease";
            return Err(NotStarted(RunError::Store(StoreError::unavailable(what))).into());
        }
        begin.store(true, Ordering::Release);
        handler.run(Some(lease)).await
    };
    guard::start(plan, work, Nested { sender, gone });
    match result.await.unwrap_or(Err(RunError::Shutdown(Shutdown))) {
        Ok(ran) => Ok(ran.value),
        Err(error) if !began.load(Ordering::Acquire) => Err(NotStarted(error).into()),
        Err(RunError::Work(error)) => Err(error),
        Err(error) => Err(error.into()),
    }
}

/// A reply to the outer guard's work, which is closed when the outer caller has gone.
struct Nested {
    sender: oneshot::Sender<Result<Ran<Response<Bytes>>, RunError>>,
    gone: CancellationToken,
}

impl Reply<Response<Bytes>> for Nested {
    async fn closed(&mut self) {
        self.gone.cancelled().await;
    }

    fn send(self, result: Result<Ran<Response<Bytes>>, RunError>) {
        // An error means that the outer work was cancelled, which has settled its own claim.
        let _ = self.sender.send(result);
    }
}

/// A message without a key, whose handler runs all the same.
async fn unguarded<S, B, R>(handler: Handler<S, B>, answering: Answering)
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    let result = match AssertUnwindSafe(handler.run(None)).catch_unwind().await {
        Ok(Ok(value)) => Ok(Ran { value, uncertain: None }),
        Ok(Err(error)) => Err(RunError::Work(error)),
        Err(panic) => Err(RunError::Work(Panicked { message: guard::message(&*panic) }.into())),
    };
    answering.send(result);
}

/// The wrapped service, ready, with its request.
struct Handler<S, B> {
    ready: S,
    request: Request<B>,
    /// Told to whoever logs the delivery.
    lease: Arc<OnceLock<Lease>>,
    response_limit: usize,
}

impl<S, B> Handler<S, B> {
    /// Calls it and reads its answer to the end, since work may be done inside of a streamed body.
    async fn run<R>(mut self, lease: Option<Lease>) -> Result<Response<Bytes>, BoxError>
    where
        S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>>,
        R: Body<Error: Into<BoxError>>,
    {
        if let Some(lease) = lease {
            self.request.extensions_mut().insert(lease.clone());
            // Set once: a handler runs once.
            let _ = self.lease.set(lease);
        }
        let response = self.ready.call(self.request).await.map_err(Into::into)?;
        let (parts, body) = response.into_parts();
        let limits = Limits { body: self.response_limit, budget: usize::MAX, time: Duration::MAX };
        let (bytes, _) = body::read(body, limits)
            .await
            .map_err(|error| format!("the handler's answer: {}", chain(&error)))?;
        let response = Response::from_parts(parts, bytes);
        // A `Failure` may carry the status of another key's duplicate, 204, and is a failure all the same.
        if response.status().is_success() && verdict(response.extensions()).is_none() {
            Ok(response)
        } else {
            Err(HandlerFailed(response).into())
        }
    }
}

/// A message that gives no key. Nothing was claimed; answer 422.
#[derive(Debug, thiserror::Error)]
#[error("the message has no {what}: {hint}")]
pub(super) struct Unkeyed {
    what: &'static str,
    hint: &'static str,
}

impl Unkeyed {
    fn of(delivery: &Delivery, what: &'static str) -> Self {
        let hint = match delivery.shape() {
            Shape::Bare => {
                "the push is unwrapped and has no metadata; set `write_metadata` on the subscription"
            }
            _ => "the attribute, pointer or id of its rule is absent or blank",
        };
        Self { what, hint }
    }
}
