//! How the simulated subscription is set up: the words of Pub/Sub's own settings.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::PushSimulator;
use super::fault::PushFault;
use crate::sizing::Sizing;
use crate::testing::{Push, impossible};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Of a backoff; with Pub/Sub's longest it makes a week.
const LARGEST_FACTOR: f64 = 1000.0;

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) subscription: String,
    /// The least and the longest backoff; `None`: as soon as possible.
    pub(super) retry: Option<(Duration, Duration)>,
    /// What each backoff is multiplied by.
    pub(super) factor: RangeInclusive<f64>,
    pub(super) push_backoff: bool,
    pub(super) ack_deadline: Duration,
    pub(super) most_attempts: Option<u32>,
    pub(super) retention: Duration,
    pub(super) ordered: bool,
    pub(super) outstanding: usize,
    pub(super) reordering: Duration,
    pub(super) real_io: bool,
    pub(super) delivery_limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            subscription: "projects/test/subscriptions/test".to_owned(),
            retry: None,
            factor: 1.0..=1.0,
            push_backoff: false,
            ack_deadline: Duration::from_secs(10),
            most_attempts: None,
            retention: 7 * DAY,
            ordered: false,
            outstanding: 1000,
            reordering: Duration::ZERO,
            real_io: false,
            delivery_limit: 100_000,
        }
    }
}

/// The settings of the subscription, with Pub/Sub's own defaults.
impl<S> PushSimulator<S> {
    /// Its full name. Default `projects/test/subscriptions/test`.
    ///
    /// # Panics
    /// If it is not of the form `projects/../subscriptions/..`, which dead letters take apart.
    pub fn subscription(mut self, name: impl Into<String>) -> Self {
        self.subscription.settings.subscription = name.into();
        if super::dead_letter::parts(&self.subscription.settings.subscription).is_none() {
            impossible(format_args!("{:?} names no subscription", self.subscription.settings.subscription));
        }
        self
    }

    /// The retry policy, ack deadline, dead-letter policy and retention that a deployment is sized for. The
    /// layer's own times are set on the layer.
    pub fn sizing(self, sizing: &Sizing) -> Self {
        self.retry_policy(sizing.min_backoff, sizing.max_backoff)
            .ack_deadline(sizing.ack_deadline)
            .dead_letter_after(sizing.max_delivery_attempts)
            .retention(sizing.retention)
    }

    /// The `retry_policy`: the k-th nack of a message is followed by the delay minimum · 2^(k-1), at most
    /// the maximum. Pub/Sub takes 0 to 600 seconds. Default: none, which is *immediate* redelivery, here
    /// after a millisecond, and not 10 to 600 seconds.
    ///
    /// # Panics
    /// If the minimum is longer than the maximum.
    pub fn retry_policy(mut self, minimum: Duration, maximum: Duration) -> Self {
        if minimum > maximum {
            impossible(format_args!("a backoff cannot be from {minimum:?} to {maximum:?}"));
        }
        self.subscription.settings.retry = Some((minimum, maximum));
        self
    }

    /// Multiplies each delay of the retry policy by a factor drawn from this range, since Pub/Sub keeps
    /// them on a best-effort basis: `0.5..=0.5` is always half, `0.5..=1.5` a jitter. Default `1.0..=1.0`.
    ///
    /// # Panics
    /// If the range is empty, or not within 0 to 1000.
    pub fn backoff_factor(mut self, range: RangeInclusive<f64>) -> Self {
        let (least, most) = (*range.start(), *range.end());
        if !(0.0 <= least && least <= most && most <= LARGEST_FACTOR) {
            impossible(format_args!(
                "no factor of a backoff is in {range:?}: expected a range within 0 to {LARGEST_FACTOR}"
            ));
        }
        self.subscription.settings.factor = range;
        self
    }

    /// Simulates the push backoff too: a nack stops the *whole* subscription, 100 ms at first, twice as
    /// long for each further one, at most 60 s; an ack takes one step back. Pub/Sub always has it, beside
    /// the retry policy, and the longer delay counts; how exactly it is counted is not documented, so it is
    /// off by default.
    pub fn push_backoff(mut self) -> Self {
        self.subscription.settings.push_backoff = true;
        self
    }

    /// How long a push may go unanswered; then the caller hangs up, and that is a nack. Pub/Sub takes 10 to
    /// 600 seconds. Default 10 seconds.
    pub fn ack_deadline(mut self, deadline: Duration) -> Self {
        self.subscription.settings.ack_deadline = deadline;
        self
    }

    /// The dead-letter policy: after so many nacks a message is forwarded and not sent again. Only with it
    /// has a push a `deliveryAttempt`. Pub/Sub takes 5 to 100 and keeps to it approximately; this takes any,
    /// exactly. Default: none.
    ///
    /// # Panics
    /// If it is zero.
    pub fn dead_letter_after(mut self, attempts: u32) -> Self {
        if attempts == 0 {
            impossible("a message is delivered before it is dead-lettered");
        }
        self.subscription.settings.most_attempts = Some(attempts);
        self
    }

    /// How long a message that is not acked is kept, since it was published; then it is gone, and not
    /// dead-lettered either. Pub/Sub takes 10 minutes to 31 days. Default 7 days.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.subscription.settings.retention = retention;
        self
    }

    /// `enable_message_ordering`: the messages of one ordering key are sent one at a time, in the order of
    /// their publishing. A nack holds back the later ones; a message that is sent again although it was
    /// acked makes the later ones be sent again too. Default: off; the ordering key is sent all the same.
    pub fn ordered(mut self) -> Self {
        self.subscription.settings.ordered = true;
        self
    }

    /// How many pushes may be unanswered at once. Pub/Sub finds the number by itself, up to about 1000,
    /// which is the default.
    ///
    /// # Panics
    /// If it is zero.
    pub fn outstanding(mut self, most: usize) -> Self {
        if most == 0 {
            impossible("a subscription that may send nothing delivers nothing");
        }
        self.subscription.settings.outstanding = most;
        self
    }

    /// Delays each first delivery by up to this, so that messages overtake each other, except those that an
    /// ordering key keeps in order. Default: none, so first deliveries come in the order of publishing.
    pub fn reordering(mut self, most: Duration) -> Self {
        self.subscription.settings.reordering = most;
        self
    }

    /// The push token: sent as `authorization: Bearer ..`, made anew for each delivery.
    pub fn token(mut self, token: impl FnMut(&Push) -> String + Send + 'static) -> Self {
        self.token = Some(Box::new(token));
        self
    }

    /// Lets a fault happen to this share of the deliveries, from 0 to 1; the [`seed`](Self::seed) says to
    /// which. Several rates are tried in the order in which they were given, and the first that hits counts.
    ///
    /// # Panics
    /// If the rate is not a share.
    pub fn fault_rate(mut self, fault: PushFault, rate: f64) -> Self {
        if !(0.0..=1.0).contains(&rate) {
            impossible(format_args!("{rate} is no share of the deliveries"));
        }
        self.faults.rates.push((fault, rate));
        self
    }

    /// Asks at each delivery what goes wrong with it, by the id of its message and its attempt, from 1.
    /// Where this answers `None` the rates decide.
    pub fn faults(mut self, plan: impl FnMut(&str, u32) -> Option<PushFault> + Send + 'static) -> Self {
        self.faults.plan = Some(Box::new(plan));
        self
    }

    /// What all that is drawn follows from: factors, delays, rates. The same seed, service and pushes give
    /// the same report, as far as the service itself draws nothing. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.subscription.rng = seed;
        self
    }

    /// For a service that does real I/O: time runs while a push is unanswered, and is paused, so that it
    /// jumps, only while none is. The test's own time must run: `#[tokio::test]`, on one thread, without
    /// `start_paused`. Times are then exact to some milliseconds, and a report is not the same twice.
    ///
    /// What the service still does in the background when no push is unanswered sees time jump.
    ///
    /// # Panics
    /// The run does, where time is paused already or the runtime has several threads.
    pub fn real_io(mut self) -> Self {
        self.subscription.settings.real_io = true;
        self
    }

    /// Ends a run after so many deliveries, so that one that could go on for ever ends too. Default 100,000.
    pub fn delivery_limit(mut self, most: usize) -> Self {
        self.subscription.settings.delivery_limit = most;
        self
    }
}
