//! Writes each named test for several servers.

/// Writes each named test for each server, and reports what passed: for `all` of them, for those that
/// have a `wire` between them and their store, or for some by name.
macro_rules! on_servers {
    (all $tests:tt) => {
        crate::on_servers::on_servers! { [memory sqlite object_store_memory] $tests }
        crate::on_servers::on_servers! { wire $tests }
    };
    (wire $tests:tt) => {
        crate::on_servers::on_servers! {
            [datastore_emulator firestore_emulator redis postgres mariadb s3 fake_gcs] $tests
        }
    };
    ([$($server:ident)+] $tests:tt) => {
        $(mod $server { crate::on_servers::on_servers! { @ $server $tests } })+
    };
    (@ $server:ident { $($test:ident)+ }) => {
        $(
            #[tokio::test]
            async fn $test() {
                let site = crate::site::Site::$server().await;
                super::$test(&site).await;
                crate::report::test(site.name, stringify!($test));
            }
        )+
    };
}
pub(crate) use on_servers;
