//! The one process-wide task tracker: everything that writes is counted by it, and shutdown drains it.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument as _, Span};

/// How much work may go on without its caller. Over it nothing new is admitted.
const DETACHED_LIMIT: usize = 1024;

static TASKS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);
static CANCEL: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
static DRAINING: AtomicBool = AtomicBool::new(false);
static STOPPING: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
static DETACHED: AtomicUsize = AtomicUsize::new(0);

/// Runs a future to its end, whoever hangs up, and counts it until then.
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    TASKS.spawn(future)
}

/// Runs upkeep until its handle is dropped or the process begins to shut down, which waits for nothing
/// that can be done another day.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(crate) fn upkeep(work: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(spawn(async move {
        tokio::select! {
            () = stopping() => {}
            () = work => {}
        }
    }))
}

/// Runs work that answers, and may go on after its answer. See [`Attached`].
pub(crate) fn attached<T>(
    work: impl Future<Output = ()> + Send + 'static,
    answer: oneshot::Receiver<T>,
) -> Attached<T> {
    Attached {
        begun: false,
        work: Some(Box::pin(work)),
        answer,
        span: Span::current(),
        _counted: TASKS.token(),
    }
}

/// Work that runs in its caller's own task for as long as the caller is there, and as a tracked task
/// of its own once the caller drops this, or has the answer while something is still to be settled.
///
/// So nothing is lost when a caller hangs up, and a message whose caller stays (nearly all) does not
/// pay for a task of its own. Like any future it does nothing before its first poll, and dropped
/// before that it never will. `None` if the work ended without an answer.
#[must_use = "nothing begins before the first poll"]
pub(crate) struct Attached<T> {
    begun: bool,
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    answer: oneshot::Receiver<T>,
    span: Span,
    _counted: TaskTrackerToken,
}

impl<T> Attached<T> {
    fn detach(&mut self) {
        let Some(work) = self.work.take().filter(|_| self.begun) else { return };
        // Tells the work that nobody waits any more.
        self.answer.close();
        // Outside of a runtime, as a process ends, nothing can go on: leases lapse.
        if Handle::try_current().is_ok() {
            let counted = Detached::begin();
            let rest = work.instrument(self.span.clone());
            spawn(async move {
                rest.await;
                drop(counted);
            });
        }
    }
}

impl<T> Future for Attached<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        // Taken out while it is polled: work that panics is over, and must not be handed on.
        let Some(mut work) = self.work.take() else { return Poll::Ready(None) };
        self.begun = true;
        let ended = work.as_mut().poll(context).is_ready();
        if !ended {
            self.work = Some(work);
        }
        match self.answer.try_recv() {
            Ok(answer) => {
                self.detach();
                Poll::Ready(Some(answer))
            }
            Err(TryRecvError::Empty | TryRecvError::Closed) if !ended => Poll::Pending,
            Err(_) => Poll::Ready(None),
        }
    }
}

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Whether the process has begun to shut down: no new work is admitted.
pub(crate) fn draining() -> bool {
    DRAINING.load(Ordering::Acquire)
}

/// Ends when the process begins to shut down: for what need not be done by this process.
pub(crate) async fn stopping() {
    STOPPING.cancelled().await;
}

/// Ends when the work in flight has to stop. Settling goes on.
pub(crate) async fn cancelled() {
    CANCEL.cancelled().await;
}

/// Whether so much work goes on without its caller, which has gone or has its answer, that nothing new
/// is admitted.
pub(crate) fn crowded() -> bool {
    DETACHED.load(Ordering::Relaxed) >= DETACHED_LIMIT
}

/// Counts work without a caller, for as long as it lives.
struct Detached(());

impl Detached {
    fn begin() -> Self {
        DETACHED.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        DETACHED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What [`drain`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "left-over work means that a lease will have to lapse"]
pub struct Drained {
    /// Whether work had to be cancelled because it did not end by itself.
    pub cancelled: bool,
    /// Work and completions still in flight when the limit was reached. Their leases lapse.
    pub left: usize,
}

/// Shuts pushonce down in this process: admits no new work, waits for the work and the settling in
/// flight, cancels what is left shortly before `limit` (see "cancel" in `docs/failures.md`), and
/// returns at `limit` at the latest.
///
/// For those who do not use `serve()`, which calls it. Cloud Run sends SIGTERM and kills ten
/// seconds later, so a limit of eight seconds is a good one. There is no way back: after a drain the
/// process guards nothing any more.
pub async fn drain(limit: Duration) -> Drained {
    DRAINING.store(true, Ordering::Release);
    STOPPING.cancel();
    TASKS.close();
    // The last part of the limit belongs to the settling of what was cancelled.
    let reserve = (limit / 4).min(Duration::from_secs(1));
    if tokio::time::timeout(limit.saturating_sub(reserve), TASKS.wait()).await.is_ok() {
        return Drained { cancelled: false, left: 0 };
    }
    CANCEL.cancel();
    let ended = tokio::time::timeout(reserve, TASKS.wait()).await.is_ok();
    Drained { cancelled: true, left: if ended { 0 } else { TASKS.len() } }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn work_that_was_never_polled_is_dropped_and_work_that_was_goes_on() {
        let ran = Arc::new(AtomicUsize::new(0));
        let work = || {
            let ran = ran.clone();
            async move {
                tokio::task::yield_now().await;
                ran.fetch_add(1, Ordering::SeqCst);
            }
        };
        let (_sender, answer) = oneshot::channel::<()>();
        drop(attached(work(), answer));
        assert_eq!(Arc::strong_count(&ran), 1);
        let (_sender, answer) = oneshot::channel::<()>();
        let mut begun = Box::pin(attached(work(), answer));
        assert!(poll_fn(|context| Poll::Ready(begun.as_mut().poll(context).is_pending())).await);
        drop(begun);
        while Arc::strong_count(&ran) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_that_panics_is_dropped_and_never_polled_again() {
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = polls.clone();
        let work = poll_fn(move |_| -> Poll<()> {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("in the work")
        });
        let (_sender, answer) = oneshot::channel::<()>();
        // `tokio::spawn` is where a panic goes that nobody catches.
        let caller = TASKS.spawn(attached(work, answer));
        assert!(caller.await.is_err_and(|error| error.is_panic()));
        tokio::task::yield_now().await;
        assert_eq!((polls.load(Ordering::SeqCst), Arc::strong_count(&polls)), (1, 1));
    }
}
