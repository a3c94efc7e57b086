//! The rows: each step of a key's life, and the call of it that meets the fault.

use std::fmt;

/// Which call of a store. The kind of a write is seen from the record that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    /// A claim where nothing is known to stand.
    Create,
    /// A claim written over what stands: a take-over or a renewal.
    Claim,
    Complete,
    Release,
    List,
    Purge,
}

impl Call {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Claim | Self::Complete | Self::Release)
    }

    /// Whether it is of no key.
    pub(crate) fn is_operators(self) -> bool {
        matches!(self, Self::List | Self::Purge)
    }
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Row {
    FirstClaimCreate,
    FirstClaimRead,
    ReclaimCreate,
    ReclaimRead,
    ReclaimSwap,
    RenewSwap,
    RenewRead,
    CompleteSwap,
    CompleteRead,
    ReleaseSwap,
    ReleaseRead,
    MarkCreate,
    ResetRead,
    ResetSwap,
    ResetReadAgain,
    InspectRead,
    List,
    Purge,
}

impl Row {
    pub(crate) const ALL: [Self; 18] = [
        Self::FirstClaimCreate,
        Self::FirstClaimRead,
        Self::ReclaimCreate,
        Self::ReclaimRead,
        Self::ReclaimSwap,
        Self::RenewSwap,
        Self::RenewRead,
        Self::CompleteSwap,
        Self::CompleteRead,
        Self::ReleaseSwap,
        Self::ReleaseRead,
        Self::MarkCreate,
        Self::ResetRead,
        Self::ResetSwap,
        Self::ResetReadAgain,
        Self::InspectRead,
        Self::List,
        Self::Purge,
    ];

    /// The call that loses its answer before, if that is how the step comes to make the call; and the call.
    pub(crate) fn calls(self) -> (Option<Call>, Call) {
        match self {
            Self::FirstClaimCreate | Self::ReclaimCreate => (None, Call::Create),
            Self::FirstClaimRead => (Some(Call::Create), Call::Read),
            Self::ReclaimRead | Self::ResetRead | Self::InspectRead => (None, Call::Read),
            Self::ReclaimSwap | Self::RenewSwap => (None, Call::Claim),
            Self::RenewRead => (Some(Call::Claim), Call::Read),
            // A mark is done from the first.
            Self::CompleteSwap | Self::MarkCreate => (None, Call::Complete),
            Self::CompleteRead => (Some(Call::Complete), Call::Read),
            Self::ReleaseSwap | Self::ResetSwap => (None, Call::Release),
            Self::ReleaseRead | Self::ResetReadAgain => (Some(Call::Release), Call::Read),
            Self::List => (None, Call::List),
            Self::Purge => (None, Call::Purge),
        }
    }

    /// Whether an operator takes the step.
    pub(crate) fn is_operators(self) -> bool {
        self >= Self::ResetRead
    }

    /// Whether it is tried on for as long as each of six tries may take.
    pub(crate) fn is_patient(self) -> bool {
        matches!(self, Self::ResetRead | Self::ResetSwap | Self::ResetReadAgain | Self::InspectRead)
    }

    /// Whether its call comes a third of a lease after its step began.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::RenewSwap | Self::RenewRead)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FirstClaimCreate => "first claim: create",
            Self::FirstClaimRead => "first claim: read after a lost create",
            Self::ReclaimCreate => "reclaim: create, lost to what stands",
            Self::ReclaimRead => "reclaim: read (`mutex`, which reads first)",
            Self::ReclaimSwap => "reclaim: swap",
            Self::RenewSwap => "renew: swap",
            Self::RenewRead => "renew: read after a lost swap",
            Self::CompleteSwap => "complete: swap",
            Self::CompleteRead => "complete: read after a lost swap",
            Self::ReleaseSwap => "release: swap",
            Self::ReleaseRead => "release: read after a lost swap",
            Self::MarkCreate => "mark (`at_most_once`): create",
            Self::ResetRead => "reset: read",
            Self::ResetSwap => "reset: swap",
            Self::ResetReadAgain => "reset: read after a lost swap",
            Self::InspectRead => "inspect: read",
            Self::List => "list",
            Self::Purge => "purge",
        })
    }
}
