//! A store that is given the time it wants between two writes of one key.

use std::sync::Arc;
use std::time::Duration;

use super::Subject;
use crate::key::Key;
use crate::store::record::Record;
use crate::store::{BoxFuture, Store, StoreError, Stored, Swap, Version};
use crate::time::{Clock, Stopwatch};

/// How many times its pace a write is sent again: those that race for one key wait for each other.
const ROUNDS: u32 = 10;

#[derive(Debug)]
pub(super) struct Paced {
    inner: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    pace: Duration,
}

impl Paced {
    /// The subject's store; as it is, if it takes writes as they come.
    pub(super) fn over(subject: &dyn Subject) -> Arc<dyn Store> {
        let (inner, pace) = (subject.store(), subject.pace());
        if pace.is_zero() { inner } else { Arc::new(Self { inner, clock: subject.clock(), pace }) }
    }
}

impl Store for Paced {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.inner.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let since = Stopwatch::start(&self.clock);
            loop {
                match self.inner.swap(key, seen, next).await {
                    // Only what certainly was not written: anything else is for the laws to see.
                    Err(error)
                        if error.is_transient()
                            && !error.may_have_written()
                            && since.elapsed() < self.pace * ROUNDS =>
                    {
                        tokio::time::sleep(self.pace / 4).await;
                    }
                    answer => return answer,
                }
            }
        })
    }
}
