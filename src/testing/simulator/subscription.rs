//! The simulated subscription: which message is sent when, and what becomes of each. Knows no service and no clock.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::backoff::{Pause, delay};
use super::dead_letter::DeadLetter;
use super::queue::Queue;
use super::settings::Settings;
use crate::random::share;
use crate::testing::Push;

/// Times are since the simulator was made; a message's number is its place in the order of publishing.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) settings: Settings,
    pub(super) rng: u64,
    pub(super) messages: Vec<Message>,
    /// In the order of their acks.
    pub(super) acked: Vec<usize>,
    pub(super) dead_letters: Vec<DeadLetter>,
    queue: Queue,
    /// Acks that will turn out not to have been kept.
    forgotten: BTreeSet<(Duration, usize)>,
    pause: Pause,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) push: Push,
    pub(super) fate: Fate,
    /// Nacks and missed deadlines.
    pub(super) nacks: u32,
    published: SystemTime,
    expires: Duration,
    /// An earlier message of its key is sent again, so this one is too, even if it is acked now.
    again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Acked,
    DeadLettered,
    Expired,
}

impl Subscription {
    pub(super) fn publish(&mut self, push: Push, now: Duration, published: SystemTime) {
        let lane = push.order().filter(|key| self.settings.ordered && !key.is_empty()).map(str::to_owned);
        let delay = self.settings.reordering.mul_f64(share(&mut self.rng));
        let expires = now.saturating_add(self.settings.retention);
        self.messages.push(Message { push, fate: Fate::Open, nacks: 0, published, expires, again: false });
        // What an ordering key keeps in order is not overtaken, whatever its delay.
        let number = self.queue.add(lane);
        self.wait(number, now.saturating_add(delay));
    }

    /// Whether nothing is left to be sent.
    pub(super) fn settled(&self) -> bool {
        self.queue.first().is_none() && self.queue.outstanding() == 0 && self.forgotten.is_empty()
    }

    /// A message to be sent now.
    pub(super) fn next(&mut self, now: Duration) -> Option<usize> {
        while let Some((_, number)) = self.forgotten.first().copied().filter(|(at, _)| *at <= now) {
            self.forgotten.pop_first();
            self.reopen(number, now);
        }
        loop {
            let (_, number) = self.queue.first().filter(|(due, _)| *due <= now)?;
            if self.messages[number].expires <= now {
                self.settle(number, Fate::Expired);
            } else if self.pause.until() > now || !self.has_room() {
                return None;
            } else {
                return Some(number);
            }
        }
    }

    /// When [`next`](Self::next) is to be asked again, if no answer comes before.
    pub(super) fn wake(&self) -> Option<Duration> {
        let first = self.queue.first().filter(|_| self.has_room());
        let due = first.map(|(due, _)| due.max(self.pause.until()));
        let forgotten = self.forgotten.first().map(|(at, _)| *at);
        due.into_iter().chain(forgotten).min()
    }

    /// Whether one more push may be unanswered.
    pub(super) fn has_room(&self) -> bool {
        self.queue.outstanding() < self.settings.outstanding
    }

    pub(super) fn sent(&mut self, number: usize) {
        self.queue.sent(number);
    }

    /// Acked; where `forgotten`, only until then.
    pub(super) fn acked(&mut self, number: usize, now: Duration, forgotten: Option<Duration>) {
        self.queue.ended(number);
        self.pause.acked();
        let message = &mut self.messages[number];
        if message.fate != Fate::Open {
            return;
        }
        if std::mem::take(&mut message.again) {
            return self.wait(number, now);
        }
        self.acked.push(number);
        self.settle(number, Fate::Acked);
        self.forgotten.extend(forgotten.map(|at| (at, number)));
    }

    pub(super) fn nacked(&mut self, number: usize, now: Duration) {
        self.queue.ended(number);
        if self.settings.push_backoff {
            self.pause.nacked(now);
        }
        // A twin of what was acked or forwarded meanwhile changes nothing.
        if self.messages[number].fate == Fate::Open && self.counted(number, now) {
            let delay = delay(&self.settings, self.messages[number].nacks, &mut self.rng);
            self.wait(number, now.saturating_add(delay));
        }
    }

    /// Counts a nack, and forwards a message that has had its attempts. Whether it may be sent again.
    fn counted(&mut self, number: usize, now: Duration) -> bool {
        let message = &mut self.messages[number];
        message.again = false;
        message.nacks = message.nacks.saturating_add(1);
        if self.settings.most_attempts.is_none_or(|most| message.nacks < most) {
            return true;
        }
        let (attempts, published) = (message.nacks, message.published);
        let (source, rng) = (&self.settings.subscription, &mut self.rng);
        let letter = DeadLetter::forwarded(&message.push, source, published, (attempts, now), rng);
        self.dead_letters.push(letter);
        self.settle(number, Fate::DeadLettered);
        false
    }

    /// An ack was not kept: the deadline is over, and the message is sent again. So are the later ones of
    /// its ordering key, acked or not (Pub/Sub's documentation of message ordering).
    fn reopen(&mut self, number: usize, now: Duration) {
        if !self.unacked(number, now) || !self.counted(number, now) {
            return;
        }
        self.wait(number, now);
        for later in self.queue.later(number) {
            if self.unacked(later, now) {
                self.wait(later, now);
            } else if self.queue.is_outstanding(later) {
                self.messages[later].again = true;
            }
        }
    }

    /// Takes an ack back, if the message is still kept.
    fn unacked(&mut self, number: usize, now: Duration) -> bool {
        let message = &mut self.messages[number];
        let kept = message.fate == Fate::Acked && message.expires > now;
        if kept {
            message.fate = Fate::Open;
            self.acked.retain(|acked| *acked != number);
        }
        kept
    }

    fn wait(&mut self, number: usize, due: Duration) {
        self.queue.wait(number, due.min(self.messages[number].expires));
    }

    fn settle(&mut self, number: usize, fate: Fate) {
        self.messages[number].fate = fate;
        self.queue.leave(number);
    }
}
