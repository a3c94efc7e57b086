//! The keys of one push: what is done once, and the entity whose messages run one at a time.

use std::borrow::Cow;
use std::sync::Arc;

use super::answer::Refusal;
use super::config::{Config, PayloadCheck};
use super::followed;
use crate::key::{Consumer, InvalidKey, Key, join};
use crate::lease::{Place, RunError};
use crate::pubsub::{Delivery, KeyRule, Shape};

/// The keys of one push.
pub(super) struct Keys {
    pub(super) place: Arc<Place>,
    /// Of `serialize`.
    pub(super) entity: Option<Arc<Place>>,
    /// Of the data, where it is checked.
    pub(super) digest: Option<[u8; 32]>,
    /// Whether the key is the id of what the message is about, which somebody follows.
    pub(super) followed: bool,
}

impl Keys {
    /// `None` where the message has no key and the layer allows that. A message without an entity is
    /// refused all the same: to run it would break the promise to the others.
    pub(super) fn of(config: &Config, delivery: &Delivery) -> Result<Option<Self>, Refusal> {
        let consumer = config.consumer.clone().map_err(RunError::Key)?;
        let entity = match &config.serialize {
            None => None,
            Some(rule) => match rule.find(delivery)? {
                None => return Err(Unkeyed::of(delivery, "entity for `serialize`").into()),
                Some(text) => Some(entity(rule, &consumer, text.into_owned()).map_err(RunError::Key)?),
            },
        };
        let id = config.follow.as_ref().and_then(|follow| followed::id(&**follow, delivery));
        let text = match id {
            Some(id) => Some(Cow::Borrowed(id)),
            None => config.key.find(delivery)?,
        };
        let Some(text) = text else {
            if config.allow_unguarded {
                return Ok(None);
            }
            return Err(Unkeyed::of(delivery, "key").into());
        };
        let place = |key: Key| {
            let key = key.in_logs(config.key_in_logs);
            Arc::new(Place { store: config.store.clone(), key, clock: config.clock.clone() })
        };
        let key = Key::new(consumer, text).map_err(RunError::Key)?;
        let digest = match config.check {
            PayloadCheck::Off => None,
            PayloadCheck::Alert | PayloadCheck::Refuse => Some(delivery.digest()?),
        };
        Ok(Some(Self { place: place(key), entity: entity.map(place), digest, followed: id.is_some() }))
    }
}

/// The entity's key, in a key space of its own that no de-duplicated key can meet.
fn entity(rule: &KeyRule, consumer: &Consumer, text: String) -> Result<Key, InvalidKey> {
    let scope = rule.scope_name().unwrap_or(consumer.as_str()).to_owned();
    Key::new(Consumer::reserved("serialize"), join(&[scope, text]))
}

/// A message that gives no key. Nothing was claimed; answer 422.
#[derive(Debug, thiserror::Error)]
#[error("the message has no {what}: {hint}")]
pub(super) struct Unkeyed {
    what: &'static str,
    hint: &'static str,
}

impl Unkeyed {
    fn of(delivery: &Delivery, what: &'static str) -> Self {
        let hint = match delivery.shape() {
            Shape::Bare => {
                "the push is unwrapped and has no metadata; set `write_metadata` on the subscription"
            }
            _ => "the attribute, pointer or id of its rule is absent or blank",
        };
        Self { what, hint }
    }
}
