//! What Pub/Sub makes of a message that nobody acked: a new message on the dead-letter topic.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::random::splitmix;
use crate::testing::Push;

/// A message that was forwarded to the dead-letter topic.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The id that it had in its own topic.
    pub message_id: String,
    /// How often it was delivered.
    pub attempts: u32,
    /// When it was forwarded, since the simulator was made.
    pub at: Duration,
    /// The message on the dead-letter topic, to be published to another simulator: a new id, the same data,
    /// attributes and ordering key, and the four attributes that Pub/Sub adds
    /// (`CloudPubSubDeadLetterSource` and `DeliveryCount`, `Subscription`, `SubscriptionProject`,
    /// `TopicPublishTime`). Google does not say whether the ordering key is kept.
    pub push: Push,
}

impl DeadLetter {
    /// Forwards a message that `subscription` has given up.
    pub(super) fn forwarded(
        push: &Push,
        subscription: &str,
        published: SystemTime,
        (attempts, at): (u32, Duration),
        rng: &mut u64,
    ) -> Self {
        let (project, name) = parts(subscription).unwrap_or_default();
        let time = DateTime::<Utc>::from(published).to_rfc3339_opts(SecondsFormat::Millis, false);
        let source = [
            ("DeliveryCount", attempts.to_string()),
            ("Subscription", name.to_owned()),
            ("SubscriptionProject", project.to_owned()),
            ("TopicPublishTime", time),
        ];
        let forwarded = source.into_iter().fold(push.clone(), |push, (name, value)| {
            push.attribute(format!("CloudPubSubDeadLetterSource{name}"), value)
        });
        let id = format!("1{:016}", splitmix(rng) % 10_000_000_000_000_000);
        Self { message_id: push.message_id().to_owned(), attempts, at, push: forwarded.id(id) }
    }
}

/// Project and name of a subscription.
pub(super) fn parts(subscription: &str) -> Option<(&str, &str)> {
    let (project, name) = subscription.strip_prefix("projects/")?.split_once("/subscriptions/")?;
    (!project.is_empty() && !name.is_empty()).then_some((project, name))
}
