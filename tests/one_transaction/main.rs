//! One transaction: the key is completed in the transaction that holds the work's effect.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

#[path = "../support/both_emulators.rs"]
mod both_emulators;
#[path = "../../functional/client.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod client;
mod cut_commit;
mod cut_off;
mod datastore;
#[path = "../support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod emulator;
mod example;
mod fake;
mod kill;
#[path = "../push/log.rs"]
mod log;
mod lost;
mod misuse;
mod outcomes;
#[path = "../support/alone.rs"]
mod process;
#[path = "../support/example.rs"]
mod programs;
mod proxy;
mod random;
mod renewal;
#[path = "../support/report.rs"]
mod report;
mod sql;
#[path = "../support/sql.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod sql_server;
mod told;
mod verbs;
mod world;
