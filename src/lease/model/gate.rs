//! A store for the real code that carries nothing out by itself: each call waits until it is told its answer.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::key::Key;
use crate::store::record::Record;
use crate::store::{BoxFuture, Standing, Store, StoreError, Stored, Swap, Version};

/// A call that waits.
#[derive(Debug)]
pub(super) enum Waiting {
    Read(oneshot::Sender<Result<Option<Stored>, StoreError>>),
    Swap { seen: Option<u64>, next: Record, answer: oneshot::Sender<Result<Swap, StoreError>> },
}

impl Waiting {
    /// Answers it with a fault. Who asked may have gone.
    pub(super) fn fail(self, error: StoreError) {
        match self {
            Self::Read(answer) => drop(answer.send(Err(error))),
            Self::Swap { answer, .. } => drop(answer.send(Err(error))),
        }
    }
}

/// One holder's way to the store: it has one call under way at most.
#[derive(Debug, Default, Clone)]
pub(super) struct Gate(Arc<Mutex<Option<Waiting>>>);

impl Gate {
    fn put(&self, waiting: Waiting) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting);
    }

    pub(super) fn take(&self) -> Option<Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Looks at the call that waits.
    pub(super) fn look<T>(&self, look: impl FnOnce(Option<&Waiting>) -> T) -> T {
        look(self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref())
    }
}

impl Store for Gate {
    fn read<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        let (answer, answered) = oneshot::channel();
        self.put(Waiting::Read(answer));
        Box::pin(told(answered))
    }

    fn swap<'a>(
        &'a self,
        _: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let seen = seen.and_then(Version::as_number);
        self.put(Waiting::Swap { seen, next: next.clone(), answer });
        Box::pin(told(answered))
    }
}

/// The answer. A call that was taken away is never answered.
async fn told<T>(answered: oneshot::Receiver<T>) -> T {
    match answered.await {
        Ok(answer) => answer,
        Err(_) => std::future::pending().await,
    }
}

/// The record of the one key, kept as the port says.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) stands: Option<Stored>,
    versions: u64,
}

impl Shelf {
    pub(super) fn land(&mut self, seen: Option<u64>, next: &Record) -> Swap {
        let version = self.stands.as_ref().and_then(|stored| stored.version.as_number());
        if seen != version {
            return Swap::Lost(
                self.stands.clone().map_or(Standing::Absent, |stored| Standing::Is(Box::new(stored))),
            );
        }
        self.versions += 1;
        let version = Version::number(self.versions);
        self.stands =
            Some(Stored { record: next.clone(), version: version.clone(), age: std::time::Duration::ZERO });
        Swap::Written(version)
    }
}
