//! Submissions and workers that are killed by SIGKILL between two of their steps, as real processes, on
//! every store that outlives them: the same key gives the same task, and its work is done.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

use std::time::Duration;

mod caller;
#[path = "../../functional/client.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod client;
#[path = "../support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod emulator;
mod end_to_end;
#[path = "../support/fake_gcs.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod fake_gcs;
mod faster;
#[path = "../../functional/front.rs"]
mod front;
#[path = "../support/on_servers.rs"]
mod on_servers;
mod point;
#[path = "../../functional/process.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod process;
mod program;
#[path = "../support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod proxy;
#[path = "../../functional/pubsub.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod pubsub;
mod replayed;
#[path = "../support/report.rs"]
mod report;
mod round;
#[path = "../support/s3.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod s3;
#[path = "../support/site.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod site;
mod storm;
#[path = "../../functional/supplier.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod supplier;
mod totals;
mod work;

/// For what comes soon where the machine has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks, or two tries of a caller.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
