//! The fault matrix: each step of a key's life on each store, with a fault at exactly one call of it.
//!
//! What each cell holds: nobody is locked out of their own key, nobody wins twice, nothing panics, and every
//! error is a documented one. What it says is compared with `docs/faults.md`.

mod aimed;
mod cell;
mod column;
mod faults;
mod ground;
mod operator;
mod other_process;
mod page;
mod planted;
mod rows;
mod steps;

use tokio::task::LocalSet;

use self::ground::Ground;

/// One test for each store, so that they run beside each other.
macro_rules! stores {
    ($($store:ident: $name:literal)+) => {
        const STORES: &[&str] = &[$($name),+];
        $(mod $store {
            #[tokio::test]
            async fn every_cell_holds() {
                super::hold($name, concat!("matrix::", stringify!($store), "::every_cell_holds")).await;
            }
        })+
    };
}

stores! {
    memory: "memory"
    sqlite: "sqlite"
    datastore_emulator: "datastore-emulator"
    firestore_emulator: "firestore-emulator"
    redis: "redis"
    postgres: "postgres"
    mariadb: "mariadb"
    s3: "s3"
    fake_gcs: "fake-gcs"
}

async fn hold(name: &'static str, test: &str) {
    let cells = async {
        other_process::play().await;
        Ground::of(name).await.cells(test).await
    };
    let cells = LocalSet::new().run_until(cells).await;
    page::hold(name, cells);
    crate::report::test(name, "matrix::every_cell_holds");
}
