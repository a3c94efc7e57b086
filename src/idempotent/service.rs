//! The service: what happens to one request, from its first byte to its answer.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use tokio::sync::oneshot;
use tower_service::Service;

use super::answer::{Answering, refuse};
use super::body;
use super::config::Config;
use super::handler::Handler;
use super::keys::Keys;
use crate::lease::{RunError, Shutdown};
use crate::pubsub::Delivery;
use crate::pubsub::extract::lift_body_limit;
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
    let (bytes, buffered) = match body::read(body, config.limits).await {
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
    let (sender, answer) = oneshot::channel();
    let answering = Answering {
        config: config.clone(),
        delivery: delivery.clone(),
        place: keys.as_ref().map(|keys| keys.place.clone()),
        lease: None,
        sender,
        buffered,
    };
    let handler = Handler { ready, request, response_limit: config.response_limit };
    let answer = match keys {
        Some(keys) => start(keys, &config, &delivery, handler, answering, answer).await,
        None => attached(guard::unguarded(handler.run(None), config.settings, answering), answer).await,
    };
    answer.unwrap_or_else(|| refuse(&config, &RunError::Shutdown(Shutdown).into(), Some(&delivery)))
}

/// The request as the handler sees it: the same body, and what the layer knows of it.
fn restored<B>(mut request: Request<B>, delivery: &Delivery) -> Request<B> {
    request.extensions_mut().insert(delivery.clone());
    lift_body_limit(&mut request);
    // axum's `Json` answers 415 to a body of no type, as unwrapped pushes have, which would be nacked for ever.
    request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    request
}

/// Starts the handler under the key, and under the entity's mutex where there is one.
fn start<S, B, R>(
    keys: Keys,
    config: &Config,
    delivery: &Delivery,
    handler: Handler<S, B>,
    answering: Answering,
    answer: oneshot::Receiver<Response<Bytes>>,
) -> Attached<Response<Bytes>>
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    let Keys { place, entity, digest } = keys;
    let (settings, note) = (config.settings, delivery.note());
    let entity = entity.map(|place| {
        let settings = Settings { verb: Verb::Mutex, wait: config.serialize_wait, ..settings };
        Box::new(Plan { place, settings, digest: None, note: note.clone(), entity: None })
    });
    let plan = Plan { place, settings, digest, note, entity };
    attached(guard::start(plan, move |lease| handler.run(Some(lease)), answering), answer)
}
