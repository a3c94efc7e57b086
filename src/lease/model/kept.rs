//! The records of the model: the real ones, without what nothing is decided by.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use super::bounds::{FAR, hours};
use crate::store::record::{Id, Receipt, Record};
use crate::store::{Stored, Version};

/// A record without its token and the times of its writing, which nobody reads to decide anything; ages
/// past every lease and ttl are one. So states are one that behave as one.
#[derive(Clone, PartialEq)]
pub(super) struct Kept(Arc<Record>);

impl Kept {
    pub(super) fn of(mut record: Record) -> Self {
        record.token = Id::from_bits(0);
        record.written = 0;
        record.aged = record.aged.min(hours(FAR.into()));
        if let Some(receipt) = &mut record.receipt {
            receipt.at = 0;
        }
        Self(Arc::new(record))
    }
}

impl Deref for Kept {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.0
    }
}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let states = [self.state as u8, self.verb as u8, self.ended as u8, told(self.receipt.as_ref())];
        (states, self.fence, self.holder, self.aged, self.runs, self.expires).hash(hasher);
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { state, verb, fence, holder, aged, runs, ended, receipt, .. } = &*self.0;
        let progress = receipt.as_ref().map(|receipt| receipt.progress);
        write!(
            f,
            "{state:?} by {holder:?} ({verb}, fence {fence}, aged {aged:?}, runs {runs} {ended:?}, {progress:?})"
        )
    }
}

/// A receipt, of which only the progress differs in the model.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Told(pub(super) Option<Receipt>);

impl Hash for Told {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        told(self.0.as_ref()).hash(hasher);
    }
}

fn told(receipt: Option<&Receipt>) -> u8 {
    receipt.map_or(0, |receipt| receipt.progress as u8 + 1)
}

/// What stands, or stood when somebody looked.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Seen {
    pub(super) kept: Kept,
    /// Of a store that behaves: 1 names what stands now, and 0 whatever does not and never will again.
    pub(super) version: u8,
    /// In hours, as the store tells it: without what the record was aged before.
    pub(super) age: u8,
}

impl Seen {
    /// As the lease code takes it.
    pub(super) fn stored(&self) -> Stored {
        Stored {
            record: (*self.kept).clone(),
            version: Version::number(self.version.into()),
            age: hours(self.age.into()),
        }
    }

    pub(super) fn told(&self) -> Told {
        Told(self.kept.receipt.clone())
    }
}
