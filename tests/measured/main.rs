//! What is measured, what it costs where nobody listens, and the ledger of uncertain keys.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

mod alone;
#[path = "../support/given_up.rs"]
mod given_up;
mod in_flight;
mod ledger;
#[path = "../push/log.rs"]
mod log;
mod outcomes;
#[path = "../support/alone.rs"]
mod process;
mod samples;
mod table;
mod times;
mod verbs;
#[path = "../push/world.rs"]
#[expect(dead_code, reason = "the tests of the layer use more of it")]
mod world;
