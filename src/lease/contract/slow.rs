//! A memory store that is slow in the ways of an object storage: one write a second for each key, and
//! ages by last-modified, a whole second, against the client's clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Subject;
use crate::key::Key;
use crate::store::record::Record;
use crate::store::{BoxFuture, Memory, Standing, Store, StoreError, Stored, Swap, Version};
use crate::time::Clock;

const SECOND: Duration = Duration::from_secs(1);
/// What is taken off an age, for the difference between any two clients' clocks.
const MARGIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(super) struct Slow {
    memory: Arc<Memory>,
    clock: Arc<dyn Clock>,
    written: Arc<Mutex<HashMap<Key, Duration>>>,
}

impl Slow {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { memory: Arc::new(Memory::with_clock(clock.clone())), clock, written: Arc::default() }
    }

    fn aged(&self, key: &Key, mut stored: Stored) -> Stored {
        let modified = self.written.lock().unwrap().get(key).map_or(0, Duration::as_secs);
        let earliest = Duration::from_secs(modified) + SECOND + MARGIN;
        stored.age = self.clock.monotonic().saturating_sub(earliest);
        stored
    }
}

impl Store for Slow {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async move { Ok(self.memory.read(key).await?.map(|stored| self.aged(key, stored))) })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let now = self.clock.monotonic();
            let last = self.written.lock().unwrap().get(key).copied();
            if last.is_some_and(|last| now - last < SECOND) {
                return Err(StoreError::unavailable("429: a second write within a second"));
            }
            let swap = self.memory.swap(key, seen, next).await?;
            if matches!(swap, Swap::Written(_)) {
                self.written.lock().unwrap().insert(key.clone(), now);
            }
            Ok(match swap {
                Swap::Lost(Standing::Is(_)) => Swap::Lost(Standing::Unknown),
                swap => swap,
            })
        })
    }
}

impl Subject for Slow {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.memory.forget(key);
        Box::pin(async {})
    }

    fn short(&self) -> Duration {
        4 * SECOND
    }

    fn grain(&self) -> Duration {
        SECOND
    }

    fn pace(&self) -> Duration {
        SECOND
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }
}
