//! The models that are checked, each with what must happen somewhere in it.

use super::bounds::{Bounds, Budget, How, Role};
use super::reached::Reached;

const NOTHING: Budget = Budget { ticks: 0, mishaps: 0, crashes: 0, deletions: 0, resets: 0 };

const LOCK: Bounds = Bounds {
    name: "lock",
    roles: &[Role::Lock],
    ends: &[How::Succeeded, How::Failed],
    renews: false,
    tells: true,
    behind: 0,
    attempts: 3,
    budget: Budget { ticks: 2, mishaps: 1, crashes: 1, ..NOTHING },
};

pub(super) const MODELS: &[(Bounds, &[Reached])] = &[
    (
        LOCK,
        &[
            Reached::CrashHealed,
            Reached::TakenOver,
            Reached::FencedOut,
            Reached::CompletedAfterLapse,
            Reached::OwnClaim,
            Reached::OwnWrite,
            Reached::RenewedFirst,
            Reached::TooLate,
            Reached::LateLanded,
            Reached::Forestalled,
            Reached::Undone,
            Reached::Held,
            Reached::Duplicate,
            Reached::RerunAfterFailure,
            Reached::RerunAfterUnknown,
        ],
    ),
    (
        Bounds {
            name: "lock, renewed, ttl over",
            ends: &[How::Succeeded, How::Panicked, How::Cancelled, How::Rejected],
            renews: true,
            attempts: 2,
            budget: Budget { ticks: 4, mishaps: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::Renewed, Reached::TtlOver, Reached::Rejected, Reached::FencedOut, Reached::OwnWrite],
    ),
    (
        Bounds {
            name: "lock, a store that does not tell what stands",
            tells: false,
            ends: &[How::Succeeded],
            budget: Budget { ticks: 2, mishaps: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::TakenOver, Reached::FencedOut, Reached::OwnClaim, Reached::OwnWrite],
    ),
    (
        Bounds {
            name: "mutex",
            roles: &[Role::Mutex],
            budget: Budget { ticks: 2, mishaps: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::TakenOver, Reached::FencedOut, Reached::Forestalled, Reached::Held],
    ),
    (
        Bounds {
            name: "at_most_once",
            roles: &[Role::AtMostOnce],
            budget: Budget { ticks: 3, ..LOCK.budget },
            ..LOCK
        },
        &[Reached::Marked, Reached::Duplicate, Reached::TtlOver, Reached::Undone, Reached::OwnClaim],
    ),
    (
        Bounds {
            name: "lock and serialize: a key and an entity",
            roles: &[Role::Serialize],
            ends: &[How::Succeeded],
            budget: Budget { ticks: 2, crashes: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::CrashHealed, Reached::TakenOver, Reached::FencedOut, Reached::Held],
    ),
    (
        Bounds {
            name: "serialize, and other work on the entity",
            roles: &[Role::Serialize, Role::Entity],
            ends: &[How::Succeeded],
            renews: true,
            attempts: 2,
            budget: Budget { ticks: 2, mishaps: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::Held, Reached::Undone, Reached::Duplicate],
    ),
    (
        Bounds {
            name: "the three verbs on one key",
            roles: &[Role::Lock, Role::Mutex, Role::AtMostOnce],
            ends: &[How::Succeeded],
            budget: Budget { ticks: 2, ..NOTHING },
            ..LOCK
        },
        &[Reached::Misuse, Reached::TakenOver, Reached::Duplicate],
    ),
    (
        Bounds {
            name: "lock, deletion, clocks apart",
            behind: 11,
            ends: &[How::Succeeded],
            budget: Budget { ticks: 1, mishaps: 1, deletions: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::Deleted, Reached::LateLanded, Reached::FencedOut],
    ),
    (
        Bounds {
            name: "mutex, deletion, clocks apart",
            roles: &[Role::Mutex],
            behind: 11,
            ends: &[How::Succeeded],
            budget: Budget { mishaps: 1, deletions: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::Deleted, Reached::LateLanded],
    ),
    (
        Bounds {
            name: "lock, reset by an operator",
            ends: &[How::Succeeded],
            budget: Budget { ticks: 2, mishaps: 1, resets: 1, ..NOTHING },
            ..LOCK
        },
        &[Reached::Reset, Reached::FencedOut, Reached::RerunAfterUnknown],
    ),
];
