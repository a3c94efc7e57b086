//! What must hold, whatever happens: the rules of the simulation, and what is known of runs and keys to tell.

use super::Protocol;
use super::bounds::{FAR, How};
use super::kept::Kept;
use super::play::{Play, id};
use super::world::World;
use crate::lease::status::is_started;
use crate::store::record::{Id, State};

/// One rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Never two live holders within a lease, by the store's clock or as they count it.
    OneHolder,
    /// Who believes that the lease has something left holds the key.
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
    /// What was told as recorded is.
    RanIsRecorded,
    /// Nothing is skipped as done that nobody did (or, for `at_most_once`, marked).
    AckedWasDone,
    /// The end of the work is stored, unless somebody took the key over.
    EndIsStored,
    /// The key of cancelled work is left to lapse.
    CancelLapses,
    /// A claim that nobody works on does not hold its key, and no work starts on one that was undone.
    AbandonedIsUndone,
    /// When nothing is under way, the key is done, or free after a lease, or after the ttl of a mark.
    FreeAgain,
}

/// Those that are broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Rules(u32);

impl Rules {
    pub(super) fn has(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u32) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Where a holder is, seen from outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Gone {
    Here,
    /// It has settled or undone all that it could.
    Left,
    Crashed,
    /// It has left, and what it sent may land all the same, since its undo was given up after a lease.
    /// It heals by lapsing.
    Lapsing,
}

/// What really became of a holder's work, whatever is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Run {
    pub(super) began: bool,
    pub(super) ended: Option<How>,
    pub(super) gone: Gone,
    /// Its claim was given up. It must not begin after that.
    pub(super) undone: bool,
    /// An operator has freed its key by force.
    pub(super) reset: bool,
}

impl Run {
    pub(super) const NEW: Self =
        Self { began: false, ended: None, gone: Gone::Here, undone: false, reset: false };
}

/// What is known of a key from outside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Log {
    pub(super) highest: u64,
    /// The highest fence under which work began.
    pub(super) ran: u64,
    /// Runs since the key was last free of all history, and what allows more than one.
    pub(super) begun: u8,
    pub(super) allowed: u8,
    /// Those of `at_most_once`.
    pub(super) marks: u8,
    /// Runs that began and are not recorded, and whose was the last.
    pub(super) open: u8,
    pub(super) last: Option<u8>,
    /// Hours since it was recorded.
    pub(super) done: Option<u8>,
    /// The hour in which the record was deleted.
    pub(super) deleted: Option<u16>,
    /// Whose runs are recorded.
    pub(super) recorded: u8,
}

impl Log {
    pub(super) fn pass(&mut self, hours: u8) {
        self.done = self.done.map(|done| done.saturating_add(hours).min(FAR));
    }

    /// A new window: what was before is over.
    pub(super) fn forget(&mut self) {
        let Self { highest, ran, deleted, .. } = *self;
        *self = Self { highest, ran, deleted, ..Self::default() };
    }
}

/// The number of the holder that an id names.
pub(super) fn number(holder: Option<Id>) -> Option<u8> {
    (0..8).find(|number| holder == Some(id(*number)))
}

pub(super) fn finished(kept: &Kept) -> bool {
    kept.state == State::Done && !is_started(kept)
}

impl Play<'_> {
    pub(super) fn broken(&mut self, rule: Rule) {
        self.world.broken.0 |= 1 << rule as u32;
    }
}

macro_rules! properties {
    ($($rule:ident),*) => {
        /// Each rule for the model checker, which knows properties by texts, and by functions without a state.
        pub(super) const ALL: &[(Rule, &str, fn(&Protocol, &World) -> bool)] =
            &[$((Rule::$rule, stringify!($rule), |_, world| !world.broken.has(Rule::$rule))),*];
    };
}

properties![
    OneHolder,
    BeliefHolds,
    FreshWin,
    FenceRises,
    ZombieWritesNothing,
    DoneStays,
    DoneWasRun,
    AtMostOnce,
    RunsAreCaused,
    HistoryTold,
    RanIsRecorded,
    AckedWasDone,
    EndIsStored,
    CancelLapses,
    AbandonedIsUndone,
    FreeAgain
];
