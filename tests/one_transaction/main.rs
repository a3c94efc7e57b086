//! One transaction: the key is completed in the transaction that holds the work's effect.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

mod cut_off;
mod fake;
#[path = "../push/log.rs"]
mod log;
mod lost;
mod misuse;
mod outcomes;
#[path = "../support/alone.rs"]
mod process;
mod random;
mod renewal;
#[cfg(all(feature = "postgres", feature = "sqlite", feature = "mysql"))]
#[path = "../support/report.rs"]
mod report;
#[cfg(all(feature = "postgres", feature = "sqlite", feature = "mysql"))]
mod sql;
#[cfg(all(feature = "postgres", feature = "sqlite", feature = "mysql"))]
#[path = "../support/sql.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod sql_server;
mod verbs;
mod world;
