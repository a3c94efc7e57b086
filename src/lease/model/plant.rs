//! Mistakes that a store, or the lease's code, could make: each must have a counterexample.

use super::bounds::{Bounds, Budget, How, Role};
use super::rules::Rule;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plant {
    /// The store writes whatever the version is.
    NoVersionCheck,
    /// The store counts versions from one again after a deletion.
    RepeatingVersions,
    /// The holders' clocks are further apart than the retention bears.
    ClocksApart,
    /// All claims have one holder.
    NoToken,
    /// A holder takes whatever stands for its own.
    AnyHolder,
    /// A completion is refused once the lease has lapsed.
    LeaseGuardOnComplete,
    /// A win counts although its lease is over.
    StaleWin,
    /// Work begins once its key is renewed, whatever became of its entity meanwhile.
    EntityNotLooked,
    /// A holder counts its lease from the answer, and not from before it sent the claim.
    SinceAnswer,
    /// A lease is over when half of it is.
    EarlyTakeOver,
    /// A claim that was given up is looked up and, if it is not there, forgotten.
    LookUpOnly,
    /// A claim that was given up is left as it is.
    NoUndo,
    /// A completion that was not stored before the answer is dropped.
    DroppedCompletion,
    /// A done key is free, and a mark over, when a lease is.
    DoneForALease,
    /// Cancelled work, which may go on, has its key released.
    CancelReleases,
    /// The fence is counted from one, and not from the clock.
    FenceFromOne,
    /// A duplicate is told that the key is done while its holder still works.
    HeldIsDone,
    /// A completion whose answer was lost is taken for recorded.
    LostIsRecorded,
    /// A claim never lapses.
    LeaseForEver,
    /// A take-over tells its holder nothing of the run before.
    NoHistory,
}

/// Each with a rule that it must break, and what makes it do so.
pub(super) const ALL: &[(Plant, Rule, Bounds)] = &[
    (Plant::NoVersionCheck, Rule::OneHolder, SMALL),
    (Plant::NoVersionCheck, Rule::RunsAreCaused, SMALL),
    (Plant::RepeatingVersions, Rule::ZombieWritesNothing, DELETED),
    (Plant::ClocksApart, Rule::FenceRises, Bounds { roles: &[Role::Mutex], behind: 13, ..DELETED }),
    (Plant::NoToken, Rule::OneHolder, SMALL),
    (Plant::AnyHolder, Rule::DoneWasRun, SMALL),
    (Plant::LeaseGuardOnComplete, Rule::EndIsStored, SMALL),
    (Plant::StaleWin, Rule::FreshWin, SMALL),
    (Plant::EntityNotLooked, Rule::FreshWin, ENTITY),
    (Plant::SinceAnswer, Rule::BeliefHolds, SMALL),
    (Plant::EarlyTakeOver, Rule::OneHolder, SMALL),
    (Plant::LookUpOnly, Rule::AbandonedIsUndone, SMALL),
    (Plant::NoUndo, Rule::AbandonedIsUndone, SMALL),
    (Plant::DroppedCompletion, Rule::EndIsStored, SMALL),
    (Plant::DoneForALease, Rule::DoneStays, SMALL),
    (Plant::DoneForALease, Rule::AtMostOnce, Bounds { roles: &[Role::AtMostOnce], ..SMALL }),
    (Plant::CancelReleases, Rule::CancelLapses, Bounds { ends: &[How::Cancelled], ..SMALL }),
    (Plant::FenceFromOne, Rule::FenceRises, DELETED),
    (Plant::NoHistory, Rule::HistoryTold, SMALL),
    (Plant::HeldIsDone, Rule::AckedWasDone, SMALL),
    (Plant::LostIsRecorded, Rule::RanIsRecorded, SMALL),
    (Plant::LeaseForEver, Rule::FreeAgain, SMALL),
];

const SMALL: Bounds = Bounds {
    name: "lock",
    roles: &[Role::Lock],
    ends: &[How::Succeeded, How::Failed],
    renews: false,
    tells: true,
    behind: 0,
    attempts: 3,
    budget: Budget { ticks: 3, mishaps: 1, crashes: 1, deletions: 0, resets: 0 },
};

const DELETED: Bounds =
    Bounds { budget: Budget { ticks: 0, mishaps: 1, crashes: 0, deletions: 1, resets: 0 }, ..SMALL };

const ENTITY: Bounds = Bounds {
    roles: &[Role::Serialize],
    renews: true,
    attempts: 1,
    budget: Budget { ticks: 2, mishaps: 1, ..SMALL.budget },
    ..SMALL
};
