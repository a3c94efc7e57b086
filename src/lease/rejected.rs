//! A key that is done as rejected, set free before its message is sent again.

use std::sync::Arc;
use std::time::Duration;

use super::machine::{self, Force, Stamp};
use super::status::{Status, left_of};
use super::{Amend, First, Place};
use crate::store::record::Progress;
use crate::store::{StoreError, Stored};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Freed {
    /// It was rejected, and is reset; or would be.
    Reset,
    /// It was free: the message runs as it is.
    Free,
    /// A run is at it, and was spared.
    Held { left: Duration },
    /// It is recorded otherwise than as rejected: the message would be skipped.
    Done { message: Option<Arc<str>> },
}

impl Place {
    /// Resets the key if it is done as rejected, and nothing else: not what succeeded meanwhile. With
    /// `write` unset it only says what would come of it.
    ///
    /// # Errors
    /// [`StoreError`], after some tries. Nobody knows whether it was reset: call again.
    pub(crate) async fn free_rejected(&self, write: bool) -> Result<Freed, StoreError> {
        Ok(self.amend(First::Unread, |standing, stamp| Ok(decide(standing, stamp, write))).await?.value)
    }
}

fn decide(standing: Option<&Stored>, stamp: Stamp, write: bool) -> Amend<Freed> {
    let Some(stored) = standing else { return Amend::Leave(Freed::Free) };
    let receipt = stored.record.receipt.as_ref();
    let rejected = receipt.is_some_and(|told| told.progress == Progress::Rejected);
    Amend::Leave(match Status::of(stored) {
        // Whoever held it could still write that it is rejected, after the message was sent again.
        Status::Lapsed => match machine::reset(stored, Force::No, stamp) {
            machine::Reset::Write(next) if write => return Amend::Write(next, Freed::Free),
            _ => Freed::Free,
        },
        Status::Released | Status::Expired => Freed::Free,
        Status::Held { left } => Freed::Held { left },
        Status::Done { .. } if rejected => match machine::reset(stored, Force::No, stamp) {
            machine::Reset::Write(next) if write => return Amend::Write(next, Freed::Reset),
            machine::Reset::Write(_) => Freed::Reset,
            machine::Reset::Free => Freed::Free,
            machine::Reset::Held { left } => Freed::Held { left },
        },
        Status::Done { .. } => Freed::Done { message: receipt.and_then(|told| told.message.clone()) },
        // A mark runs as long as its lease, as far as anybody can tell.
        Status::Started { .. } => match left_of(stored.record.lease, stored) {
            Some(left) => Freed::Held { left },
            None => Freed::Done { message: receipt.and_then(|told| told.message.clone()) },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Version;
    use crate::store::record::{Id, Receipt, Record, State, Verb};

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A key under a lease of 10 s and a ttl of 100 s that was written so long ago.
    fn stored(state: State, progress: Option<Progress>, age: Duration) -> Stored {
        let receipt =
            progress.map(|progress| Receipt { progress, at: 0, message: Some("m".into()), delivery: None });
        let holder = (state != State::Released).then_some(Id::from_bits(1));
        let blank = Record::blank(Verb::Lock, secs(10), secs(100));
        Stored { record: Record { state, receipt, holder, ..blank }, version: Version::number(1), age }
    }

    #[test]
    fn only_what_was_rejected_is_reset_and_a_lapsed_holder_can_reject_no_more() {
        use Progress::{Finished, Rejected, Started};
        let done = || Freed::Done { message: Some("m".into()) };
        for (state, progress, age, freed, writes) in [
            (State::Released, Some(Rejected), 0, Freed::Free, false),
            (State::Claimed, None, 4, Freed::Held { left: secs(6) }, false),
            // The receipt is of a run before this one.
            (State::Claimed, Some(Rejected), 4, Freed::Held { left: secs(6) }, false),
            (State::Claimed, None, 10, Freed::Free, true),
            (State::Done, Some(Rejected), 1, Freed::Reset, true),
            (State::Done, Some(Rejected), 100, Freed::Free, false),
            (State::Done, Some(Finished), 1, done(), false),
            (State::Done, Some(Finished), 100, Freed::Free, false),
            (State::Done, Some(Started), 4, Freed::Held { left: secs(6) }, false),
            (State::Done, Some(Started), 10, done(), false),
        ] {
            let stands = stored(state, progress, secs(age));
            let stamp = Stamp { now: 7, token: Id::from_bits(2) };
            let case = format!("{state:?} {progress:?} {age}");
            match decide(Some(&stands), stamp, true) {
                Amend::Write(next, told) => {
                    assert_eq!((told, true), (freed.clone(), writes), "{case}");
                    assert_eq!((next.state, next.holder, next.fence), (State::Released, None, 7), "{case}");
                }
                Amend::Leave(told) => assert_eq!((told, false), (freed.clone(), writes), "{case}"),
            }
            // A dry run says the same.
            match decide(Some(&stands), stamp, false) {
                Amend::Leave(told) => assert_eq!(told, freed, "{case}"),
                Amend::Write(..) => panic!("{case}: a dry run writes"),
            }
        }
    }

    #[test]
    fn where_nothing_stands_the_key_is_free() {
        let stamp = Stamp { now: 7, token: Id::from_bits(2) };
        assert!(matches!(decide(None, stamp, true), Amend::Leave(Freed::Free)));
    }
}
