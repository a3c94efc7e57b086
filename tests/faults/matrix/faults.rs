//! The faults, and how each is made on each kind of store.

use std::fmt;
use std::time::Duration;

use pushonce::store::chaos::Fault as Fake;

/// Longer than a call may take.
const LATE: Duration = Duration::from_secs(6);
pub(crate) const STALL: Fake = Fake::Stall(LATE);
/// Longer than a claim may take.
pub(crate) const STILL: Duration = Duration::from_secs(11);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    CutBefore,
    CutAfter,
    LandsLate,
    AnswersLate,
    Restarted,
    Stalled,
}

impl Fault {
    /// Those of one connection, which cells meet each on its own.
    pub(crate) const OF_THE_WIRE: [Self; 4] =
        [Self::CutBefore, Self::CutAfter, Self::LandsLate, Self::AnswersLate];
    pub(crate) const ALL: [Self; 6] =
        [Self::CutBefore, Self::CutAfter, Self::LandsLate, Self::AnswersLate, Self::Restarted, Self::Stalled];

    /// Whether something is kept on its way until the test lets it go.
    pub(crate) fn keeps(self) -> bool {
        matches!(self, Self::LandsLate | Self::AnswersLate)
    }

    /// Whether a write that met it has landed, or may land.
    pub(crate) fn may_land(self) -> bool {
        matches!(self, Self::CutAfter | Self::LandsLate | Self::AnswersLate)
    }

    /// The same where there is no wire.
    pub(crate) fn made_up(self) -> Fake {
        match self {
            Self::CutBefore => Fake::LoseBefore,
            Self::CutAfter => Fake::LoseAnswer,
            Self::LandsLate => Fake::Late(LATE),
            Self::AnswersLate | Self::Restarted | Self::Stalled => STALL,
        }
    }

    pub(crate) fn lasts(fake: Fake) -> Duration {
        match fake {
            Fake::Late(time) | Fake::Stall(time) => time,
            _ => Duration::ZERO,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CutBefore => "cut before",
            Self::CutAfter => "cut after",
            Self::LandsLate => "lands late",
            Self::AnswersLate => "answer late",
            Self::Restarted => "restarted",
            Self::Stalled => "stalled",
        })
    }
}
