//! The attributes of a dead letter: those that Pub/Sub sets when it forwards a message, and ours beside them.

/// How often the message was delivered.
pub(crate) const DELIVERY_COUNT: &str = "CloudPubSubDeadLetterSourceDeliveryCount";
/// The subscription that gave it up, by its short name.
pub(crate) const SUBSCRIPTION: &str = "CloudPubSubDeadLetterSourceSubscription";
/// The project of that subscription.
pub(crate) const SUBSCRIPTION_PROJECT: &str = "CloudPubSubDeadLetterSourceSubscriptionProject";
/// When the message was published first.
pub(crate) const PUBLISH_TIME: &str = "CloudPubSubDeadLetterSourceTopicPublishTime";
/// Why a handler gave it up.
pub(crate) const REASON: &str = "pushonce-dead-letter-reason";
/// The consumer whose handler gave it up.
pub(crate) const CONSUMER: &str = "pushonce-dead-letter-consumer";
/// The text of the key that is done as rejected, to be reset before the message is sent again.
pub(crate) const KEY: &str = "pushonce-dead-letter-key";
/// The message's id where it came from.
pub(crate) const SOURCE_MESSAGE_ID: &str = "pushonce-source-message-id";
/// Beside a message that was sent again: its id where it came from, or that of its dead letter.
pub(crate) const REDRIVEN_FROM: &str = "pushonce-redriven-from";

/// Whether an attribute was set for the dead letter, and is none of the message's own. An unwrapped push
/// loses the case of names.
pub(crate) fn is_of_dead_letter(name: &str) -> bool {
    const SET: [&str; 8] = [
        DELIVERY_COUNT,
        SUBSCRIPTION,
        SUBSCRIPTION_PROJECT,
        PUBLISH_TIME,
        REASON,
        CONSUMER,
        KEY,
        SOURCE_MESSAGE_ID,
    ];
    SET.iter().any(|set| name.eq_ignore_ascii_case(set))
}
