//! What must happen somewhere in a model: a model in which it cannot says nothing of it.

use std::sync::atomic::{AtomicU32, Ordering};

use super::play::Play;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reached {
    /// Somebody takes over what a crashed holder has left.
    CrashHealed,
    /// Somebody takes over from a holder that still lives.
    TakenOver,
    /// A holder is told that it was replaced.
    FencedOut,
    /// A completion is recorded although the lease has lapsed.
    CompletedAfterLapse,
    /// A claim whose answer was lost is known by its holder.
    OwnClaim,
    /// A write of a holder whose answer was lost is found to be stored.
    OwnWrite,
    /// A win was renewed before it counted.
    RenewedFirst,
    /// A win came too late to count.
    TooLate,
    /// A lease was renewed while the work ran.
    Renewed,
    /// A write landed after its sender waited no more.
    LateLanded,
    /// A claim was made impossible before it could land.
    Forestalled,
    /// A claim that nobody works on was given back.
    Undone,
    Held,
    Duplicate,
    /// A duplicate met a mark whose work is not finished.
    Marked,
    Misuse,
    RerunAfterFailure,
    RerunAfterUnknown,
    TtlOver,
    Deleted,
    Rejected,
    Reset,
}

#[derive(Debug, Default)]
pub(super) struct Places(AtomicU32);

impl Places {
    pub(super) fn has(&self, reached: Reached) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << reached as u32) != 0
    }
}

impl Play<'_> {
    pub(super) fn reached(&self, reached: Reached) {
        self.protocol.places.0.fetch_or(1 << reached as u32, Ordering::Relaxed);
    }
}
