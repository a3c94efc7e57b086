//! Submission with idempotency keys: the same key gives the same task, whatever is retried or crashes.
//!
//! ```
//! use std::sync::Arc;
//! use pushonce::publish::Publisher;
//! use pushonce::submit::Submitter;
//! use pushonce::{Store, store::Memory};
//!
//! # async fn submitted(publisher: Arc<dyn Publisher>) -> Result<(), pushonce::submit::SubmitError> {
//! let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let submitter = Submitter::new(store, publisher, "projects/p/topics/tasks");
//! let order = serde_json::json!({ "order": "ORD-123", "amount": 1200 });
//! let submitted = submitter.submit("charge_customer", &order).idempotency_key("charge-ORD-123").send().await?;
//! println!("{} {}", submitted.task.task_id, submitted.duplicate);
//! # Ok(()) }
//! ```

mod digest;
mod engine;
mod error;
#[cfg(test)]
mod golden;
mod key_record;
mod message;
mod names;
mod routes;
mod scope;
mod submission;
mod submitter;
mod task;
mod task_record;
mod tasks;

pub use self::error::SubmitError;
pub use self::names::InvalidSubmission;
pub use self::routes::{Denied, Routes, routes};
pub use self::scope::Scope;
pub use self::submission::{Overload, Submission, Submitted};
pub use self::submitter::{InvalidSubmitter, Submitter};
pub use self::task::{InvalidTaskId, Task, TaskId, TaskState, Why};
pub use self::tasks::{Cancelled, Tasks};
