//! What the schedules exercised: each of these must have happened, or the simulation proves less than it says.

use std::fmt;

macro_rules! seen {
    ($($name:ident),* $(,)?) => {
        /// Something that happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Seen { $($name),* }
        const ALL: &[Seen] = &[$(Seen::$name),*];
    };
}

seen!(
    Deliveries,
    Runs,
    Successes,
    Failures,
    Panics,
    Cancels,
    HangUps,
    Crashes,
    KilledAtWork,
    Stalls,
    Suspensions,
    Outages,
    WallJumps,
    Freezes,
    LostBefore,
    LostAnswers,
    LateWrites,
    LateLanded,
    LateRefused,
    LateAfterDeletion,
    CleanFailures,
    Refusals,
    SlowAnswers,
    Deleted,
    TakeOvers,
    Zombies,
    Renewals,
    Forestalled,
    Undone,
    CompletedAfterLapse,
    Ran,
    Duplicates,
    InProgress,
    Unavailable,
    Uncertain,
    Entries,
    SettledEntries,
    Lost,
    Failed,
    RerunsAfterFailure,
    RerunsAfterUnknown,
    TtlOver,
    Acked,
    DeadLettered,
    AckLost,
    Twins,
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Totals([u64; ALL.len()]);

impl Totals {
    pub(crate) fn new() -> Self {
        Self([0; ALL.len()])
    }

    pub(crate) fn add(&mut self, seen: Seen) {
        self.0[seen as usize] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// What never happened.
    pub(crate) fn missing(&self) -> Vec<Seen> {
        ALL.iter().copied().filter(|seen| self.0[*seen as usize] == 0).collect()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in ALL.chunks(4) {
            for seen in row {
                write!(f, "{:>20} {:<8}", format!("{seen:?}"), self.0[*seen as usize])?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
