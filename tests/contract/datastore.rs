//! Both emulators of Firestore in Datastore mode: `DATASTORE_EMULATOR_HOST` names the one,
//! `PUSHONCE_TEST_FIRESTORE` the other.

use std::sync::Arc;

use pushonce::contract::{LAWS, Law, Subject, Waiver};
use pushonce::store::{BoxFuture, Datastore, Maintain};
use pushonce::{Key, Store};

use crate::emulator::Emulator;
use crate::{report, waivers};

pub(crate) struct Emulated {
    server: &'static str,
    emulator: Emulator,
    store: Arc<Datastore>,
}

impl Emulated {
    pub(crate) fn new(server: &'static str, emulator: Emulator) -> Self {
        let store = Arc::new(emulator.store());
        Self { server, emulator, store }
    }
}

impl Subject for Emulated {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        Box::pin(self.emulator.delete(key))
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.store.clone())
    }

    fn waives(&self) -> &'static [Waiver] {
        waivers::of(self.server)
    }

    fn passed(&self, law: &Law) {
        report::law(self.server, law.name());
    }

    fn waived(&self, law: &Law, _: &str) {
        report::waived(self.server, law.name());
    }
}

/// A waiver that is not needed any more must go.
async fn keeps_nothing_that_is_waived(server: &'static str, emulator: Emulator) {
    // Under the name of nobody, who waives nothing.
    let subject = Arc::new(Emulated::new("nobody", emulator));
    for waiver in waivers::of(server) {
        let law = LAWS.iter().find(|law| law.name() == waiver.law).unwrap();
        assert!(law.check(subject.clone()).await.is_err(), "{server} keeps {}, which it waives", waiver.law);
    }
    report::test(server, "keeps_nothing_that_is_waived");
}

mod datastore_emulator {
    use super::{Emulated, Emulator};

    pushonce::contract!(Emulated::new("datastore-emulator", Emulator::datastore()));

    #[tokio::test]
    async fn keeps_nothing_that_is_waived() {
        super::keeps_nothing_that_is_waived("datastore-emulator", Emulator::datastore()).await;
    }
}

mod firestore_emulator {
    use super::{Emulated, Emulator};

    pushonce::contract!(Emulated::new("firestore-emulator", Emulator::firestore()));
}
