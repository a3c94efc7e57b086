//! The memory of a cache: a fixed number of places, and in each the key that came last.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::key::Key;
use crate::store::Stored;
use crate::time::Stopwatch;

/// Each key has one place: there is no order to keep, and nothing grows.
pub(super) struct Places {
    slots: Box<[Mutex<Slot>]>,
    // Without a seed, so that a simulation can be replayed. A sender that aims at one place gains nothing
    // but trips.
    hasher: BuildHasherDefault<DefaultHasher>,
}

#[derive(Default)]
struct Slot {
    writes: u64,
    known: Option<Box<Known>>,
}

struct Known {
    key: Key,
    stored: Stored,
    since: Stopwatch,
    keep: Duration,
}

/// How many writes to the keys of a place had begun. What was asked before one of them is not
/// remembered after it: nobody knows which of the two the store saw first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl Places {
    /// At least one place.
    pub(super) fn new(entries: usize) -> Self {
        let slots = std::iter::repeat_with(Mutex::default).take(entries.max(1)).collect();
        Self { slots, hasher: BuildHasherDefault::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn ticket(&self, key: &Key) -> Ticket {
        Ticket(self.slot(key).writes)
    }

    /// What is remembered of a key, as old as it is by now.
    pub(super) fn known(&self, key: &Key) -> Option<Stored> {
        let mut slot = self.slot(key);
        let known = slot.known.as_ref().filter(|known| known.key == *key)?;
        let elapsed = known.since.elapsed();
        if elapsed >= known.keep {
            slot.known = None;
            return None;
        }
        Some(Stored { age: known.stored.age.saturating_add(elapsed), ..known.stored.clone() })
    }

    /// Remembers for that long what was true at some time after `since`; whether it did.
    pub(super) fn remember(
        &self,
        key: &Key,
        stored: Stored,
        since: Stopwatch,
        keep: Duration,
        ticket: Ticket,
    ) -> bool {
        // Made, and what it replaces dropped, while nobody waits for the place.
        let mut known = Some(Box::new(Known { key: key.clone(), stored, since, keep }));
        let mut slot = self.slot(key);
        let current = Ticket(slot.writes) == ticket;
        if current {
            std::mem::swap(&mut slot.known, &mut known);
        }
        drop(slot);
        current
    }

    /// Forgets a key.
    pub(super) fn forget(&self, key: &Key) {
        self.slot(key).known.take_if(|known| known.key == *key);
    }

    /// Forgets a key, and whatever was asked about it up to now.
    pub(super) fn outdate(&self, key: &Key) -> Ticket {
        let mut slot = self.slot(key);
        slot.known.take_if(|known| known.key == *key);
        slot.writes += 1;
        Ticket(slot.writes)
    }

    fn slot(&self, key: &Key) -> MutexGuard<'_, Slot> {
        // The remainder is below a length, which is a usize.
        let at = self.hasher.hash_one(key) % self.slots.len() as u64;
        self.slots[at as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
