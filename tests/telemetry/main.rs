//! The logs that operators see: the entries of Cloud Logging, one event for each outcome, and the traces that they join.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

mod entries;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/given_up.rs"]
mod given_up;
mod keys;
mod lines;
mod orders;
mod outcomes;
#[path = "../support/alone.rs"]
mod process;
mod setup;
mod traces;
mod world;
