//! `serialize`: the handler under the mutex of its entity, inside of the claim of its key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::handler::Handler;
use crate::lease::{Lease, RunError, Shutdown};
use crate::store::{BoxError, StoreError};
use crate::task::attached;
use crate::verbs::guard::{self, Interrupted, NotStarted, Plan, Ran, Reply};
use crate::verbs::pending::Pending;

/// Runs the handler under the entity's mutex. If that cannot be had the outer claim was for nothing,
/// and says so to its guard.
pub(super) async fn serialized<S, B, R>(
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
    let store = plan.store.clone();
    let (sender, result) = oneshot::channel();
    let work = move |_| async move {
        // While the entity was awaited this lease ran on, and somebody else may have the key by now.
        if !lease.fresh() {
            let what = "the wait for the entity took more than half of the key's lease";
            return Err(NotStarted(RunError::Store(StoreError::unavailable(what))).into());
        }
        begin.store(true, Ordering::Release);
        let key = lease.key().clone();
        // The lease that the handler sees is that of its own key.
        let answer = handler.run(Some(lease)).await?;
        // From here this process knows that the key is done, also while the entity is still released.
        Ok((answer, Pending::begin(&store, &key)))
    };
    let inner = attached(guard::start(plan, work, Nested { sender, gone }), result);
    match inner.await.unwrap_or(Err(RunError::Shutdown(Shutdown))) {
        Ok(ran) => Ok(ran.value.0),
        Err(error) if !began.load(Ordering::Acquire) => Err(NotStarted(error).into()),
        Err(RunError::Work(error)) => Err(error),
        Err(_) => Err(Interrupted.into()),
    }
}

/// A reply to the outer guard's work, which is closed when the outer caller has gone.
struct Nested<T> {
    sender: oneshot::Sender<Result<Ran<T>, RunError>>,
    gone: CancellationToken,
}

impl<T: Send + 'static> Reply<T> for Nested<T> {
    async fn closed(&mut self) {
        self.gone.cancelled().await;
    }

    fn send(self, result: Result<Ran<T>, RunError>) {
        // An error means that the outer work was cancelled, which has settled its own claim.
        let _ = self.sender.send(result);
    }
}
