//! The message that goes to the dead-letter topic: what was delivered, with all that Pub/Sub itself would say of it, and why.

use std::sync::Arc;

use chrono::SecondsFormat;

use super::config::Config;
use crate::lease::{DeadLetter, Place};
use crate::publish::{Message, Publisher};
use crate::pubsub::dead_letter::{
    CONSUMER, DELIVERY_COUNT, KEY, PUBLISH_TIME, REASON, SOURCE_MESSAGE_ID, SUBSCRIPTION,
    SUBSCRIPTION_PROJECT,
};
use crate::pubsub::{BadData, Delivery};
use crate::store::BoxError;

/// The longest value of an attribute, in bytes: <https://cloud.google.com/pubsub/quotas#resource_limits>.
const VALUE_LIMIT: usize = 1024;
/// The most attributes of a message, by the same page.
const ATTRIBUTES_LIMIT: usize = 100;

/// Publishes it, once.
pub(super) async fn publish(
    publisher: Arc<dyn Publisher>,
    topic: Arc<str>,
    message: Result<Message, Unfit>,
) -> Result<(), BoxError> {
    publisher.publish(&topic, &message?).await?;
    Ok(())
}

/// The message of a delivery whose handler has rejected it.
pub(super) fn message(
    config: &Config,
    place: Option<&Place>,
    delivery: &Delivery,
    rejected: &DeadLetter,
) -> Result<Message, Unfit> {
    let note = delivery.note();
    let (project, subscription) = delivery.subscription().and_then(names).unzip();
    let published = delivery.publish_time().map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, false));
    let set = [
        (DELIVERY_COUNT, Some(delivery.attempt().unwrap_or(1).to_string())),
        (SUBSCRIPTION, subscription.map(str::to_owned)),
        (SUBSCRIPTION_PROJECT, project.map(str::to_owned)),
        (PUBLISH_TIME, published),
        (REASON, Some(cut(&rejected.reason).to_owned())),
        (CONSUMER, Some(config.consumer().to_string())),
        (KEY, place.map(|place| place.key.text().to_owned())),
        (SOURCE_MESSAGE_ID, note.message.map(|id| id.to_string())),
    ];
    let own = delivery.attributes().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let set = set.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let message = Message {
        data: delivery.data()?,
        attributes: own.chain(set).collect(),
        ordering_key: delivery.ordering_key().map(str::to_owned),
    };
    fits(&message)?;
    Ok(message)
}

/// Project and short name of a subscription, of its full name.
fn names(full: &str) -> Option<(&str, &str)> {
    full.strip_prefix("projects/")?.split_once("/subscriptions/")
}

/// As much of a reason as an attribute takes.
fn cut(reason: &str) -> &str {
    let boundary = |end: &usize| reason.is_char_boundary(*end);
    let end = (0..=VALUE_LIMIT.min(reason.len())).rev().find(boundary);
    &reason[..end.unwrap_or_default()]
}

fn fits(message: &Message) -> Result<(), Unfit> {
    let count = message.attributes.len();
    if count > ATTRIBUTES_LIMIT {
        return Err(Unfit::Many { count });
    }
    match message.attributes.iter().find(|(_, value)| value.len() > VALUE_LIMIT) {
        Some((name, value)) => Err(Unfit::Long { name: name.clone(), length: value.len() }),
        None => Ok(()),
    }
}

/// A message that Pub/Sub would not take as a dead letter of ours. Nothing was published.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(
        "it would have {count} attributes, and Pub/Sub takes {ATTRIBUTES_LIMIT}; the subscription's own dead-letter policy has to take it"
    )]
    Many { count: usize },
    #[error(
        "its attribute `{name}` would have {length} bytes, and Pub/Sub takes {VALUE_LIMIT}; the subscription's own dead-letter policy has to take it"
    )]
    Long { name: String, length: usize },
    #[error(transparent)]
    Data(#[from] BadData),
}
