//! Clocks for tests: one that is moved by hand, and one that follows tokio's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::time::Clock;

/// What the wall shows when a test clock is made: the first of January 2026, UTC.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A [`Clock`] that stands still until it is moved. Clones show the same time.
///
/// Give it to the store, which then ages its records by it, and to the verbs or the layer. Only
/// clocks move: a sleep, and so a wait or a renewal, still takes tokio's time. To move both at
/// once, use [`TokioClock`].
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// use pushonce::{Store, lock, store::Memory, testing::ManualClock};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pushonce::RunError> {
/// let clock = ManualClock::new();
/// let store: Arc<dyn Store> = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
/// let remind = || lock("po-1", &store).ttl(Duration::from_secs(60)).run(async { Ok(()) });
///
/// remind().await?;
/// clock.advance(Duration::from_secs(59));
/// assert!(remind().await.is_err());
/// clock.advance(Duration::from_secs(1));
/// remind().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Mutex<Hands>>);

#[derive(Debug, Default)]
struct Hands {
    elapsed: Duration,
    ahead: Duration,
    behind: Duration,
}

impl ManualClock {
    /// A clock that shows the first of January 2026, UTC.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both clocks on.
    pub fn advance(&self, by: Duration) {
        let mut hands = self.hands();
        hands.elapsed = hands.elapsed.saturating_add(by);
    }

    /// Sets the wall clock so far ahead of the right time, in place of an earlier skew. The monotonic clock does not notice.
    pub fn ahead(&self, by: Duration) {
        let mut hands = self.hands();
        (hands.ahead, hands.behind) = (by, Duration::ZERO);
    }

    /// Sets the wall clock so far behind the right time, in place of an earlier skew. The monotonic clock does not notice.
    pub fn behind(&self, by: Duration) {
        let mut hands = self.hands();
        (hands.ahead, hands.behind) = (Duration::ZERO, by);
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> SystemTime {
        let hands = self.hands();
        let right = START.saturating_add(hands.elapsed);
        let shown = right.saturating_add(hands.ahead).saturating_sub(hands.behind);
        UNIX_EPOCH.checked_add(shown).unwrap_or(UNIX_EPOCH)
    }

    fn monotonic(&self) -> Duration {
        self.hands().elapsed
    }
}

/// A [`Clock`] that follows tokio's: in a test with paused time, leases and ttls pass as fast as sleeps do.
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// use pushonce::{RunError, Store, lock, store::Memory, testing::TokioClock};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), RunError> {
/// let store: Arc<dyn Store> = Arc::new(Memory::with_clock(Arc::new(TokioClock::new())));
/// lock("po-1", &store).run(async { Ok(()) }).await?;
/// tokio::time::sleep(Duration::from_secs(8 * 24 * 60 * 60)).await; // over at once, since nothing else is to be done
/// lock("po-1", &store).run(async { Ok(()) }).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct TokioClock(Instant);

impl TokioClock {
    /// A clock that shows the first of January 2026, UTC. Made in the runtime whose time it follows.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn wall(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(START.saturating_add(self.monotonic())).unwrap_or(UNIX_EPOCH)
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_their_hands_and_a_skew_moves_the_wall_only() {
        let clock = ManualClock::new();
        let (other, start) = (clock.clone(), clock.wall());
        clock.advance(Duration::from_secs(10));
        assert_eq!(other.monotonic(), Duration::from_secs(10));
        assert_eq!(other.wall(), start + Duration::from_secs(10));
        clock.behind(Duration::from_secs(60));
        assert_eq!(other.wall(), start - Duration::from_secs(50));
        clock.ahead(Duration::from_secs(5));
        assert_eq!(other.wall(), start + Duration::from_secs(15));
        assert_eq!(other.monotonic(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_clock_follows_tokio() {
        let clock = TokioClock::new();
        let start = clock.wall();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.monotonic(), Duration::from_secs(3600));
        assert_eq!(clock.wall(), start + Duration::from_secs(3600));
    }
}
