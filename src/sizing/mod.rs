//! `Sizing`: whether the times of a deployment fit together, and the numbers that say why.
//!
//! A delivery that finds its key held is answered 503, and each 503 burns one of the subscription's
//! delivery attempts. If the holder has crashed, that goes on until its lease lapses; with too few
//! attempts Pub/Sub gives up before, and a healthy message is dead-lettered. [`Sizing`] counts the
//! attempts, and knows the other rules that the times of a service and of its subscription must keep:
//!
//! | rule | what must hold |
//! |---|---|
//! | `lease` | lease > request timeout |
//! | `window` | lease + ttl > 3600 s, the longest request that Cloud Run allows |
//! | `attempts` | 5 ≤ max delivery attempts ≤ 100, and at least as many as are needed |
//! | `ack-deadline` | 10 s ≤ ack deadline ≤ 600 s, and not below the request timeout |
//! | `retention` | 600 s ≤ retention ≤ 31 days, and longer than all attempts take |
//! | `backoff` | 1 s ≤ minimum backoff ≤ maximum backoff ≤ 600 s |
//! | `ttl` (a warning) | ttl ≥ retention |
//!
//! A service asks before it serves, and takes the times of its layers from the same value:
//!
//! ```
//! use std::sync::Arc;
//! use pushonce::{IdempotentLayer, Store, sizing::Sizing, store::Memory};
//!
//! let sizing = Sizing::from_env()?.enforce()?;
//! # let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let layer = IdempotentLayer::new("charge", store).lease(sizing.lease).ttl(sizing.ttl);
//! # layer.check()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backoff;
mod environment;
mod rules;
mod verdict;

use std::time::Duration;

pub use self::environment::InvalidVariable;
pub use self::rules::{Finding, Rule, Severity};
pub use self::verdict::{InvalidSizing, Table, Verdict};

use crate::verbs::{DEFAULT_LEASE, DEFAULT_TTL};

/// The times of a service and of its push subscription, and what the formula assumes.
///
/// Made by [`default`](Self::default), which is what the Terraform module deploys, or by
/// [`from_env`](Self::from_env). Any values may stand in it; [`verdict`](Self::verdict) says which are wrong.
///
/// ```
/// use std::time::Duration;
/// use pushonce::sizing::{Rule, Sizing};
///
/// let verdict = Sizing::default().max_delivery_attempts(9).verdict();
/// assert_eq!((verdict.burned_exact(), verdict.burned(), verdict.needed()), (7, 8, 10));
/// assert_eq!(verdict.findings()[0].rule(), Rule::Attempts);
///
/// // A shorter lease, with a shorter request, needs fewer.
/// let shorter = Sizing::default().lease(Duration::from_secs(600)).max_delivery_attempts(9);
/// assert!(shorter.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Sizing {
    /// How long a claim holds its key while its work runs; what the layers are given.
    pub lease: Duration,
    /// How long a done key is remembered; what the layers are given.
    pub ttl: Duration,
    /// Cloud Run's request timeout.
    pub request_timeout: Duration,
    /// The subscription's ack deadline; for a push, how long Pub/Sub waits for the answer.
    pub ack_deadline: Duration,
    /// The retry policy's minimum backoff, `m`.
    pub min_backoff: Duration,
    /// The retry policy's maximum backoff, `M`.
    pub max_backoff: Duration,
    /// The dead-letter policy's maximum of delivery attempts, `N`.
    pub max_delivery_attempts: u32,
    /// How long the subscription keeps a message that is not acked.
    pub retention: Duration,
    /// How many holders a message may find before it one after the other, each for a whole lease.
    pub holders_ahead: u32,
    /// `j`: how short a delay of Pub/Sub may turn out, as a share of what it should be (above 0 to 1).
    pub floor_ratio: f64,
    /// `R`: how many attempts are kept for failures that are none of contention.
    pub real_failures: u32,
    warn_only: bool,
}

impl Default for Sizing {
    /// What the Terraform module deploys: a lease of 15 minutes, a ttl of 7 days, a request timeout of
    /// 570 s under an ack deadline of 600 s, a backoff of 10 s to 600 s, 12 attempts, a retention of 7
    /// days; one holder ahead, delays down to half, one real failure.
    fn default() -> Self {
        Self {
            lease: DEFAULT_LEASE,
            ttl: DEFAULT_TTL,
            request_timeout: Duration::from_secs(570),
            ack_deadline: Duration::from_secs(600),
            min_backoff: Duration::from_secs(10),
            max_backoff: Duration::from_secs(600),
            max_delivery_attempts: 12,
            retention: DEFAULT_TTL,
            holders_ahead: 1,
            floor_ratio: 0.5,
            real_failures: 1,
            warn_only: false,
        }
    }
}

impl Sizing {
    /// How long a claim holds its key. Default 15 minutes, [`DEFAULT_LEASE`].
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a done key is remembered. Default 7 days, [`DEFAULT_TTL`].
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Cloud Run's request timeout. Default 570 s.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// The subscription's ack deadline. Default 600 s, the longest.
    #[must_use]
    pub fn ack_deadline(mut self, deadline: Duration) -> Self {
        self.ack_deadline = deadline;
        self
    }

    /// The retry policy's minimum backoff. Default 10 s.
    #[must_use]
    pub fn min_backoff(mut self, min: Duration) -> Self {
        self.min_backoff = min;
        self
    }

    /// The retry policy's maximum backoff. Default 600 s.
    #[must_use]
    pub fn max_backoff(mut self, max: Duration) -> Self {
        self.max_backoff = max;
        self
    }

    /// The dead-letter policy's maximum of delivery attempts. Default 12.
    #[must_use]
    pub fn max_delivery_attempts(mut self, attempts: u32) -> Self {
        self.max_delivery_attempts = attempts;
        self
    }

    /// How long the subscription keeps a message that is not acked. Default 7 days.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// How many holders a message may find before it, each for a whole lease. Default 1: one that crashed.
    ///
    /// For `mutex` and `.serialize` on a busy key: as many messages as can come for it at once, with the
    /// time that the work takes as the lease, and three [`real_failures`](Self::real_failures).
    #[must_use]
    pub fn holders_ahead(mut self, holders: u32) -> Self {
        self.holders_ahead = holders;
        self
    }

    /// How short a delay may turn out, as a share of what it should be, counted in millionths. Default 0.5.
    ///
    /// Pub/Sub promises its backoff as best effort only
    /// ([retry policy](https://cloud.google.com/pubsub/docs/handling-failures#subscription_retry_policy)).
    #[must_use]
    pub fn floor_ratio(mut self, share: f64) -> Self {
        self.floor_ratio = share;
        self
    }

    /// How many attempts are kept for failures that are none of contention. Default 1.
    #[must_use]
    pub fn real_failures(mut self, failures: u32) -> Self {
        self.real_failures = failures;
        self
    }

    /// [`enforce`](Self::enforce) logs what is wrong and goes on; `PUSHONCE_SIZING=warn` in the environment.
    #[must_use]
    pub fn warn_only(mut self) -> Self {
        self.warn_only = true;
        self
    }

    /// The numbers, and what is wrong with them.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(*self)
    }

    /// The verdict, if it refuses nothing; it may still warn.
    ///
    /// # Errors
    /// [`InvalidSizing`], with the whole verdict, if a rule is broken. Do not start or deploy the service:
    /// mend what the findings name.
    pub fn check(&self) -> Result<Verdict, InvalidSizing> {
        self.verdict().checked()
    }

    /// The same sizing, if it refuses nothing; warnings are logged, each on a line of its own.
    ///
    /// To be called before `serve`. With [`warn_only`](Self::warn_only) what is refused is logged as a
    /// warning, too: for a test with short leases, or for a deployment whose subscription is mended later.
    ///
    /// # Errors
    /// [`InvalidSizing`] if a rule is broken. Do not serve: healthy messages would be dead-lettered, or
    /// work would run beside its repeat.
    pub fn enforce(self) -> Result<Self, InvalidSizing> {
        let verdict = self.verdict();
        let verdict = if self.warn_only { verdict } else { verdict.checked()? };
        for finding in verdict.findings() {
            tracing::warn!(rule = finding.rule().id(), severity = %finding.severity(), "{}", finding.text());
        }
        Ok(self)
    }
}
