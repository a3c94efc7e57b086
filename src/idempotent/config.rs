//! The layer's settings as data, and what is refused when it is built.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::body::Limits;
use super::follow::Follow;
use super::report::Hook;
use crate::disabled::{Misplaced, disabled};
use crate::key::{Consumer, InvalidKey, KeyInLogs};
use crate::publish::Publisher;
use crate::pubsub::{KeyRule, KeyRuleError, Outcome};
use crate::store::Store;
use crate::time::Clock;
use crate::verbs::{InvalidSetting, Settings, wait_checked};

/// Whether a duplicate's payload is compared with the recorded one (by SHA-256 of the data).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PayloadCheck {
    /// Not compared.
    #[default]
    Off,
    /// Another payload under a business key is acked (204) and logged as `conflict`.
    Alert,
    /// Another payload under a business key is answered 409: nacked until a person looks at it.
    Refuse,
}

#[derive(Clone)]
pub(super) struct Config {
    pub(super) consumer: Result<Consumer, InvalidKey>,
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key: KeyRule,
    pub(super) serialize: Option<KeyRule>,
    pub(super) serialize_wait: Duration,
    /// Whether a message without a key runs, unguarded.
    pub(super) allow_unguarded: bool,
    pub(super) check: PayloadCheck,
    pub(super) key_in_logs: KeyInLogs,
    pub(super) limits: Limits,
    pub(super) response_limit: usize,
    pub(super) hooks: Vec<(Outcome, Arc<Hook>)>,
    pub(super) follow: Option<Arc<dyn Follow>>,
    /// The publisher of dead letters, and their topic.
    pub(super) dead_letters: Option<(Arc<dyn Publisher>, Arc<str>)>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("consumer", &self.consumer)
            .field("store", &self.store)
            .field("settings", &self.settings)
            .field("key", &self.key)
            .field("serialize", &self.serialize)
            .field("allow_unguarded", &self.allow_unguarded)
            .field("check", &self.check)
            .field("key_in_logs", &self.key_in_logs)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Config {
    pub(super) fn checked(&self) -> Result<(), InvalidLayer> {
        disabled().map_err(InvalidLayer::Disabled)?;
        if let Err(error) = &self.consumer {
            return Err(InvalidLayer::Consumer(error.clone()));
        }
        let waits = || wait_checked("serialize_wait", self.serialize_wait);
        self.settings.checked().and_then(|()| waits()).map_err(InvalidLayer::Setting)?;
        for rule in std::iter::once(&self.key).chain(&self.serialize) {
            rule.check().map_err(InvalidLayer::Key)?;
        }
        let Limits { body, budget, time, .. } = self.limits;
        if body == 0 || budget < body || time.is_zero() {
            return Err(InvalidLayer::Limits { body, budget });
        }
        if self.dead_letters.as_ref().is_some_and(|(_, topic)| topic.trim().is_empty()) {
            return Err(InvalidLayer::DeadLetterTopic);
        }
        match self.hooks.iter().find(|(outcome, _)| *outcome == Outcome::Unauthorized) {
            Some((outcome, _)) => Err(InvalidLayer::Hook { outcome: *outcome }),
            None => Ok(()),
        }
    }

    /// The consumer's name, which a layer that was checked has.
    pub(super) fn consumer(&self) -> &Consumer {
        static UNNAMED: LazyLock<Consumer> = LazyLock::new(Consumer::default);
        self.consumer.as_ref().unwrap_or_else(|_| &UNNAMED)
    }
}

/// A layer that cannot work. Do not start the service; mend what the text says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLayer {
    /// The consumer's name is not one.
    #[error(transparent)]
    Consumer(InvalidKey),
    /// A duration is zero or overflows.
    #[error(transparent)]
    Setting(InvalidSetting),
    /// A key rule can never find a key.
    #[error(transparent)]
    Key(KeyRuleError),
    /// The limits of bodies admit none.
    #[error(
        "no body could be read: expected a limit and a time above zero and a budget of at least the limit, not {body} and {budget} bytes"
    )]
    Limits {
        /// The limit of one body.
        body: usize,
        /// The budget of the process.
        budget: usize,
    },
    /// The topic of the dead letters has no name.
    #[error("dead letters have no topic: expected a name such as `projects/p/topics/orders-dead`")]
    DeadLetterTopic,
    /// A hook is on an outcome that no delivery of a layer has.
    #[error(
        "the hook on `{outcome}` would never be called: a push whose token is refused does not come to this layer; count `pushonce_unauthorized_total`, or look for the event in the log"
    )]
    Hook {
        /// What the hook is on.
        outcome: Outcome,
    },
    /// `PUSHONCE_DISABLED` is set where it must not be.
    #[error(transparent)]
    Disabled(Misplaced),
}
