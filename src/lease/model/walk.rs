//! Where a holder is on its way through `claim`, `Claim::write` and `undo`: what it remembers, and the call that it has sent.

use super::bounds::{FAR, How, Role};
use super::kept::{Kept, Seen, Told};

/// A call of the store whose answer has not come.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) enum Call {
    Read,
    Swap { seen: Option<u8>, next: Kept },
}

/// What a call is answered.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Written(u8),
    /// What stands: what was read, or what a lost swap was told.
    Stands(Option<Seen>),
    /// A lost swap of a store that cannot tell.
    Lost,
    /// A fault that may pass.
    Failed {
        may_have_written: bool,
    },
}

/// `claim::Attempt`.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub(super) struct Attempt {
    pub(super) standing: Option<Seen>,
    pub(super) found: Told,
    /// Hours since the first write that may have won.
    pub(super) since: u8,
    pub(super) sent: bool,
}

/// `claim::Claim`.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Claim {
    pub(super) kept: Kept,
    pub(super) version: u8,
    pub(super) found: Told,
    pub(super) since: u8,
}

/// Why a claim is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wish {
    /// Renewed before the win counts, for the nth time.
    Check(u8),
    /// Renewed since the wait for the entity took long.
    Enter,
    /// Renewed while the work runs.
    Keep,
    /// Renewed before the message is sent to the dead letters.
    Send,
    /// The work has ended.
    End(How),
    /// The work never began, and never will: given back in the background, and given up after a lease.
    Undo { began: u8 },
    /// The same before the answer, and until it is stored.
    Withdraw,
}

/// One claim's way.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub(super) enum Walk {
    /// Not begun, or over.
    #[default]
    Off,
    /// In `Attempt::run`. `earlier`: a write on this condition had been sent before this call.
    Claiming {
        attempt: Attempt,
        earlier: bool,
        call: Call,
    },
    Held(Claim),
    /// In `Claim::write`. `sent`: hours since the call was sent.
    Writing {
        claim: Claim,
        wish: Wish,
        sent: u8,
        call: Call,
    },
    /// In `undo::forestall`.
    Forestalling {
        condition: Option<Seen>,
        began: u8,
        call: Call,
    },
}

impl Walk {
    pub(super) fn call(&self) -> Option<&Call> {
        match self {
            Self::Off | Self::Held(_) => None,
            Self::Claiming { call, .. } | Self::Writing { call, .. } | Self::Forestalling { call, .. } => {
                Some(call)
            }
        }
    }

    /// Every version that it remembers.
    pub(super) fn versions(&mut self) -> impl Iterator<Item = &mut u8> {
        let (seen, claim, call) = match self {
            Self::Off => (None, None, None),
            Self::Claiming { attempt, call, .. } => (attempt.standing.as_mut(), None, Some(call)),
            Self::Held(claim) => (None, Some(claim), None),
            Self::Writing { claim, call, .. } => (None, Some(claim), Some(call)),
            Self::Forestalling { condition, call, .. } => (condition.as_mut(), None, Some(call)),
        };
        let call = call.and_then(|call| match call {
            Call::Swap { seen, .. } => seen.as_mut(),
            Call::Read => None,
        });
        seen.map(|seen| &mut seen.version)
            .into_iter()
            .chain(claim.map(|claim| &mut claim.version))
            .chain(call)
    }

    /// Time passes by the holder's own count.
    pub(super) fn pass(&mut self, hours: u8) {
        let pass = |count: &mut u8| *count = count.saturating_add(hours).min(FAR);
        match self {
            Self::Off => {}
            Self::Claiming { attempt, .. } if attempt.sent => pass(&mut attempt.since),
            Self::Claiming { .. } => {}
            Self::Held(claim) => pass(&mut claim.since),
            Self::Writing { claim, wish, sent, .. } => {
                pass(&mut claim.since);
                pass(sent);
                if let Wish::Undo { began } = wish {
                    pass(began);
                }
            }
            Self::Forestalling { began, .. } => pass(began),
        }
    }
}

/// How far the work of a holder is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    Claiming,
    Working,
    Ending,
}

/// A holder: one delivery in one process, with all that it has in memory.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Holder {
    pub(super) number: u8,
    pub(super) role: Role,
    pub(super) stage: Stage,
    /// Of its key, and of its entity.
    pub(super) walks: [Walk; 2],
    /// It was told that its lease is gone.
    pub(super) lost: bool,
}

impl Holder {
    /// Whether both have sent their first call, at one time, and nothing more. Neither is known to the store.
    pub(super) fn is_new_as(&self, twin: &Self) -> bool {
        let first = |holder: &Self| match &holder.walks {
            [
                Walk::Claiming { attempt: Attempt { standing: None, since, sent, .. }, earlier: false, call },
                Walk::Off,
            ] => match call {
                Call::Swap { next, .. } => Some((*since, Some((next.fence, next.expires)))),
                Call::Read if !sent => Some((*since, None)),
                Call::Read => None,
            },
            _ => None,
        };
        self.role == twin.role && first(self).is_some() && first(self) == first(twin)
    }
}
