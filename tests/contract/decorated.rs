//! The stores that stand around others: a cache and a meter keep every law that their inner store keeps.

use std::sync::Arc;
use std::time::Duration;

use pushonce::contract::{Law, Subject, Tells, Waiver};
use pushonce::store::{BoxFuture, Cached, Maintain, Metered};
use pushonce::{Key, Store};

use crate::report;

/// A store around that of another subject, which is asked for all else.
struct Decorated {
    inner: Arc<dyn Subject>,
    server: &'static str,
    decorator: &'static str,
    store: Arc<dyn Maintain>,
}

fn cached(server: &'static str, inner: impl Subject) -> Decorated {
    let store = Arc::new(Cached::new(inner.maintained().unwrap()));
    Decorated { inner: Arc::new(inner), server, decorator: "cached", store }
}

fn metered(server: &'static str, inner: impl Subject) -> Decorated {
    let store = Arc::new(Metered::new(inner.maintained().unwrap()));
    Decorated { inner: Arc::new(inner), server, decorator: "metered", store }
}

impl Subject for Decorated {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.inner.forget(key)
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.store.clone())
    }

    fn waives(&self) -> &'static [Waiver] {
        self.inner.waives()
    }

    fn tells_what_stands(&self) -> Tells {
        self.inner.tells_what_stands()
    }

    fn short(&self) -> Duration {
        self.inner.short()
    }

    fn passed(&self, law: &Law) {
        report::test(self.server, &format!("{}: {}", self.decorator, law.name()));
    }
}

mod cached_memory {
    use super::cached;
    use crate::memory::InMemory;

    pushonce::contract!(cached("memory", InMemory::new()));
}

mod metered_memory {
    use super::metered;
    use crate::memory::InMemory;

    pushonce::contract!(metered("memory", InMemory::new()));
}

#[cfg(feature = "datastore")]
mod cached_datastore_emulator {
    use super::cached;
    use crate::datastore::Emulated;
    use crate::emulator::Emulator;

    pushonce::contract!(cached(
        "datastore-emulator",
        Emulated::new("datastore-emulator", Emulator::datastore())
    ));
}
