//! What waits to be delivered: repeated until it is acked, and in order where that was asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::Settings;
use super::push::{Attempt, Push, Target};
use crate::task;

/// What is delivered, and what waits behind it.
#[derive(Default)]
pub(super) struct Queue {
    target: watch::Sender<Option<Target>>,
    /// How many messages are on their way.
    waiting: watch::Sender<usize>,
    /// What waits behind a message of the same topic and ordering key that is on its way.
    behind: Mutex<HashMap<Order, VecDeque<Waiting>>>,
}

/// A topic and an ordering key.
type Order = (Arc<str>, String);
type Waiting = (Push, Settings);

impl Queue {
    pub(super) fn connect(&self, target: Target) {
        self.target.send_replace(Some(target));
    }

    pub(super) async fn idle(&self) {
        // An error means that the sender is gone, which we hold.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting == 0).await;
    }

    pub(super) fn push(self: Arc<Self>, push: Push, settings: Settings) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        if let Some(order) = push.order() {
            let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(line) = behind.get_mut(&order) {
                return line.push_back((push, settings));
            }
            behind.insert(order, VecDeque::new());
        }
        drop(task::spawn(async move {
            let mut next = Some((push, settings));
            while let Some((push, settings)) = next {
                let order = push.order();
                self.deliver(push, &settings).await;
                self.waiting.send_modify(|waiting| *waiting -= 1);
                next = order.and_then(|order| self.next(&order));
            }
        }));
    }

    /// The next of that order; without one, a later message need wait for nobody.
    fn next(&self, order: &Order) -> Option<Waiting> {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let next = behind.get_mut(order)?.pop_front();
        if next.is_none() {
            behind.remove(order);
        }
        next
    }

    /// Pushes it until it is acked or given up.
    async fn deliver(&self, mut push: Push, settings: &Settings) {
        let mut pause = settings.first_pause;
        for attempt in 1..=settings.attempts {
            let Some(target) = self.target().await else { return lost(&push) };
            match push.attempt(&target, attempt, settings.ack_deadline).await {
                Attempt::Acked => return,
                Attempt::Nacked(status) => {
                    tracing::debug!(message_id = %push.id(), attempt, %status, "pushed again after a pause");
                }
                Attempt::Unanswered(error) => {
                    let error = &*error as &dyn std::error::Error;
                    tracing::debug!(message_id = %push.id(), attempt, error, "pushed again after a pause");
                }
            }
            if attempt < settings.attempts && !slept(pause).await {
                return lost(&push);
            }
            pause = pause.saturating_mul(2).min(settings.longest_pause);
        }
        let (topic, attempts) = (push.topic(), settings.attempts);
        tracing::error!(message_id = %push.id(), %topic, attempts, "given up: no push of this message was acked");
    }

    /// The service as it is now, once there is one; `None` if the process shuts down first.
    async fn target(&self) -> Option<Target> {
        let mut target = self.target.subscribe();
        tokio::select! {
            biased;
            () = task::stopping() => None,
            connected = target.wait_for(Option::is_some) => connected.ok().and_then(|target| target.clone()),
        }
    }
}

/// Whether the pause went by; a process that shuts down does not wait for it.
async fn slept(pause: Duration) -> bool {
    tokio::select! {
        () = task::stopping() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

fn lost(push: &Push) {
    tracing::error!(message_id = %push.id(), topic = %push.topic(), "not delivered: the process shuts down");
}
