//! The laws of the contract, on every store that the crate ships: one file for each, and in it one
//! module for each server.
//!
//! A server's address comes from its environment variable; a missing one is a failure.

#[cfg(all(feature = "bucket-s3", feature = "bucket-gcs"))]
mod bucket;
#[cfg(feature = "datastore")]
mod datastore;
mod decorated;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(all(feature = "postgres", feature = "sqlite", feature = "mysql"))]
mod sql;
mod waivers;

#[cfg(feature = "datastore")]
#[expect(dead_code, reason = "other tests look past the store in more ways than a deletion")]
#[path = "../support/datastore_emulator.rs"]
mod emulator;
#[cfg(all(feature = "bucket-s3", feature = "bucket-gcs"))]
#[expect(dead_code, reason = "other tests look past the store in more ways than a deletion")]
#[path = "../support/fake_gcs.rs"]
mod fake_gcs;
#[cfg(feature = "redis")]
#[expect(dead_code, reason = "other tests cut connections and restart servers, too")]
#[path = "../support/forwarder.rs"]
mod forwarder;
#[cfg(feature = "redis")]
#[expect(dead_code, reason = "other tests cut connections and restart servers, too")]
#[path = "../support/redis_server.rs"]
mod redis_server;
#[path = "../support/report.rs"]
mod report;
#[cfg(all(feature = "bucket-s3", feature = "bucket-gcs"))]
#[path = "../support/s3.rs"]
mod s3;
#[cfg(all(feature = "postgres", feature = "sqlite", feature = "mysql"))]
#[expect(dead_code, reason = "the tests of the store do more to a table")]
#[path = "../support/sql.rs"]
mod sql_server;
