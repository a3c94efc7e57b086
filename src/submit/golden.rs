//! Golden bytes: what the records of submission hold, and where, is understood for ever.
//!
//! Never edited: older and newer releases read what the other has written.

use std::sync::Arc;
use std::time::Duration;

use super::key_record::{self, KeyRecord};
use super::{Scope, Task, TaskState, Why, task_record};
use crate::store::{Memory, Store};
use crate::time::system_clock;

const KEY: &str = r#"{"key":"charge-ORD-123","scope":"shop-1@type:charge","key_hash":"sha256:c5acb1bfab336b80c71a6be65eb4d7b6da7075a3686d31b93fc75498fc12fd8c","task_id":"019b7c5a-1234-7abc-8def-0123456789ab","task_key":"tasks/b/019b7c5a-1234-7abc-8def-0123456789ab.json","task_type":"charge","input_hash":"sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b","state":"failed","why":"dead-lettered","queue":"cards","tenant":"shop-1","created_at":"2026-01-27T12:00:00Z","updated_at":"2026-01-27T12:00:01.250Z","expires_at":"2026-02-26T12:00:00Z"}"#;
const LEAST_KEY: &str = r#"{"key":"k","scope":"global","key_hash":"sha256:00","task_id":"019b7c5a-1234-7abc-8def-0123456789ab","task_key":"tasks/b/019b7c5a-1234-7abc-8def-0123456789ab.json","task_type":"charge","input_hash":"sha256:00","state":"creating","created_at":"2026-01-27T12:00:00Z","updated_at":"2026-01-27T12:00:00Z","expires_at":"2026-01-28T12:00:00Z"}"#;
const TASK: &str = r#"{"task_id":"019b7c5a-1234-7abc-8def-0123456789ab","task_type":"charge","state":"failed","why":"expired","queue":"cards","tenant":"shop-1","scope":"shop-1@type:charge","idempotency_key":"charge-ORD-123","created_at":"2026-01-27T12:00:00Z","updated_at":"2026-01-27T12:01:00Z","run_before":"2026-01-27T12:01:00Z"}"#;
const LEAST_TASK: &str = r#"{"task_id":"019b7c5a-1234-7abc-8def-0123456789ab","task_type":"charge","state":"processing","created_at":"2026-01-27T12:00:00Z","updated_at":"2026-01-27T12:00:00Z"}"#;

/// A record of a newer release.
fn newer(bytes: &str) -> String {
    format!("{},\"colour\":\"blue\"}}", bytes.strip_suffix('}').unwrap())
}

#[test]
fn the_record_of_a_key_has_these_bytes() {
    for bytes in [KEY, LEAST_KEY] {
        for read in [bytes.to_owned(), newer(bytes)] {
            let record: KeyRecord = serde_json::from_str(&read).unwrap();
            assert_eq!(String::from_utf8(task_record::encoded(&record).unwrap().into()).unwrap(), bytes);
        }
    }
}

#[test]
fn the_record_of_a_task_has_these_bytes() {
    for bytes in [TASK, LEAST_TASK] {
        for read in [bytes.to_owned(), newer(bytes)] {
            let task: Task = serde_json::from_str(&read).unwrap();
            assert_eq!(String::from_utf8(task_record::encoded(&task).unwrap().into()).unwrap(), bytes);
        }
    }
}

#[test]
fn states_and_reasons_are_written_so() {
    let states = [TaskState::Creating, TaskState::Processing, TaskState::Completed, TaskState::Failed];
    let written = r#"["creating","processing","completed","failed"]"#;
    assert_eq!(serde_json::to_string(&states).unwrap(), written);
    let reasons = [Why::Cancelled, Why::Expired, Why::DeadLettered, Why::Lost];
    assert_eq!(serde_json::to_string(&reasons).unwrap(), r#"["cancelled","expired","dead-lettered","lost"]"#);
    let said = states.map(|state| state.to_string()).into_iter().chain(reasons.map(|why| why.to_string()));
    let both = format!("{}{}", written, r#"["cancelled","expired","dead-lettered","lost"]"#);
    assert!(said.into_iter().all(|word| both.contains(&format!("\"{word}\""))));
}

#[test]
fn a_new_key_is_recorded_with_its_hash_and_found_under_this_name() {
    let task: Task = serde_json::from_str(TASK).unwrap();
    let new = KeyRecord::new(&task, "sha256:00".to_owned(), Duration::from_secs(86_400));
    // printf '18.shop-1@type:charge|14.charge-ORD-123' | sha256sum
    assert_eq!(new.key_hash, "sha256:c5acb1bfab336b80c71a6be65eb4d7b6da7075a3686d31b93fc75498fc12fd8c");
    assert_eq!(new.task_key, "tasks/b/019b7c5a-1234-7abc-8def-0123456789ab.json");
    assert_eq!(
        (new.state, new.expires_at - new.created_at),
        (TaskState::Creating, chrono::Duration::days(1))
    );
    assert_eq!(Scope::TaskType.text("charge", Some("shop-1")), new.scope);
    let (store, clock): (Arc<dyn Store>, _) = (Arc::new(Memory::new()), system_clock());
    let place = key_record::place(&store, &clock, &new.scope, &new.key).unwrap();
    assert_eq!(place.key.to_string(), "pushonce-idempotency:18.shop-1@type:charge|14.charge-ORD-123");
    let place = task_record::place(&store, &clock, task.task_id).unwrap();
    assert_eq!(place.key.to_string(), "pushonce-tasks:019b7c5a-1234-7abc-8def-0123456789ab");
}
