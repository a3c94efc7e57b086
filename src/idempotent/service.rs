//! The service: what happens to one request, from its first byte to its answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Body;
use tokio::sync::oneshot;
use tower_service::Service;
use tracing::{Instrument as _, Span};

use super::answer::{Answering, Refusal, refuse};
use super::body::{self, Buffered};
use super::config::Config;
use super::followed;
use super::handler::Handler;
use super::keys::Keys;
use super::span;
use crate::key::Key;
use crate::lease::{RunError, Shutdown};
use crate::pubsub::Delivery;
use crate::pubsub::extract::{AXUM_LIMIT, lift_body_limit};
use crate::store::record::Verb;
use crate::store::{BoxError, BoxFuture};
use crate::task::{Attached, attached};
use crate::verbs::Settings;
use crate::verbs::guard;
use crate::verbs::plan::Plan;

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
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The instance that was polled ready is the one to be called; its clone stays behind.
        let clone = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, clone);
        if request.method() != Method::POST || self.disabled {
            return ResponseFuture(Course::Passed(Box::pin(ready.call(request))));
        }
        let config = self.config.clone();
        let (sender, answer) = oneshot::channel();
        let span = span::opened(&config, request.headers());
        let work = guarded(config.clone(), ready, request, sender, span.clone()).instrument(span);
        ResponseFuture(Course::Guarded(attached(work, answer), config))
    }
}

/// The answer to one request. Dropped, it stops nothing: what it has begun goes on without its caller.
#[must_use = "nothing is read or done before it is awaited"]
pub struct ResponseFuture<R, E>(Course<R, E>);

enum Course<R, E> {
    Passed(BoxFuture<'static, Result<Response<R>, E>>),
    Guarded(Attached<Response<Bytes>>, Arc<Config>),
}

impl<R: From<Bytes>, E> Future for ResponseFuture<R, E> {
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Course::Passed(response) => response.as_mut().poll(context),
            Course::Guarded(work, config) => Pin::new(work).poll(context).map(|answer| {
                // The work answers before it ends, unless the runtime itself goes away.
                let answer = answer
                    .unwrap_or_else(|| refuse(config, &RunError::Shutdown(Shutdown).into(), None, None));
                Ok(answer.map(R::from))
            }),
        }
    }
}

impl<R, E> fmt::Debug for ResponseFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Reads, decodes and keys a push, then hands it to the guard, under the entity's mutex where there is one.
async fn guarded<S, B, R>(
    config: Arc<Config>,
    ready: S,
    request: Request<B>,
    sender: oneshot::Sender<Response<Bytes>>,
    span: Span,
) where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    let (parts, body) = request.into_parts();
    let Push { delivery, keys, buffered } = match Push::read(&config, &parts.headers, body, &span).await {
        Ok(push) => push,
        Err(Turned { refusal, delivery, key }) => {
            // An error means that nobody waits, which changes nothing.
            let _ = sender.send(refuse(&config, &refusal, delivery.as_ref(), key.as_ref()));
            return;
        }
    };
    let request = restored(Request::from_parts(parts, B::from(delivery.body().clone())), &delivery);
    let handler = Handler { ready, request, response_limit: config.response_limit };
    let settings = config.settings;
    let place = keys.as_ref().map(|keys| keys.place.clone());
    let entity = keys.as_ref().and_then(|keys| keys.entity.clone());
    let followed = keys.as_ref().is_some_and(|keys| keys.followed);
    let plan = keys.map(|keys| plan(keys, &config, &delivery));
    let answering = Answering { config, delivery, place, entity, followed, lease: None, sender, buffered };
    match plan {
        Some(plan) => guard::start(plan, move |lease| handler.run(Some(lease)), answering).await,
        None => {
            let run = answering.measured();
            guard::unguarded(handler.run(None), settings, run, answering).await;
        }
    }
}

/// A push that was read.
struct Push {
    delivery: Delivery,
    /// `None` where it has no key and the layer allows that.
    keys: Option<Keys>,
    buffered: Buffered,
}

impl Push {
    async fn read<B>(config: &Config, headers: &HeaderMap, body: B, span: &Span) -> Result<Self, Turned>
    where
        B: Body<Error: Into<BoxError>>,
    {
        let (bytes, buffered) = body::read(body, config.limits).await.map_err(Turned::of)?;
        let delivery = Delivery::decode(headers, bytes).map_err(Turned::of)?;
        let keys = Keys::of(config, &delivery);
        let key = keys.as_ref().ok().and_then(|keys| keys.as_ref()).map(|keys| &keys.place.key);
        span::read(span, headers, &delivery, key);
        let keys = match keys {
            Ok(keys) => keys,
            Err(refusal) => return Err(Turned { refusal, delivery: Some(delivery), key: None }),
        };
        if let Some(follow) = &config.follow
            && let Some(Keys { place, .. }) = keys.as_ref().filter(|keys| keys.followed)
            // Boxed, since most layers are followed by nobody.
            && let Err(refusal) = Box::pin(followed::wanted(&**follow, place)).await
        {
            return Err(Turned { refusal, delivery: Some(delivery), key: Some(place.key.clone()) });
        }
        Ok(Self { delivery, keys, buffered })
    }
}

/// A push that never comes to the guard: why not, and what is known of it.
struct Turned {
    refusal: Refusal,
    delivery: Option<Delivery>,
    key: Option<Key>,
}

impl Turned {
    fn of(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: refusal.into(), delivery: None, key: None }
    }
}

/// The request as the handler sees it: the same body, and what the layer knows of it.
fn restored<B>(mut request: Request<B>, delivery: &Delivery) -> Request<B> {
    request.extensions_mut().insert(delivery.clone());
    if delivery.body().len() > AXUM_LIMIT {
        lift_body_limit(&mut request);
    }
    // axum's `Json` answers 415 to a body of no type, as unwrapped pushes have, which would be nacked for ever.
    request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    request
}

/// What is to be guarded for a push: its key, and the mutex of its entity if there is one.
fn plan(keys: Keys, config: &Config, delivery: &Delivery) -> Plan {
    let Keys { place, entity, digest, .. } = keys;
    let (settings, note) = (config.settings, delivery.note());
    let entity = entity.map(|place| {
        let settings = Settings { verb: Verb::Mutex, wait: config.serialize_wait, ..settings };
        Box::new(Plan { place, settings, digest: None, note: note.clone(), entity: None })
    });
    Plan { place, settings, digest, note, entity }
}
