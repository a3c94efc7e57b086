//! Writes each named test for both emulators of Firestore in Datastore mode, and reports what passed.

macro_rules! on_both_emulators {
    ($($test:ident)+) => {
        mod datastore_emulator {
            $(crate::both_emulators::on_both_emulators!(@ $test datastore "datastore-emulator");)+
        }
        mod firestore_emulator {
            $(crate::both_emulators::on_both_emulators!(@ $test firestore "firestore-emulator");)+
        }
    };
    (@ $test:ident $emulator:ident $server:literal) => {
        #[tokio::test]
        async fn $test() {
            super::$test(crate::emulator::Emulator::$emulator()).await;
            crate::report::test($server, stringify!($test));
        }
    };
}
pub(crate) use on_both_emulators;
