//! The worker: it takes its time, and fails where a task's type asks for it.

use std::time::Duration;

use pushonce::{Ack, Delivery, Failure, History, Lease};
use serde_json::Value;

const WORK_MS: u64 = 500;

pub(super) async fn work(lease: Lease, delivery: Delivery) -> Result<Ack, Failure> {
    let input: Value = serde_json::from_slice(&delivery.data()?)?;
    tokio::time::sleep(Duration::from_millis(input["work_ms"].as_u64().unwrap_or(WORK_MS))).await;
    match delivery.attribute("task-type") {
        Some("flaky") if lease.history() == History::Fresh => Err("it fails the first time".into()),
        Some("poison") => Err(Failure::dead_letter("nobody can work on it")),
        _ => Ok(Ack),
    }
}
