//! One instance of the service: whether it is alive, awake and connected, and what its clocks show.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pushonce::Clock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::invariants::Health;
use crate::rng::Rng;
use crate::schedule::secs;

/// Clocks that are further apart are outside of the promise.
const SKEW: i64 = 5 * 3_600;

/// One instance of the service, from its start to its crash.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) id: usize,
    pub(crate) died: CancellationToken,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stalled_until: Instant,
    outage_until: Instant,
    quiet_since: Instant,
    /// Seconds by which the wall clock is wrong.
    skew: i64,
    /// How long the monotonic clock stood still. A wall clock that is then set back as well would
    /// hide time from every holder, so an instance has the one or the other.
    suspended: Duration,
    suspends: bool,
}

impl Instance {
    /// One whose wall clock is wrong.
    pub(crate) fn boot(id: usize, start: Instant, rng: &mut Rng) -> Self {
        let now = Instant::now();
        let state = State {
            stalled_until: now,
            outage_until: now,
            quiet_since: now,
            skew: rng.below(2 * SKEW as usize) as i64 - SKEW,
            suspended: Duration::ZERO,
            suspends: rng.chance(0.5),
        };
        Self { id, died: CancellationToken::new(), start, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn alive(&self) -> bool {
        !self.died.is_cancelled()
    }

    /// Waits until it is not stalled.
    pub(crate) async fn awake(&self) {
        loop {
            let until = self.state().stalled_until;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Nothing is to be expected of it before `until`.
    pub(crate) fn hindered(&self, until: Instant) {
        let mut state = self.state();
        state.quiet_since = state.quiet_since.max(until);
    }

    pub(crate) fn cut_off(&self) -> bool {
        Instant::now() < self.state().outage_until
    }

    pub(crate) fn cut(&self, until: Instant) {
        let mut state = self.state();
        state.outage_until = state.outage_until.max(until);
        state.quiet_since = state.quiet_since.max(until);
    }

    /// Stands still from now on; whether its monotonic clock does, too.
    pub(crate) fn stall(&self, time: Duration, suspend: bool) -> bool {
        let mut state = self.state();
        let now = Instant::now();
        let until = state.stalled_until.max(now + time);
        let suspend = suspend && state.suspends && state.stalled_until <= now;
        if suspend {
            state.suspended += time;
        }
        state.stalled_until = until;
        state.quiet_since = state.quiet_since.max(until);
        suspend
    }

    pub(crate) fn jump(&self, seconds: i64) {
        let mut state = self.state();
        let seconds = if state.suspends { seconds.abs() } else { seconds };
        state.skew = (state.skew + seconds).clamp(state.skew.min(-SKEW), SKEW.max(state.skew));
    }

    pub(crate) fn health(&self) -> Health {
        Health { alive: self.alive(), quiet_since: self.state().quiet_since }
    }
}

impl Clock for Instance {
    fn wall(&self) -> SystemTime {
        let real = UNIX_EPOCH + secs(1_700_000_000) + self.start.elapsed();
        let skew = self.state().skew;
        let off = secs(skew.unsigned_abs());
        if skew < 0 { real - off } else { real + off }
    }

    fn monotonic(&self) -> Duration {
        // A suspension counts from its start: monotonic time does not go back in it.
        let state = self.state();
        let stalled = state.stalled_until.saturating_duration_since(Instant::now());
        let still = if stalled.is_zero() { state.suspended } else { state.suspended.saturating_sub(stalled) };
        secs(1_000) + self.start.elapsed() - still
    }
}
