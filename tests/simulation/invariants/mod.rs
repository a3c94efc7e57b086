//! What must hold, whatever happens: checked at every write, at every step of the work and at every answer.

mod answers;
mod entries;
mod runs;
mod writes;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use pushonce::Key;
use pushonce::store::record::{Progress, Record, State};
use tokio::time::Instant;

use crate::schedule::secs;
use crate::totals::{Seen, Totals};

/// After this long without a mishap everything that a live instance still has to write is written:
/// its longest pause between two tries is 30 seconds, and a claim may wait for an entity.
pub(crate) const QUIET: Duration = secs(50);
/// The same for an undo, which pauses a second at most and calls for five.
const UNDOING: Duration = secs(12);

/// One rule. Its name is what a planted fault is expected to break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Never two live holders within a lease by the store's clock.
    OneHolder,
    /// Whose lease has something left, as the work sees it, holds the key.
    BeliefHolds,
    /// A run begins while more than half of its lease is left.
    FreshWin,
    /// The fence of a key rises with every claim and release, also across deletion.
    FenceRises,
    /// Whoever was replaced writes nothing.
    ZombieWritesNothing,
    /// A done key is neither overwritten nor run again within its ttl.
    DoneStays,
    /// Nothing is recorded as done that nobody did.
    DoneWasRun,
    /// `at_most_once` never runs twice within its ttl.
    AtMostOnce,
    /// Runs per key ≤ 1 + failures + crashes + cancels + lapsed leases.
    RunsAreCaused,
    /// Every rerun says in its history that it is one.
    HistoryTold,
    /// What was told as `ran` is recorded.
    RanIsRecorded,
    /// Nothing is acked that nobody did (or, for `at_most_once`, marked).
    AckedWasDone,
    /// After the work succeeded nothing nacks.
    SuccessIsAcked,
    /// The end of the work is stored once the store is healthy, unless somebody took the key over.
    EndIsStored,
    /// Cancelled work may go on: its key is left to lapse, unless the handler declares that it cannot.
    CancelLapses,
    /// An instance that knows that a key is done, and is still storing that, does not run it again.
    PendingIsNotRerun,
    /// A claim that nobody works on does not hold its key.
    AbandonedIsUndone,
    /// The ledger of uncertain keys names runs that succeeded, the latest of a key, and what became of them.
    EntryIsTrue,
    /// Every message ends acked or dead-lettered.
    EveryMessageEnds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) text: String,
}

/// How a run really ended, whatever was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded,
    Failed,
    Panicked,
    Cancelled,
    Crashed,
}

#[derive(Debug)]
struct Run {
    key: Key,
    fence: u64,
    delivery: u64,
    instance: usize,
    end: Option<(End, Instant)>,
}

/// A claim that landed.
#[derive(Debug)]
struct Won {
    instance: usize,
    sent: Instant,
    landed: Instant,
    run: Option<usize>,
}

/// What is known of a key from outside.
#[derive(Debug, Default)]
struct Log {
    highest: u64,
    /// Runs since the key was last done or deleted, and what allows more than one.
    begun: u32,
    allowed: u32,
    /// Runs that began and are not recorded.
    open: Vec<usize>,
    last_begun: u64,
    /// Since when it is recorded.
    done: Option<Instant>,
    /// When a run of `at_most_once` was last marked.
    marked: Option<Instant>,
    /// Fences of the runs that are recorded.
    recorded: Vec<u64>,
}

/// A record as the store keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) version: u64,
    pub(crate) written: Instant,
}

impl Entry {
    /// Live by the store's clock.
    fn live(&self, now: Instant) -> bool {
        let age = self.record.aged + (now - self.written);
        match self.record.state {
            State::Claimed => age < self.record.lease,
            State::Done => age < self.record.ttl,
            State::Released => false,
        }
    }
}

pub(crate) type Records = BTreeMap<Key, Entry>;

/// How an instance is, for the rules that hold only once it has had time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Health {
    pub(crate) alive: bool,
    /// When it was last hindered, or will be no more.
    pub(crate) quiet_since: Instant,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) totals: Totals,
    pub(crate) violations: Vec<Violation>,
    runs: Vec<Run>,
    cancel_safe: bool,
    /// When each delivery began.
    pub(crate) delivered: Vec<Instant>,
    keys: BTreeMap<Key, Log>,
    won: BTreeMap<(Key, u64), Won>,
}

fn finished(record: &Record) -> bool {
    record.state == State::Done
        && record.receipt.as_ref().is_some_and(|receipt| receipt.progress == Progress::Finished)
}

impl Ledger {
    pub(crate) fn new(cancel_safe: bool) -> Self {
        Self {
            totals: Totals::new(),
            violations: Vec::new(),
            runs: Vec::new(),
            cancel_safe,
            delivered: Vec::new(),
            keys: BTreeMap::new(),
            won: BTreeMap::new(),
        }
    }

    pub(crate) fn violated(&mut self, rule: Rule, text: impl Display) {
        self.violations.push(Violation { rule, text: text.to_string() });
    }

    fn run_under(&self, key: &Key, fence: u64) -> Option<&Run> {
        let run = self.won.get(&(key.clone(), fence))?.run?;
        Some(&self.runs[run])
    }

    /// A new window: what was before is recorded, over, or deleted.
    fn forget(&mut self, key: &Key) {
        let log = self.log(key);
        (log.begun, log.allowed, log.done) = (0, 0, None);
        log.open.clear();
    }

    /// Garbage collection took the record.
    pub(crate) fn deleted(&mut self, key: &Key) {
        self.totals.add(Seen::Deleted);
        self.forget(key);
    }

    fn log(&mut self, key: &Key) -> &mut Log {
        self.keys.entry(key.clone()).or_default()
    }
}
