//! What a killed holder costs, and what each way of handling a push gets wrong: real processes on PostgreSQL,
//! killed, stopped, cut off and hung up on, in the short form of `make test` and the long one of `make recover`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by a panic; real processes live in real time"
)]

#[path = "../../benches/by_hand.rs"]
#[expect(dead_code, reason = "a program of its own, whose router is served here")]
mod by_hand;
#[path = "../client.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod client;
mod faults;
mod page;
mod place;
#[path = "../process.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod process;
mod program;
#[path = "../../tests/support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod proxy;
mod recovered;
mod recovery;
#[path = "../../tests/support/report.rs"]
mod report;
mod run;
mod subject;
#[path = "../supplier.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod supplier;
mod verdict;
mod wrongs;

use std::time::Duration;

/// For what comes soon where the machine has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether this is the long form, with the Python peer and with everybody's own defaults: `make recover`.
fn is_long() -> bool {
    std::env::var("PUSHONCE_RECOVER").is_ok_and(|form| form == "long")
}
