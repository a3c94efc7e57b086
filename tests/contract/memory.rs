//! The store in memory.

use std::sync::Arc;
use std::time::Duration;

use pushonce::contract::{Law, Subject, Tells, Waiver};
use pushonce::store::{BoxFuture, Maintain, Memory};
use pushonce::{Key, Store};

use crate::{report, waivers};

pub(crate) struct InMemory(Arc<Memory>);

impl InMemory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Memory::new()))
    }
}

impl Subject for InMemory {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.0.forget(key);
        Box::pin(async {})
    }

    fn tells_what_stands(&self) -> Tells {
        Tells::Swaps
    }

    // Nothing is far away, so short waits will do.
    fn short(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.0.clone())
    }

    fn waives(&self) -> &'static [Waiver] {
        waivers::of("memory")
    }

    fn passed(&self, law: &Law) {
        report::law("memory", law.name());
    }

    fn waived(&self, law: &Law, _: &str) {
        report::waived("memory", law.name());
    }
}

pushonce::contract!(InMemory::new());
