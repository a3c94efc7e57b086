//! How a key stands: what its record and its age say together.

use std::fmt;
use std::time::Duration;

use crate::store::Stored;
use crate::store::record::{Progress, Record, State};

/// How a key stands, by its record and its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// A claim holds it.
    Held {
        /// What is left of its lease.
        left: Duration,
    },
    /// A claim held it and was neither completed nor released: free, but its holder may still be at
    /// work, and may still complete it until somebody else takes it.
    Lapsed,
    /// Free: given back, or reset.
    Released,
    /// Marked by `at_most_once`, and not finished: the work may be running, or it failed or crashed.
    /// Duplicates are skipped, and it is never run again.
    Started {
        /// What is left of its ttl.
        left: Duration,
    },
    /// Recorded: duplicates are skipped. The receipt says whether the work succeeded or was rejected.
    Done {
        /// What is left of its ttl.
        left: Duration,
    },
    /// It was recorded or marked, and its ttl is over: free.
    Expired,
}

impl Status {
    pub(crate) fn of(stored: &Stored) -> Self {
        let record = &stored.record;
        let left = |length| left_of(length, stored);
        match record.state {
            State::Claimed => left(record.lease).map_or(Self::Lapsed, |left| Self::Held { left }),
            State::Released => Self::Released,
            State::Done => match left(record.ttl) {
                Some(left) if is_started(record) => Self::Started { left },
                Some(left) => Self::Done { left },
                None => Self::Expired,
            },
        }
    }

    /// Whether a claim wins the key.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Lapsed | Self::Released | Self::Expired)
    }
}

/// In words, with what is left in round numbers.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Held { left } => write!(f, "held for another {}", round(left)),
            Self::Lapsed => f.write_str("lapsed: free, but its holder may still complete it"),
            Self::Released => f.write_str("released: free"),
            Self::Started { left } => write!(f, "started, and not run again for another {}", round(left)),
            Self::Done { left } => write!(f, "done for another {}", round(left)),
            Self::Expired => f.write_str("expired: free"),
        }
    }
}

/// The largest unit that says something, rounded up, so that nobody comes back too early.
fn round(left: Duration) -> String {
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    let units = [(24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min"), (1, "s")];
    // Two at least, since one could be almost two.
    let fits = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    let (length, unit) = fits.unwrap_or((1, "s"));
    format!("{} {unit}", seconds.div_ceil(length))
}

/// What a mark says until its work has succeeded.
pub(super) fn is_started(record: &Record) -> bool {
    record.receipt.as_ref().is_some_and(|receipt| receipt.progress == Progress::Started)
}

/// What is left of a lease or a ttl; `None` when it is over.
pub(super) fn left_of(length: Duration, stored: &Stored) -> Option<Duration> {
    length.checked_sub(age(stored)).filter(|left| !left.is_zero())
}

/// How old a record is, whatever it was rewritten for meanwhile.
pub(super) fn age(stored: &Stored) -> Duration {
    stored.record.aged.saturating_add(stored.age)
}

#[cfg(test)]
mod tests {
    use super::round;
    use std::time::Duration;

    #[test]
    fn what_is_left_is_never_rounded_down() {
        for (millis, words) in [
            (1, "1 s"),
            (1_001, "2 s"),
            (119_000, "119 s"),
            (120_001, "3 min"),
            (900_000, "15 min"),
            (604_799_000, "7 d"),
        ] {
            assert_eq!(round(Duration::from_millis(millis)), words);
        }
    }
}
