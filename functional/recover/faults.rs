//! The faults: what goes wrong, and where in the work.

use std::time::Duration;

/// What goes wrong, and where: the work looks something up, then it makes its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    CrashBefore,
    CrashAfter,
    ZombieBefore,
    ZombieAfter,
    ClaimLost,
    DoneLost,
    HangUpBefore,
    HangUpAfter,
    Twin,
    TwinThenFailure,
    Failure,
    Outlasts,
}

impl Fault {
    pub(crate) const ALL: [Self; 12] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::ZombieBefore,
        Self::ZombieAfter,
        Self::ClaimLost,
        Self::DoneLost,
        Self::HangUpBefore,
        Self::HangUpAfter,
        Self::Twin,
        Self::TwinThenFailure,
        Self::Failure,
        Self::Outlasts,
    ];

    /// As the table calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash before the effect",
            Self::CrashAfter => "crash between effect and done",
            Self::ZombieBefore => "zombie, stopped before its effect",
            Self::ZombieAfter => "zombie, stopped between effect and done",
            Self::ClaimLost => "lost answer to the claim",
            Self::DoneLost => "lost answer to the done",
            Self::HangUpBefore => "hang-up before the effect",
            Self::HangUpAfter => "hang-up between effect and done",
            Self::Twin => "delivered twice at once",
            Self::TwinThenFailure => "delivered twice at once, and the work fails",
            Self::Failure => "the work fails",
            Self::Outlasts => "delivered again while the work outlasts a short lease",
        }
    }

    /// Whether it can leave a claim behind that nobody works on.
    pub(crate) fn leaves_a_claim(self) -> bool {
        use Fault::{ClaimLost, CrashAfter, CrashBefore, ZombieAfter, ZombieBefore};
        matches!(self, CrashBefore | CrashAfter | ZombieBefore | ZombieAfter | ClaimLost)
    }

    /// Short where it is to lapse, long where it must not.
    pub(crate) fn lease(self) -> Duration {
        Duration::from_secs(match self {
            // A third of it is the time that a claim may take, here the one that is tried again.
            Self::ClaimLost => 15,
            _ if self.leaves_a_claim() || self == Self::Outlasts => 5,
            _ => 60,
        })
    }
}
