//! Both emulators of Firestore in Datastore mode: `DATASTORE_EMULATOR_HOST` names the one,
//! `PUSHONCE_TEST_FIRESTORE` the other.

use std::sync::Arc;

use pushonce::contract::{Law, Subject};
use pushonce::store::{BoxFuture, Datastore};
use pushonce::{Key, Store};

use crate::emulator::Emulator;
use crate::report;

struct Emulated {
    server: &'static str,
    tells_time: bool,
    emulator: Emulator,
    store: Arc<Datastore>,
}

impl Emulated {
    fn new(server: &'static str, tells_time: bool, emulator: Emulator) -> Self {
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

mod datastore_emulator {
    use super::{Emulated, Emulator};

    pushonce::contract!(Emulated::new("datastore-emulator", false, Emulator::datastore()));
}

mod firestore_emulator {
    use super::{Emulated, Emulator};

    pushonce::contract!(Emulated::new("firestore-emulator", true, Emulator::firestore()));
}
