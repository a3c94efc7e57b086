//! The layer under axum: what becomes of each push, what is told to whom, and what stands in the store afterwards.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

mod alone;
mod at_most_once;
mod bodies;
mod callers;
mod dead_letters;
mod follow;
mod follow_late;
mod follower;
mod handlers;
mod hooks;
mod keys;
mod log;
mod outcomes;
mod payload_check;
#[path = "../support/alone.rs"]
mod process;
mod serialize;
mod services;
mod topic;
mod world;
