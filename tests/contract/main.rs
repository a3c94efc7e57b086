//! The laws of the contract, on every store that the crate ships: one file for each, and in it one
//! module for each server.
//!
//! A server's address comes from its environment variable; a missing one is a failure.

#[cfg(feature = "datastore")]
mod datastore;
mod decorated;
mod memory;
mod waivers;

#[cfg(feature = "datastore")]
#[expect(dead_code, reason = "other tests look past the store in more ways than a deletion")]
#[path = "../support/datastore_emulator.rs"]
mod emulator;
#[path = "../support/report.rs"]
mod report;
