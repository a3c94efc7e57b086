//! What goes wrong between a store and its server, on every server: connections that are lost, restarts,
//! stalls, races.
//!
//! The servers are those of `functional/with-servers`; those that are restarted or stopped are the tests' own.
#![cfg(test)]

mod keys;
mod late;
mod lost_answers;
mod matrix;
mod races;
mod restarts;
mod stalls;
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
