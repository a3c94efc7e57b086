//! One transaction: the key is completed in the transaction that holds the work's effect.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

mod cut_off;
mod fake;
mod lost;
#[path = "../push/log.rs"]
mod log;
mod misuse;
mod outcomes;
#[path = "../support/alone.rs"]
mod process;
mod random;
mod renewal;
mod verbs;
mod world;
