//! Time, injected: the wall clock, a monotonic clock, and the stopwatch by which a holder counts its lease.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The two clocks that pushonce reads. [`SystemClock`] is the real one; tests inject others.
///
/// A clock decides nothing about ownership (that is the record's version) and, on stores that tell
/// their own time, nothing about when a key may be taken over.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The wall clock: used for fences, `expires_at` and receipts.
    fn wall(&self) -> SystemTime;
    /// Time since some fixed origin. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
    fn monotonic(&self) -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let now = Instant::now();
        now.saturating_duration_since(*ORIGIN.get_or_init(|| now))
    }
}

/// The machine's clock behind a pointer, made once.
pub(crate) fn system_clock() -> Arc<dyn Clock> {
    static CLOCK: OnceLock<Arc<dyn Clock>> = OnceLock::new();
    CLOCK.get_or_init(|| Arc::new(SystemClock)).clone()
}

/// Microseconds since the Unix epoch; the unit of fences and of every time in a record.
pub(crate) fn micros(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, duration_micros)
}

/// Whole microseconds, capped instead of wrapped.
pub(crate) fn duration_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What a future gives at its first poll. Most futures here are ready at once.
pub(crate) async fn at_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// What a future gives within `limit`, or `None`. Where it is ready at once no timer is made. Takes it
/// pinned, since a future that takes another by value is twice its size.
pub(crate) async fn within<F: Future>(limit: Duration, mut future: Pin<&mut F>) -> Option<F::Output> {
    match at_once(future.as_mut()).await {
        Poll::Ready(output) => Some(output),
        // Boxed: the timer is large, and most never need it.
        Poll::Pending => Box::pin(tokio::time::timeout(limit, future)).await.ok(),
    }
}

/// Time elapsed since it was started, as a holder counts it: the larger of the monotonic and the wall clock.
///
/// The monotonic clock stands still while a machine is suspended, and the wall clock can be set back;
/// a holder that believes the larger of the two never believes that it has more lease than it has.
#[derive(Debug, Clone)]
pub(crate) struct Stopwatch {
    clock: Arc<dyn Clock>,
    wall: SystemTime,
    monotonic: Duration,
}

impl Stopwatch {
    pub(crate) fn start(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: clock.clone(), wall: clock.wall(), monotonic: clock.monotonic() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let wall = self.clock.wall().duration_since(self.wall).unwrap_or_default();
        self.steady().max(wall)
    }

    /// By the monotonic clock alone: never more than has passed, also when the wall clock was set forward.
    pub(crate) fn steady(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.monotonic)
    }
}
