//! The same against real servers and processes: what a fake cannot show.

#[path = "../../support/both_emulators.rs"]
pub(crate) mod both_emulators;
#[path = "../../../functional/client.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod client;
mod cut_commit;
mod datastore;
#[path = "../../support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
pub(crate) mod emulator;
mod example;
mod kill;
#[path = "../../support/example.rs"]
mod programs;
mod proxy;
#[path = "../../support/report.rs"]
pub(crate) mod report;
mod sql;
#[path = "../../support/sql.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod sql_server;
