//! What waits to be sent: by its time, and within an ordering key one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The messages of a subscription by their numbers, which rise in the order of publishing.
#[derive(Debug, Default)]
pub(super) struct Queue {
    all: Vec<Place>,
    /// What may be sent, once it is time.
    line: BTreeSet<(Duration, usize)>,
    lanes: BTreeMap<String, Lane>,
    outstanding: usize,
}

#[derive(Debug)]
struct Place {
    /// Not before this.
    due: Duration,
    /// Under which it is in the line.
    lined: Option<Duration>,
    /// Its ordering key, where order is kept.
    lane: Option<String>,
    outstanding: u32,
}

/// The messages of one ordering key.
#[derive(Debug, Default)]
struct Lane {
    /// Those not settled: only the first may be in the line.
    open: BTreeSet<usize>,
    in_line: Option<usize>,
    outstanding: u32,
}

impl Queue {
    /// A place for one message more; its number.
    pub(super) fn add(&mut self, lane: Option<String>) -> usize {
        self.all.push(Place { due: Duration::ZERO, lined: None, lane, outstanding: 0 });
        self.all.len() - 1
    }

    /// It may be sent from `due` on, when its turn has come.
    pub(super) fn wait(&mut self, number: usize, due: Duration) {
        self.all[number].due = due;
        match self.lane(number) {
            Some(lane) => {
                lane.open.insert(number);
                self.lead(number);
            }
            None => self.line_up(number),
        }
    }

    /// It is settled.
    pub(super) fn leave(&mut self, number: usize) {
        self.step_out(number);
        if let Some(lane) = self.lane(number) {
            lane.open.remove(&number);
            self.lead(number);
        }
    }

    /// It is unanswered from now on.
    pub(super) fn sent(&mut self, number: usize) {
        self.step_out(number);
        self.outstanding += 1;
        self.all[number].outstanding += 1;
        if let Some(lane) = self.lane(number) {
            lane.outstanding += 1;
            lane.in_line = None;
        }
    }

    /// One delivery of it is unanswered no more.
    pub(super) fn ended(&mut self, number: usize) {
        self.outstanding -= 1;
        self.all[number].outstanding -= 1;
        if let Some(lane) = self.lane(number) {
            lane.outstanding -= 1;
            self.lead(number);
        }
    }

    /// The next to be sent, and when.
    pub(super) fn first(&self) -> Option<(Duration, usize)> {
        self.line.first().copied()
    }

    /// How many deliveries are unanswered.
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether a delivery of it is unanswered.
    pub(super) fn is_outstanding(&self, number: usize) -> bool {
        self.all[number].outstanding > 0
    }

    /// The messages of its ordering key that were published after it.
    pub(super) fn later(&self, number: usize) -> Vec<usize> {
        let Some(key) = &self.all[number].lane else { return Vec::new() };
        let same = |later: &usize| self.all[*later].lane.as_ref() == Some(key);
        (number + 1..self.all.len()).filter(same).collect()
    }

    /// Lets the first message of this one's key stand in the line, and no other of it.
    fn lead(&mut self, number: usize) {
        let Some(lane) = self.lane(number) else { return };
        let first = lane.open.first().copied().filter(|_| lane.outstanding == 0);
        let before = std::mem::replace(&mut lane.in_line, first);
        if let Some(before) = before.filter(|_| before != first) {
            self.step_out(before);
        }
        if let Some(first) = first {
            self.line_up(first);
        }
    }

    fn line_up(&mut self, number: usize) {
        self.step_out(number);
        let place = &mut self.all[number];
        place.lined = Some(place.due);
        self.line.insert((place.due, number));
    }

    fn step_out(&mut self, number: usize) {
        if let Some(due) = self.all[number].lined.take() {
            self.line.remove(&(due, number));
        }
    }

    fn lane(&mut self, number: usize) -> Option<&mut Lane> {
        let key = self.all[number].lane.as_ref()?;
        // Made at the first look, which borrows the key; few keys, many messages.
        if !self.lanes.contains_key(key) {
            self.lanes.insert(key.clone(), Lane::default());
        }
        self.lanes.get_mut(key)
    }
}
