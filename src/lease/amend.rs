//! A record that is looked at, changed and swapped, until it is: for entries that no claim holds while work runs.

use super::machine::Stamp;
use super::{Place, TRIES, pause};
use crate::store::record::Record;
use crate::store::{Standing, StoreError, Stored, Swap};

/// What is taken to stand before the store was asked.
#[derive(Debug)]
pub(crate) enum First {
    /// Nothing: a create is tried before any read.
    Nothing,
    /// This, as this process has written or read it.
    Is(Stored),
    /// Nobody knows: read.
    Unread,
}

/// What to do about what stands.
#[derive(Debug)]
pub(crate) enum Amend<T> {
    /// Write this, on the version of what was looked at.
    Write(Box<Record>, T),
    /// Write nothing.
    Leave(T),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Amended<T> {
    /// What was decided last.
    pub(crate) value: T,
    /// What stands now, as far as this process knows.
    pub(crate) stands: Option<Stored>,
    /// Whether the store had to be read.
    pub(crate) read: bool,
}

impl Place {
    /// Decides on what stands, and swaps, until a decision is written or nothing is to be. A write whose
    /// answer was lost is known again by its token; one that was overwritten since is decided anew, so
    /// `decide` has to know its own by something that later writers keep.
    ///
    /// # Errors
    /// [`StoreError`], of the store after some tries, or of `decide`. Where it may have written, so may this.
    pub(crate) async fn amend<T>(
        &self,
        first: First,
        mut decide: impl FnMut(Option<&Stored>, Stamp) -> Result<Amend<T>, StoreError>,
    ) -> Result<Amended<T>, StoreError> {
        let mut read = false;
        let mut failed = None;
        let mut standing = match first {
            First::Nothing => Ok(None),
            First::Is(stored) => Ok(Some(stored)),
            First::Unread => Err(Standing::Unknown),
        };
        // The last write whose answer was lost, with what it was to say.
        let mut unanswered: Option<(Record, T)> = None;
        for tries in 0..TRIES {
            if tries > 0 {
                pause(tries - 1).await;
            }
            let stands = match standing {
                Ok(stands) => stands,
                Err(_) => {
                    read = true;
                    match self.read().await {
                        Ok(stands) => stands,
                        Err(error) if error.is_transient() => {
                            failed = Some(error);
                            standing = Err(Standing::Unknown);
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            if let Some((sent, value)) = unanswered.take()
                && stands.as_ref().is_some_and(|stored| stored.record.token == sent.token)
            {
                return Ok(Amended { value, stands, read });
            }
            let (next, value) = match decide(stands.as_ref(), self.stamp())? {
                Amend::Leave(value) => return Ok(Amended { value, stands, read }),
                Amend::Write(next, value) => (next, value),
            };
            standing = match self.swap(stands.as_ref().map(|stored| &stored.version), &next).await {
                Ok(Swap::Written(version)) => {
                    let stands = Some(Stored { record: *next, version, age: std::time::Duration::ZERO });
                    return Ok(Amended { value, stands, read });
                }
                Ok(Swap::Lost(Standing::Is(stored))) => Ok(Some(*stored)),
                Ok(Swap::Lost(Standing::Absent)) => Ok(None),
                Ok(Swap::Lost(unknown @ Standing::Unknown)) => Err(unknown),
                Err(error) if error.is_transient() => {
                    unanswered = error.may_have_written().then_some((*next, value));
                    failed = Some(error);
                    Err(Standing::Unknown)
                }
                Err(error) => return Err(error),
            };
        }
        // A write may stand although the last read failed.
        match failed {
            Some(error) if unanswered.is_none() || error.may_have_written() => Err(error),
            _ => Err(StoreError::unanswered(format!("not written for sure in {TRIES} tries"))),
        }
    }
}
