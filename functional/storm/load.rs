//! What is published: orders, some of them again under another message id, and pushes that come twice at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::dice::Dice;
use crate::gate::Gate;
use crate::pubsub::{Message, PubSub};
use crate::work::ORDER;

/// The emulator has two pushes of a subscription in flight, no more; so there are many, each of a topic
/// of its own.
const TOPICS: usize = 16;
/// How many orders are published in one call.
const BATCH: usize = 10;
/// How many of the orders so far are published once more with each batch.
const AGAIN: usize = 1;
/// How many messages of a batch are pushed by hand too, each twice at once.
const TWICE: usize = 1;
/// Nothing more is published while so many messages are not acked.
const BACKLOG: usize = 400;

/// The order of each message that was published.
pub(crate) type Published = HashMap<String, String>;

/// Publishes so many orders, spread over that time. `published` has what is published by now.
pub(crate) async fn publish(
    pubsub: &PubSub,
    gate: &Arc<Gate>,
    (orders, over): (usize, Duration),
    dice: &Dice,
    published: &mut Published,
) {
    let mut by_hand = JoinSet::new();
    let mut tick = tokio::time::interval(over / u32::try_from(orders.div_ceil(BATCH)).unwrap());
    for (first, topic) in (0..orders).step_by(BATCH).zip(topics().cycle()) {
        tick.tick().await;
        while published.len().saturating_sub(gate.counted().acked.len()) > BACKLOG {
            tokio::time::sleep(crate::POLL).await;
        }
        let next = (first + BATCH).min(orders);
        let again = (0..AGAIN).map(|_| usize::try_from(dice.roll(u64::try_from(next).unwrap())).unwrap());
        let batch: Vec<_> = (first..next).chain(again).map(order).collect();
        let messages = batch.iter().map(|order| message(order)).collect();
        let ids = pubsub.publish_all(&topic, messages).await;
        for (id, order) in ids.iter().zip(&batch).take(TWICE) {
            for _ in 0..2 {
                let (gate, id, message) = (gate.clone(), id.clone(), message(order));
                by_hand.spawn(async move { gate.push(message, &id).await });
            }
        }
        published.extend(ids.into_iter().zip(batch));
    }
    by_hand.join_all().await;
}

/// The names of the topics, and of their subscriptions.
pub(crate) fn topics() -> impl Iterator<Item = String> + Clone {
    (0..TOPICS).map(|topic| format!("orders-{topic}"))
}

/// The key of that order.
pub(crate) fn order(number: usize) -> String {
    format!("po-{number}")
}

fn message(order: &str) -> Message {
    Message::new("").attribute(ORDER, order)
}
