//! From a push of the dead-letter subscription to the entry that is to be kept.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use super::kept::{self, DIGITS, MARK};
use super::{DeadLetterEntry, DeadLetterState, NotKept, Source};
use crate::key::{hex, join};
use crate::pubsub::Delivery;
use crate::pubsub::dead_letter::{
    CONSUMER, DELIVERY_COUNT, KEY, PUBLISH_TIME, REASON, SOURCE_MESSAGE_ID, SUBSCRIPTION,
    SUBSCRIPTION_PROJECT, is_of_dead_letter,
};

/// The entry of a dead letter, without its data where that does not fit.
pub(super) fn entry(delivery: &Delivery, now: DateTime<Utc>) -> Result<DeadLetterEntry, NotKept> {
    let text = |name| delivery.attribute(name).filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let data = delivery.data().map_err(NotKept::Data)?;
    let own = delivery.attributes().filter(|(name, _)| !is_of_dead_letter(name));
    let (source, id) = named(delivery).ok_or(NotKept::Unnamed)?;
    let mut entry = DeadLetterEntry {
        id,
        state: DeadLetterState::Kept,
        source,
        reason: text(REASON),
        consumer: text(CONSUMER),
        key: text(KEY),
        source_message_id: text(SOURCE_MESSAGE_ID),
        message_id: delivery.message_id().map(str::to_owned),
        subscription: subscription(text(SUBSCRIPTION_PROJECT), text(SUBSCRIPTION)),
        attempts: text(DELIVERY_COUNT).and_then(|count| count.parse().ok()),
        published_at: text(PUBLISH_TIME).and_then(|time| instant(&time)),
        received_at: now,
        attributes: own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ordering_key: delivery.ordering_key().map(str::to_owned),
        data_len: data.len() as u64,
        data: Some(data),
        redriven: None,
        discarded_at: None,
        unknown: serde_json::Map::new(),
    };
    if !kept::fits(&entry)? {
        entry.data = None;
    }
    if entry.is_whole() || kept::fits(&entry)? {
        return Ok(entry);
    }
    Err(NotKept::TooLarge { id: None, bytes: entry.data_len })
}

/// Who gave the message up, and the id of its dead letter.
///
/// A handler may have published it twice, since an answer can be lost, each time under a new message id:
/// what makes it one is what it was where it came from. The time stands beside the message's id because a
/// Pub/Sub emulator that was restarted gives the same ids again. Of a message that Pub/Sub forwarded the
/// former id is not told, so each forwarding is a dead letter of its own. // F103
fn named(delivery: &Delivery) -> Option<(Source, String)> {
    let text = |name| delivery.attribute(name).unwrap_or_default().to_owned();
    let is_given = |name| !text(name).trim().is_empty();
    let event = || delivery.event().map(|event| format!("{}#{}", event.source(), event.id()));
    let message = delivery.message_id().map(str::to_owned).or_else(event);
    let (source, parts) = if is_given(CONSUMER) {
        let message = if is_given(SOURCE_MESSAGE_ID) { text(SOURCE_MESSAGE_ID) } else { message? };
        (Source::Handler, vec![text(CONSUMER), text(KEY), message, text(PUBLISH_TIME)])
    } else if is_given(SUBSCRIPTION) {
        (Source::Attempts, vec![text(SUBSCRIPTION_PROJECT), text(SUBSCRIPTION), message?, text(PUBLISH_TIME)])
    } else {
        // Published by somebody else.
        let time = delivery.publish_time().map(|time| time.to_rfc3339()).unwrap_or_default();
        (Source::Attempts, vec![delivery.subscription().unwrap_or_default().to_owned(), message?, time])
    };
    let hash = hex(&Sha256::digest(join(&[vec![source.to_string()], parts].concat())));
    Some((source, format!("{MARK}{}", &hash[..DIGITS])))
}

fn subscription(project: Option<String>, name: Option<String>) -> Option<String> {
    match (project, name?) {
        (Some(project), name) if !name.contains('/') => {
            Some(format!("projects/{project}/subscriptions/{name}"))
        }
        (_, name) => Some(name),
    }
}

fn instant(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}
