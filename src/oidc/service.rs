//! The service: a request goes on with its caller, or not at all.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::config::Gate;
use crate::store::BoxFuture;

/// A service that only the expected callers reach. Made by [`PushAuthLayer`](super::PushAuthLayer).
#[derive(Clone, Debug)]
pub struct PushAuthService<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S> PushAuthService<S> {
    pub(super) fn new(inner: S, gate: Arc<Gate>) -> Self {
        Self { inner, gate }
    }
}

impl<S, B, R> Service<Request<B>> for PushAuthService<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Send> + Clone + Send + 'static,
    B: Send + 'static,
    R: From<Bytes> + 'static,
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
        let ready = std::mem::replace(&mut self.inner, clone);
        ResponseFuture(Box::pin(guarded(self.gate.clone(), ready, request)))
    }
}

async fn guarded<S, B, R>(gate: Arc<Gate>, mut ready: S, request: Request<B>) -> Result<Response<R>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<Bytes>,
{
    let (mut parts, body) = request.into_parts();
    match gate.admit(&parts.headers).await {
        Ok(caller) => {
            parts.extensions.insert(caller);
            ready.call(Request::from_parts(parts, body)).await
        }
        Err(why) => Ok(why.response().map(R::from)),
    }
}

/// The answer to one request.
#[must_use = "nothing is checked or done before it is awaited"]
pub struct ResponseFuture<R, E>(BoxFuture<'static, Result<Response<R>, E>>);

impl<R, E> Future for ResponseFuture<R, E> {
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<R, E> fmt::Debug for ResponseFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
