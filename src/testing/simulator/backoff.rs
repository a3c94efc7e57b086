//! When a message is sent again: the retry policy of each message, and the push backoff of them all.

use std::time::Duration;

use super::settings::Settings;
use crate::random::share;

/// What "immediately" is here, so that time passes: as fine as tokio's timers are.
const AT_ONCE: Duration = Duration::from_millis(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The delay after the `nacks`-th nack of a message.
pub(super) fn delay(settings: &Settings, nacks: u32, rng: &mut u64) -> Duration {
    let Some((minimum, maximum)) = settings.retry else { return AT_ONCE };
    let (least, most) = (*settings.factor.start(), *settings.factor.end());
    let factor = least + share(rng) * (most - least);
    doubled(minimum, nacks, maximum).mul_f64(factor).max(AT_ONCE)
}

/// `first` after the first, doubled with each further one.
fn doubled(first: Duration, count: u32, most: Duration) -> Duration {
    let factor = 2u32.saturating_pow(count.saturating_sub(1));
    first.saturating_mul(factor).min(most)
}

/// The push backoff: while it lasts, nothing of the subscription is sent.
#[derive(Debug, Default)]
pub(super) struct Pause {
    steps: u32,
    until: Duration,
}

impl Pause {
    pub(super) fn until(&self) -> Duration {
        self.until
    }

    pub(super) fn nacked(&mut self, now: Duration) {
        self.steps = self.steps.saturating_add(1);
        self.until = now.saturating_add(doubled(SHORTEST_PAUSE, self.steps, LONGEST_PAUSE));
    }

    pub(super) fn acked(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }
}
