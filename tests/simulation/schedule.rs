//! What a seed stands for: the settings, the messages and the mishaps of one schedule.

use std::time::Duration;

use crate::rng::Rng;

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How the handler is guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Layer,
    Serialize,
    AtMostOnce,
    LockVerb,
    MutexVerb,
    AtMostOnceVerb,
}

impl Route {
    pub(crate) fn marks(self) -> bool {
        matches!(self, Self::AtMostOnce | Self::AtMostOnceVerb)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: usize,
    pub(crate) key: String,
    pub(crate) entity: String,
    pub(crate) at: Duration,
}

/// A mishap that comes from outside. Which instance it hits is drawn when it comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// Killed; another instance takes its place after this time.
    Crash(Duration),
    /// Stands still this long, then goes on; `true` if its monotonic clock stood still too.
    Stall(Duration, bool),
    /// Cannot reach the store this long.
    Outage(Duration),
    /// Its wall clock is set by so many seconds.
    Jump(i64),
}

#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) route: Route,
    pub(crate) instances: usize,
    pub(crate) lease: Duration,
    pub(crate) ttl: Duration,
    pub(crate) renew: bool,
    pub(crate) work_timeout: Option<Duration>,
    pub(crate) cancel_safe: bool,
    pub(crate) wait: Duration,
    pub(crate) ack_deadline: Duration,
    pub(crate) longest_backoff: Duration,
    /// How many deliveries come before the dead-letter topic, where there is one.
    pub(crate) attempts: Option<u32>,
    /// Whether the store tells what stands when it refuses a write.
    pub(crate) tells: bool,
    /// The share of store calls that go wrong.
    pub(crate) faults: f64,
    /// The share of work that does not simply succeed.
    pub(crate) trouble: f64,
    /// How long things go wrong, from the start of each wave.
    pub(crate) chaos: Duration,
    /// When the waves of messages start. Before a second one garbage is collected.
    pub(crate) waves: Vec<Duration>,
    pub(crate) messages: Vec<Message>,
    pub(crate) events: Vec<(Duration, Event)>,
}

impl Schedule {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let route = rng.pick(&[
            Route::Layer,
            Route::Layer,
            Route::Serialize,
            Route::AtMostOnce,
            Route::LockVerb,
            Route::MutexVerb,
            Route::AtMostOnceVerb,
        ]);
        let lease = rng.pick(&[secs(20), secs(60), secs(60), secs(120), secs(900)]);
        let ttl = rng.pick(&[secs(120), secs(3_600), secs(20 * 3_600)]);
        let chaos = rng.between(secs(30), (lease * 3).min(secs(400)));
        let mut waves = vec![Duration::ZERO];
        if rng.chance(0.25) {
            // Over everything's retention, for clocks that are some hours off, or only over the ttl.
            let kept = if rng.chance(0.7) { secs(30 * 3_600) } else { secs(3_600) };
            waves.push(lease + ttl + kept);
        }
        let work_timeout = rng.chance(0.25).then(|| rng.between(secs(5), lease * 2));
        let mut schedule = Self {
            route,
            instances: 1 + rng.below(3),
            lease,
            ttl,
            renew: rng.chance(0.3),
            work_timeout,
            cancel_safe: rng.chance(0.5),
            wait: rng.pick(&[Duration::ZERO, secs(2), secs(8)]),
            ack_deadline: rng.pick(&[secs(10), secs(60), secs(600)]),
            longest_backoff: rng.pick(&[secs(10), secs(60)]),
            attempts: rng.chance(0.3).then(|| 5 + rng.below(6) as u32),
            tells: rng.chance(0.5),
            faults: rng.pick(&[0.0, 0.05, 0.2]),
            trouble: rng.pick(&[0.2, 0.6]),
            chaos,
            waves,
            messages: Vec::new(),
            events: Vec::new(),
        };
        schedule.fill(rng);
        schedule
    }

    fn fill(&mut self, rng: &mut Rng) {
        let keys = 1 + rng.below(3);
        let entities = 1 + rng.below(2);
        for wave in self.waves.clone() {
            for _ in 0..1 + rng.below(4) {
                self.messages.push(Message {
                    id: self.messages.len(),
                    key: format!("k{}", rng.below(keys)),
                    entity: format!("e{}", rng.below(entities)),
                    at: wave + rng.between(Duration::ZERO, self.chaos / 2),
                });
            }
            for _ in 0..rng.below(5) {
                let at = wave + rng.between(Duration::ZERO, self.chaos);
                self.events.push((at, self.event(rng)));
            }
        }
        self.events.sort_by_key(|(at, _)| *at);
    }

    fn event(&self, rng: &mut Rng) -> Event {
        match rng.below(5) {
            0 | 1 => Event::Crash(rng.between(secs(1), secs(15))),
            2 => Event::Stall(rng.between(secs(1), self.lease + self.lease / 2), rng.chance(0.5)),
            3 => Event::Outage(rng.between(secs(1), secs(40))),
            _ => Event::Jump(rng.between(Duration::ZERO, secs(3_600)).as_secs() as i64 - 1_200),
        }
    }

    /// Whether things go wrong at this time.
    pub(crate) fn chaotic(&self, at: Duration) -> bool {
        self.waves.iter().any(|wave| *wave <= at && at < *wave + self.chaos)
    }

    /// The most that a write may be late, other than for the next wave.
    pub(crate) fn latest(&self) -> Duration {
        self.lease * 2
    }

    /// After the chaos of a wave everything must be over within this time: late writes have landed,
    /// what stands has lapsed, and whoever was at work is through.
    pub(crate) fn healed(&self) -> Duration {
        let waits = (self.longest_backoff + secs(20)) * 4 + self.ack_deadline * 2;
        self.latest() + self.lease * 5 + waits
    }
}
