//! What a run was seen to do, and how that is judged.

use std::fmt;

use crate::place::Standing;

/// What was seen of one message, from its first delivery until nothing more comes of it.
#[derive(Debug)]
pub(crate) struct Seen {
    /// What the record said when Pub/Sub was told that it is done; `None`: it never was.
    pub(crate) acked: Option<Standing>,
    /// The redeliveries that were not acked before.
    pub(crate) refused: usize,
    /// The effects that were made.
    pub(crate) effects: usize,
    /// The idempotency keys that they came with; one without is `None`.
    pub(crate) ids: Vec<Option<String>>,
    /// Whether a holder that had been replaced changed the record of the one after it.
    pub(crate) overwritten: bool,
    /// Whether the fault can leave a claim behind that nobody works on: then refusals are a wait for its lease.
    pub(crate) leaves_a_claim: bool,
}

/// How a run is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// One effect, and acked when that was recorded.
    Right,
    /// One effect, but acked by who could not know of it: the fault a moment earlier, and it is lost.
    Luck,
    /// More effects, all with one idempotency key, by which the sink drops the repeat.
    Keyed,
    /// More effects that nobody can tell from each other.
    Repeated,
    /// Acked, and there is no effect.
    Lost,
    /// Not acked for as long as was looked.
    Stuck,
}

impl Seen {
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.acked, self.effects) {
            (None, _) => Verdict::Stuck,
            (Some(_), 0) => Verdict::Lost,
            (Some(Standing::Done), 1) => Verdict::Right,
            (Some(_), 1) => Verdict::Luck,
            _ if self.ids.iter().all(|id| id.is_some() && *id == self.ids[0]) => Verdict::Keyed,
            _ => Verdict::Repeated,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "right",
            Self::Luck => "acked unfinished",
            Self::Keyed => "repeated, keyed",
            Self::Repeated => "**repeated**",
            Self::Lost => "**lost**",
            Self::Stuck => "**stuck**",
        })
    }
}

/// The cell of the table.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict())?;
        if self.leaves_a_claim && self.refused > 0 && self.acked.is_some() {
            f.write_str(", a lease later")?;
        }
        if self.overwritten {
            f.write_str(", **overwritten**")?;
        }
        Ok(())
    }
}
