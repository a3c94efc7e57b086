//! Faults that the simulation plants in the shipped code, to show that it would find them. All off, and gone without the feature.

/// A mistake that an implementation of the lease could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "contract"), expect(unreachable_pub, reason = "public with the feature only"))]
#[doc(hidden)]
pub enum Fault {
    /// Every claim has the same holder and token.
    NoToken,
    /// A completion is refused once the lease has lapsed.
    LeaseGuardOnComplete,
    /// A win counts although its lease is over.
    StaleWin,
    /// An abandoned claim is looked up and, if it is not there, forgotten.
    LookUpOnly,
    /// An abandoned claim is left as it is.
    NoUndo,
    /// A completion that was not stored before the answer is dropped.
    DroppedCompletion,
    /// A reset whose answer was lost is tried again on whoever came after.
    ResetsAnybody,
}

#[cfg(feature = "contract")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault in this thread's lease code, or removes it.
#[cfg(feature = "contract")]
#[doc(hidden)]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

#[cfg(feature = "contract")]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

#[cfg(not(feature = "contract"))]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}
