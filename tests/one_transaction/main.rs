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
#[cfg(all(
    feature = "datastore",
    feature = "mysql",
    feature = "postgres",
    feature = "serve",
    feature = "sqlite"
))]
mod servers;
mod told;
mod verbs;
mod world;

// Where the tools of other tests look for them.
#[cfg(all(
    feature = "datastore",
    feature = "mysql",
    feature = "postgres",
    feature = "serve",
    feature = "sqlite"
))]
use servers::{both_emulators, emulator, report};
