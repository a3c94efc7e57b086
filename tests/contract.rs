//! The laws of the contract, on every store that the crate ships.
//!
//! For Datastore, `DATASTORE_EMULATOR_HOST` names the Datastore emulator and `PUSHONCE_TEST_FIRESTORE`
//! the Firestore emulator in Datastore mode, as `host:port`; a missing one is a failure.
#![cfg(feature = "contract")]

use std::sync::Arc;
use std::time::Duration;

use pushonce::contract::{Law, Subject};
use pushonce::store::{BoxFuture, Memory};
use pushonce::{Key, Store};

#[path = "support/report.rs"]
mod report;

mod memory {
    use super::*;

    struct InMemory(Arc<Memory>);

    impl Subject for InMemory {
        fn store(&self) -> Arc<dyn Store> {
            self.0.clone()
        }

        fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
            self.0.forget(key);
            Box::pin(async {})
        }

        fn tells_what_stands(&self) -> bool {
            true
        }

        // Nothing is far away, so short waits will do.
        fn short(&self) -> Duration {
            Duration::from_millis(200)
        }

        fn passed(&self, law: &Law) {
            report::law("memory", law.name());
        }
    }

    pushonce::contract!(InMemory(Arc::new(Memory::new())));
}

#[cfg(feature = "datastore")]
#[expect(dead_code, reason = "other tests look past the store in more ways than a deletion")]
#[path = "support/datastore_emulator.rs"]
mod emulator;

#[cfg(feature = "datastore")]
mod datastore {
    use pushonce::store::Datastore;

    use super::emulator::Emulator;
    use super::*;

    pub(super) struct Emulated {
        pub(super) server: &'static str,
        pub(super) tells_time: bool,
        pub(super) emulator: Emulator,
        pub(super) store: Arc<Datastore>,
    }

    impl Emulated {
        pub(super) fn new(server: &'static str, tells_time: bool, emulator: Emulator) -> Self {
            let store = Arc::new(emulator.store());
            Self { server, tells_time, emulator, store }
        }
    }

    impl Subject for Emulated {
        fn store(&self) -> Arc<dyn Store> {
            self.store.clone()
        }

        fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
            Box::pin(self.emulator.delete(key))
        }

        fn tells_time(&self) -> bool {
            self.tells_time
        }

        fn passed(&self, law: &Law) {
            report::law(self.server, law.name());
        }
    }
}

#[cfg(feature = "datastore")]
mod datastore_emulator {
    use super::datastore::Emulated;
    use super::emulator::Emulator;

    pushonce::contract!(Emulated::new("datastore-emulator", false, Emulator::datastore()));
}

#[cfg(feature = "datastore")]
mod firestore_emulator {
    use super::datastore::Emulated;
    use super::emulator::Emulator;

    pushonce::contract!(Emulated::new("firestore-emulator", true, Emulator::firestore()));
}
