//! Submission with idempotency keys, on every store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pushonce::idempotent::{End, Follow as _};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Memory, Metered};
use pushonce::submit::{SubmitError, Submitter, TaskState};
use serde_json::json;

#[derive(Debug, Default)]
struct Counted(AtomicUsize);

impl Publisher for Counted {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Ok(self.0.fetch_add(1, Ordering::Relaxed).to_string().into()) })
    }
}

#[tokio::test]
async fn a_key_names_one_task_from_its_submission_to_its_end() {
    let store = Arc::new(Metered::new(Memory::new()));
    let publisher = Arc::new(Counted::default());
    let submitter = Submitter::new(store.clone(), publisher.clone(), "t");
    let submit = || submitter.submit("charge", &json!({"a": 1})).idempotency_key("k");
    let first = submit().send().await.unwrap();
    assert_eq!((first.duplicate, first.task.state), (false, TaskState::Processing));
    let Err(SubmitError::InProgress { task_id, .. }) = submit().send().await else { panic!() };
    assert_eq!(task_id, first.task.task_id);
    let conflict = submitter.submit("charge", &json!({"a": 2})).idempotency_key("k").send().await;
    assert!(matches!(conflict, Err(SubmitError::Conflict)), "{conflict:?}");
    submitter.tasks().ended(&task_id.to_string(), End::Completed).await.unwrap();
    let again = submit().send().await.unwrap();
    assert_eq!(
        (again.duplicate, again.task.state, again.task.task_id),
        (true, TaskState::Completed, task_id)
    );
    assert_eq!(publisher.0.load(Ordering::Relaxed), 1);
}
