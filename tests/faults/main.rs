//! What goes wrong between a store and its server, on every server: connections that are lost, answers that
//! are late, restarts, stalls, races.
//!
//! The servers are those of `functional/with-servers`; those of the matrix, which restarts and stops them, are
//! its own.
#![cfg(test)]

mod keys;
mod matrix;
mod pushes;
mod races;
mod world;

#[path = "../support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod emulator;
#[path = "../support/fake_gcs.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod fake_gcs;
#[path = "../support/on_servers.rs"]
mod on_servers;
#[path = "../support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod proxy;
#[path = "../support/report.rs"]
mod report;
#[path = "../support/s3.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod s3;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/site.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod site;
