//! How far each model goes: who asks for what, and how often what goes wrong.

use std::fmt;
use std::time::Duration;

use crate::store::record::Verb;

/// Time passes by the hour; a lease is two of them, and so can be half over.
pub(super) const LEASE: u8 = 2;
pub(super) const TTL: u8 = 3;
/// An age that is past every lease and ttl.
pub(super) const FAR: u8 = LEASE + TTL;
/// The wall clock's hour at the beginning.
pub(super) const BEGIN: u64 = 1000;

pub(super) const fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 60 * 60)
}

/// What a holder claims before it works.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Role {
    Lock,
    Mutex,
    AtMostOnce,
    /// A message of its own key whose work needs an entity besides.
    Serialize,
    /// Other work on that entity.
    Entity,
}

impl Role {
    /// The keys that are claimed, in turn: a key of its own, then an entity.
    pub(super) const fn claims(self) -> &'static [(usize, Verb)] {
        match self {
            Self::Lock => &[(0, Verb::Lock)],
            Self::Mutex => &[(0, Verb::Mutex)],
            Self::AtMostOnce => &[(0, Verb::AtMostOnce)],
            Self::Serialize => &[(0, Verb::Lock), (1, Verb::Mutex)],
            Self::Entity => &[(1, Verb::Mutex)],
        }
    }
}

/// How work ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum How {
    Succeeded,
    Failed,
    Panicked,
    /// Left to lapse.
    Cancelled,
    /// Failed for good, and its message sent to the dead letters.
    Rejected,
}

/// What may still happen, in all of a history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Budget {
    /// Hours that pass.
    pub(super) ticks: u8,
    /// Answers that are lost, calls that are refused, and deadlines that pass.
    pub(super) mishaps: u8,
    pub(super) crashes: u8,
    /// Records that the garbage collection takes, as soon as it may.
    pub(super) deletions: u8,
    /// Keys that an operator resets.
    pub(super) resets: u8,
}

/// One model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) name: &'static str,
    /// What each holder may be.
    pub(super) roles: &'static [Role],
    pub(super) ends: &'static [How],
    /// Whether leases are renewed while the work runs.
    pub(super) renews: bool,
    /// Whether the store tells with a lost swap what stands instead.
    pub(super) tells: bool,
    /// By how many hours the clock of every other holder is behind. The retention of records bears twelve.
    pub(super) behind: u64,
    /// Claims in all of a history; three at most are under way at a time.
    pub(super) attempts: usize,
    pub(super) budget: Budget,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { roles, ends, attempts, budget, .. } = self;
        let Budget { ticks, mishaps, crashes, deletions, resets } = budget;
        write!(
            f,
            "{attempts} claims as {roles:?}, work that has {ends:?}; at most {ticks} half leases, {mishaps} mishaps, "
        )?;
        write!(f, "{crashes} crashes, {deletions} deletions, {resets} resets")
    }
}
