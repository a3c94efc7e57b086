//! `IdempotentLayer`: its setters.

use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use super::body::Limits;
use super::config::{Config, InvalidLayer, PayloadCheck};
use super::follow::Follow;
use super::report::Report;
use super::service::IdempotentService;
use crate::disabled::disabled;
use crate::key::{Consumer, KeyInLogs};
use crate::meter;
use crate::publish::Publisher;
use crate::pubsub::{KeyRule, Outcome, extract::BODY_LIMIT};
use crate::store::record::Verb;
use crate::store::{BoxError, Store};
use crate::time::{Clock, system_clock};
use crate::verbs::{MUTEX_WAIT, Settings};

/// What the whole process may buffer of bodies by default: half of a Cloud Run instance's 512 MiB.
const BUDGET: usize = 256 * 1024 * 1024;
/// What a handler's answer may have by default: Pub/Sub throws it away.
const RESPONSE_LIMIT: usize = 1024 * 1024;
/// A body that takes longer is not a push.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Below this a third of the lease may be shorter than one trip to a store.
const SHORT: Duration = Duration::from_secs(3);

/// A [`tower_layer::Layer`] that guards the pushes of a route. See [the manual](crate::idempotent).
///
/// The consumer's name is required: it is part of every key, so that two handlers of one topic that
/// share a store do not skip each other's messages. Two subscriptions with the same consumer do skip
/// each other's.
///
/// # Panics
/// `Router::layer` and `MethodRouter::layer` panic on a layer that cannot work, as axum does on a
/// path that is none: at start, never at the first message. [`check`](Self::check) tells it as an error.
#[derive(Clone, Debug)]
#[must_use = "a layer guards nothing until a router or a service is wrapped in it"]
pub struct IdempotentLayer {
    config: Config,
}

impl IdempotentLayer {
    /// A layer that does each message once, by its message id.
    pub fn new(consumer: impl AsRef<str>, store: Arc<dyn Store>) -> Self {
        let config = Config {
            consumer: Consumer::new(consumer),
            store,
            settings: Settings::new(Verb::Lock),
            clock: system_clock(),
            key: KeyRule::default(),
            serialize: None,
            serialize_wait: MUTEX_WAIT,
            allow_unguarded: false,
            check: PayloadCheck::default(),
            key_in_logs: KeyInLogs::default(),
            limits: Limits { name: "body_limit", body: BODY_LIMIT, budget: BUDGET, time: BODY_TIMEOUT },
            response_limit: RESPONSE_LIMIT,
            hooks: Vec::new(),
            follow: None,
            dead_letters: None,
        };
        Self { config }
    }

    /// What is done once. Default: [`message_id`](crate::message_id), which a republish does not share.
    pub fn key(mut self, rule: KeyRule) -> Self {
        self.config.key = rule;
        self
    }

    /// Runs the messages of one entity one at a time, besides doing each once: exclusion, not order.
    /// The entity's key space is its own, shared by the layers that give `rule` the same
    /// [`scope`](KeyRule::scope), else of this consumer alone.
    ///
    /// A message whose entity is held waits five seconds, then is nacked with its claim undone.
    pub fn serialize(mut self, rule: KeyRule) -> Self {
        self.config.serialize = Some(rule);
        self
    }

    /// Waits at most this long for the entity of [`serialize`](Self::serialize). Default 5 seconds. A
    /// message that waited for more than half of its lease is nacked too, unless the lease is renewed.
    pub fn serialize_wait(mut self, most: Duration) -> Self {
        self.config.serialize_wait = most;
        self
    }

    /// Marks each key before its handler runs and never runs it again: better lost than twice.
    pub fn at_most_once(mut self) -> Self {
        self.config.settings.verb = Verb::AtMostOnce;
        self
    }

    /// How long a claim excludes others: longer than a request may take. Default 15 minutes.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.settings.lease = lease;
        self
    }

    /// How long a recorded key skips duplicates. Default 7 days, as long as Pub/Sub keeps a message.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.settings.ttl = ttl;
        self
    }

    /// Renews the lease while the handler runs, at most for [`max_hold`](Self::max_hold); see
    /// [`Guarded::renew`](crate::Guarded::renew).
    pub fn renew(mut self) -> Self {
        self.config.settings.renew = true;
        self
    }

    /// The most that renewal holds a key, whatever the handler does. Default 60 minutes, Cloud Run's
    /// longest request.
    pub fn max_hold(mut self, limit: Duration) -> Self {
        self.config.settings.max_hold = limit;
        self
    }

    /// Cancels a handler after this time: 504, and its key is left to lapse. Off by default.
    pub fn work_timeout(mut self, limit: Duration) -> Self {
        self.config.settings.work_timeout = Some(limit);
        self
    }

    /// Declares that dropping the handler's future stops all that it does; see
    /// [`Guarded::cancel_safe`](crate::Guarded::cancel_safe).
    pub fn cancel_safe(mut self) -> Self {
        self.config.settings.cancel_safe = true;
        self
    }

    /// Waits at most this long for a live holder of the key before 503. Default: none. A few seconds
    /// turn many 503s, which slow the whole subscription, into 204s.
    pub fn wait(mut self, most: Duration) -> Self {
        self.config.settings.wait = most;
        self
    }

    /// Runs the handler for messages without a key too, each time, without a guard and without a
    /// [`Lease`](crate::Lease). Without this they are answered 422: nacked, and the handler does not run.
    pub fn allow_unguarded(mut self) -> Self {
        self.config.allow_unguarded = true;
        self
    }

    /// Whether a duplicate's payload is compared. Default: off. Under a message id another payload is
    /// another message, and answered 500 whatever is chosen here.
    pub fn payload_check(mut self, check: PayloadCheck) -> Self {
        self.config.check = check;
        self
    }

    /// How this layer's keys, the entities of [`serialize`](Self::serialize) included, are written in
    /// logs, and in errors wherever they are shown. Default: in full. A hashed key's text is also taken
    /// out of the errors that are logged, where it stands in them whole and as it is.
    ///
    /// Two things are not covered: the line of the outcome [`Uncertain`](Outcome::Uncertain), which an
    /// operator must be able to act on and which has the key in full; and what a handler by itself logs
    /// or puts into an error of [`Key::text`](crate::Key::text), of one part of it, or of the message.
    pub fn key_in_logs(mut self, written: KeyInLogs) -> Self {
        self.config.key_in_logs = written;
        self
    }

    /// The most that a body may have, in bytes. Default 16 MiB, which a 10 MB message fits; over it 413.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.config.limits.body = bytes;
        self
    }

    /// The most that this whole process may buffer of bodies at once, in bytes. Default 256 MiB; over it 503.
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.config.limits.budget = bytes;
        self
    }

    /// How long a body may take to come. Default 30 seconds; then 408.
    pub fn body_timeout(mut self, limit: Duration) -> Self {
        self.config.limits.time = limit;
        self
    }

    /// The most that a handler's answer may have, in bytes. Default 1 MiB; a larger one is a failure.
    pub fn response_limit(mut self, bytes: usize) -> Self {
        self.config.response_limit = bytes;
        self
    }

    /// Counts leases by another clock: for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.config.clock = clock;
        self
    }

    /// Calls `hook` for each delivery that ends in `outcome`, after what is recorded and before the
    /// answer. A hook observes: one that fails or panics is logged and changes nothing.
    ///
    /// One on [`Outcome::Unauthorized`] is refused by [`check`](Self::check): it would never be called.
    pub fn on<H>(mut self, outcome: Outcome, hook: H) -> Self
    where
        H: Fn(&Report<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        self.config.hooks.push((outcome, Arc::new(hook)));
        self
    }

    /// Calls `hook` for each duplicate: [`on`](Self::on) with [`Outcome::Duplicate`].
    pub fn on_duplicate<H>(self, hook: H) -> Self
    where
        H: Fn(&Report<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        self.on(Outcome::Duplicate, hook)
    }

    /// Has a record moved as its message fares: of a task, by `submit::Tasks`. The id in the message's
    /// [attribute](Follow::attribute) is then its key; messages without that attribute have the key that
    /// [`key`](Self::key) says, and are followed by nobody.
    pub fn follow(mut self, follow: impl Follow) -> Self {
        self.config.follow = Some(Arc::new(follow));
        self
    }

    /// Where a message goes whose handler says that it can never succeed
    /// ([`Failure::dead_letter`](crate::Failure::dead_letter)): to that topic (`projects/p/topics/t`), at
    /// once, instead of after the subscription's attempts. Without this such a failure is misuse, and nacked.
    pub fn dead_letters(mut self, publisher: Arc<dyn Publisher>, topic: impl Into<Arc<str>>) -> Self {
        self.config.dead_letters = Some((publisher, topic.into()));
        self
    }

    /// Whether the layer can work.
    ///
    /// # Errors
    /// [`InvalidLayer`], which says what to mend. Do not start the service.
    pub fn check(&self) -> Result<(), InvalidLayer> {
        self.config.checked()
    }
}

impl<S> Layer<S> for IdempotentLayer {
    type Service = IdempotentService<S>;

    #[expect(clippy::panic, reason = "a configuration error at start, as documented")]
    fn layer(&self, inner: S) -> IdempotentService<S> {
        if let Err(error) = self.check() {
            panic!("this IdempotentLayer cannot work: {error}");
        }
        if self.config.settings.lease < SHORT {
            tracing::warn!(
                lease = ?self.config.settings.lease,
                "a lease this short may be over before a store has answered; claims then fail with 503"
            );
        }
        if self.config.settings.work_timeout.is_some_and(|limit| limit >= self.config.settings.lease) {
            tracing::warn!(
                lease = ?self.config.settings.lease,
                work_timeout = ?self.config.settings.work_timeout,
                "the lease is not longer than the handler may take: a duplicate may then run beside it"
            );
        }
        self.config.consumer.iter().for_each(meter::announce);
        IdempotentService::new(inner, Arc::new(self.config.clone()), disabled().unwrap_or(false))
    }
}
