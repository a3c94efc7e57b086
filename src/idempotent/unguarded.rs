//! A message without a key, where the layer allows that: the handler runs, and nothing is claimed or recorded.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use tracing::Instrument as _;

use super::answer::Answering;
use super::handler::Handler;
use crate::lease::{Panicked, RunError, Shutdown, TimedOut};
use crate::store::BoxError;
use crate::task::{self, Detached};
use crate::verbs::guard::{self, Ran, Reply as _};

/// Runs the handler on the tracker, with the time limit and the shutdown of guarded work.
pub(super) fn start<S, B, R>(handler: Handler<S, B>, limit: Option<Duration>, answering: Answering)
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    if task::draining() {
        return answering.send(Err(RunError::Shutdown(Shutdown)));
    }
    task::spawn(run(handler, limit, answering).in_current_span());
}

async fn run<S, B, R>(handler: Handler<S, B>, limit: Option<Duration>, mut answering: Answering)
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: Body<Error: Into<BoxError>> + From<Bytes> + Send + 'static,
    R: Body<Error: Into<BoxError>> + Send + 'static,
{
    let result = {
        let mut work = pin!(AssertUnwindSafe(handler.run(None)).catch_unwind());
        let mut late = pin!(tokio::time::sleep(limit.unwrap_or_default()));
        let mut cancelled = pin!(task::cancelled());
        let mut closed = pin!(answering.closed());
        let mut detached = None;
        loop {
            tokio::select! {
                biased;
                ended = &mut work => break match ended {
                    Ok(Ok(value)) => Ok(Ran { value, uncertain: None }),
                    Ok(Err(error)) => Err(RunError::Work(error)),
                    Err(panic) => {
                        Err(RunError::Work(Panicked { message: guard::message(&*panic) }.into()))
                    }
                },
                () = &mut late, if limit.is_some() => {
                    let limit = limit.unwrap_or_default();
                    break Err(RunError::Work(TimedOut { limit }.into()));
                }
                () = &mut cancelled => break Err(RunError::Shutdown(Shutdown)),
                () = &mut closed, if detached.is_none() => detached = Some(Detached::begin()),
            }
        }
    };
    answering.send(result);
}
