//! The SQL store on PostgreSQL, SQLite and MariaDB, where the laws of the contract do not look: races at
//! each isolation level, connections that break, tables that are missing, and processes that are killed.
//!
//! `PUSHONCE_TEST_POSTGRES` and `PUSHONCE_TEST_MYSQL` name two servers by URL; SQLite needs none.
#![cfg(test)]

/// Writes one test for each function and server: the function gets a place with its table in it.
macro_rules! on {
    (
        each [$($each:ident)*]
        $(postgres [$($postgres:ident)*])?
        $(sqlite [$($sqlite:ident)*])?
        $(mariadb [$($mariadb:ident)*])?
    ) => {
        mod postgres {
            on!(@tests sqlx::Postgres, $($each)* $($($postgres)*)?);
        }
        mod sqlite {
            on!(@tests sqlx::Sqlite, $($each)* $($($sqlite)*)?);
        }
        mod mariadb {
            on!(@tests sqlx::MySql, $($each)* $($($mariadb)*)?);
        }
    };
    (@tests $database:ty, $($name:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            super::$name(crate::server::Place::<$database>::ready().await).await;
            let name = concat!(module_path!(), "::", stringify!($name)).replacen("sql::", "", 1);
            crate::report::test(<$database as crate::server::Server>::SHORT, &name);
        })*
    };
}

mod basics;
mod connections;
mod crashes;
mod faults;
mod keys;
mod pooler;
mod proxy;
mod purge;
mod races;
mod schema;
mod transactions;

#[path = "../support/private_sql.rs"]
mod private;
#[path = "../support/report.rs"]
mod report;
#[path = "../support/sql.rs"]
mod server;

/// The text of an error that no retry mends.
fn refusal(error: &pushonce::store::StoreError) -> String {
    assert!(matches!(error, pushonce::store::StoreError::Refused { .. }), "{error:?}");
    assert!(!error.is_transient() && !error.may_have_written(), "{error:?}");
    error.to_string()
}
