//! The push token: which are let through, which are refused and how, and that a refused one touches no store.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

mod answers;
mod claims;
mod headers;
mod key_server;
mod keys;
mod layer;
#[path = "../push/log.rs"]
mod log;
mod outages;
mod platform;
mod signatures;
mod wire;
mod world;
