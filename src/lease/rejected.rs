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
