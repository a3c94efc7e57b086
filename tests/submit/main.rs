//! Submission with idempotency keys, on every store.
#![cfg(test)]

mod crashes;
mod hang_ups;
mod lost_answers;
mod moves;
mod operation;
mod publishing;
mod races;
mod refused;
mod rows;
mod scopes;
mod spec;
mod windows;
mod world;

#[path = "../support/alone.rs"]
mod alone;
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
#[path = "../support/site.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod site;
