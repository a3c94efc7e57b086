//! The simulated Pub/Sub: delivers a message until it is acked, or until it goes to the dead-letter topic.

use std::sync::Arc;
use std::time::Duration;

use pushonce::{IntoKey as _, Key};
use tokio::time::Instant;

use crate::schedule::{Message, secs};
use crate::service::{consumer, push, sent};
use crate::totals::Seen;
use crate::world::World;

/// One message, from when it is published to its end.
pub(crate) async fn published(world: Arc<World>, message: Message) {
    tokio::time::sleep_until(world.start + message.at).await;
    let mut backoff = secs(2);
    for attempt in 1.. {
        let acked = attempted(&world, &message).await;
        let (repeats, jitter) = {
            let (chaotic, rng) = (world.chaotic(), &mut world.inner().rng);
            (chaotic && rng.chance(0.1), rng.between(Duration::ZERO, secs(2)))
        };
        if acked && repeats {
            world.seen(Seen::AckLost);
        } else if acked {
            world.seen(Seen::Acked);
            break;
        }
        if world.schedule.attempts.is_some_and(|most| attempt >= most) {
            world.seen(Seen::DeadLettered);
            break;
        }
        tokio::time::sleep(backoff + jitter).await;
        backoff = (backoff * 2).min(world.schedule.longest_backoff);
    }
    world.trace("closed", &message.key, message.id as u64);
    world.inner().open_messages -= 1;
}

/// One delivery, or two at once: at least once is all that Pub/Sub promises.
async fn attempted(world: &Arc<World>, message: &Message) -> bool {
    let twin = {
        let (chaotic, rng) = (world.chaotic(), &mut world.inner().rng);
        chaotic && rng.chance(0.1)
    };
    if !twin {
        return delivered(world, message).await;
    }
    world.seen(Seen::Twins);
    let twin = {
        let (world, message) = (world.clone(), message.clone());
        tokio::spawn(async move { delivered(&world, &message).await })
    };
    let acked = delivered(world, message).await;
    twin.await.unwrap() || acked
}

async fn delivered(world: &Arc<World>, message: &Message) -> bool {
    let Some((instance, service)) = world.anyone() else { return false };
    let delivery = {
        let ledger = &mut world.inner().ledger;
        ledger.totals.add(Seen::Deliveries);
        ledger.delivered.push(Instant::now());
        ledger.delivered.len() as u64 - 1
    };
    world.trace("delivers", &message.key, delivery);
    let answer = tokio::select! {
        biased;
        // The connection breaks, and nobody knows how far it came.
        () = instance.died.cancelled() => return false,
        answer = tokio::time::timeout(world.schedule.ack_deadline, sent(service, push(message, delivery))) => answer,
    };
    let Ok((status, outcome)) = answer else {
        world.seen(Seen::HangUps);
        world.trace("hangs up", &message.key, delivery);
        return false;
    };
    world.trace(&outcome, &message.key, delivery);
    let route = world.schedule.route;
    let key: Key = (consumer(route), message.key.as_str()).into_key().unwrap();
    world.inner().ledger.answered(route, &key, delivery, status, &outcome);
    matches!(status, 200 | 204)
}
