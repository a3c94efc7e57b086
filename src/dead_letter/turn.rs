//! One at a time for each dead letter: whoever receives, redrives or discards it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::key::{Consumer, Key};
use crate::lease::{RunError, Skip};
use crate::store::{BoxError, Store, StoreError};
use crate::time::Clock;
use crate::verbs::mutex;

/// Renewed while the work goes on, so that a crash keeps the next one waiting for half a minute at most.
const LEASE: Duration = Duration::from_secs(30);

/// Why it was nobody's turn.
#[derive(Debug)]
pub(super) enum Busy {
    /// Somebody else is at it.
    InProgress { left: Duration },
    /// The store failed before the work.
    Store(StoreError),
    /// The work was cut off, or never began.
    Interrupted(BoxError),
}

/// Runs the work while nobody else works on the dead letter. It goes on if its caller is gone.
///
/// A mutex, and not a lock: what became of the dead letter stands in its entry alone, where the next one
/// reads it, so that no second record can say otherwise.
pub(super) async fn alone<T: Send + 'static>(
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    id: &str,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Busy> {
    let key = Key::new(Consumer::reserved("redrive"), id).map_err(|error| Busy::Interrupted(error.into()))?;
    let turn = mutex(key, store).lease(LEASE).renew().clock(clock.clone());
    turn.run(async { Ok(work.await) }).await.map_err(|error| match error {
        RunError::Skipped(Skip::InProgress { left }) => Busy::InProgress { left },
        RunError::Store(error) => Busy::Store(error),
        error => Busy::Interrupted(error.into()),
    })
}
