//! What fails: the caller is told whether to send it again, the log is told once why, and neither learns a secret.

use http::Method;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::{BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::submit::{Submitter, routes};
use pushonce::{Key, Store};
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

use super::log::Log;
use super::world::{Fate, TOPIC, World, request, send};

const SAME_KEY: &str = "Send it again with the same idempotency key";

/// F89: the first retry submits, at once, and it is the same task.
#[tokio::test]
async fn a_failed_publish_is_503_and_its_key_is_safe_to_send_again() {
    for (fate, code, copies) in [
        (Fate::Unavailable, "PUBLISH_FAILED", 1),
        (Fate::Refused, "PUBLISH_FAILED", 1),
        (Fate::Unanswered, "PUBLISH_UNKNOWN", 2),
        (Fate::Panics, "PUBLISH_UNKNOWN", 1),
    ] {
        let world = World::new();
        let (log, _guard) = Log::capture();
        world.plan([fate]);
        let failed = world.keyed("k").await;
        assert_eq!(failed.told(), (503, code));
        assert!(failed.header("retry-after").parse::<u32>().unwrap() >= 1);
        assert!(failed.text("detail").starts_with(SAME_KEY), "{}", failed.text);
        assert_eq!(log.of(Level::ERROR).len(), 1, "{}", log.text());
        assert!(log.of(Level::ERROR)[0].contains(&failed.id()));
        let retried = world.keyed("k").await;
        assert_eq!((retried.status, retried.id()), (202, failed.id()), "{}", retried.text);
        assert_eq!(failed.text("task_url"), retried.header("location"));
        // A second copy has the same task id, by which its consumer drops it.
        assert_eq!(world.attributes("task-id"), vec![Some(failed.id()); copies]);
    }
}

#[tokio::test]
async fn without_a_key_the_answer_says_whether_the_task_may_run() {
    for (fate, code, detail) in [
        (Fate::Unavailable, "PUBLISH_FAILED", "It will not run. Send it again."),
        (Fate::Unanswered, "PUBLISH_UNKNOWN", "It may run."),
    ] {
        let world = World::new();
        world.plan([fate]);
        let failed = world.submit("/tasks/charge", &[], r#"{"input":1}"#).await;
        assert_eq!(failed.told(), (503, code));
        assert!(failed.text("detail").starts_with(detail), "{}", failed.text);
        assert_ne!(failed.header("retry-after"), "");
    }
}

#[tokio::test]
async fn a_store_that_fails_is_503_told_once_to_the_log_and_never_to_the_caller() {
    for (path, key, detail) in [
        ("/tasks/charge", Some("k"), SAME_KEY),
        ("/queues/q/tasks", Some("k"), SAME_KEY),
        ("/tasks/charge", None, "Nothing was published. Send it again."),
    ] {
        let world = World::new();
        let (log, _guard) = Log::capture();
        world.chaos.always(On::Any, Fault::Refuse);
        let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let body = r#"{"task_type":"charge","input":1}"#;
        let failed = world.submit(path, &headers, body).await;
        assert_eq!(failed.told(), (503, "STORE_FAILED"));
        assert!(failed.text("detail").starts_with(detail), "{}", failed.text);
        assert!(failed.header("retry-after").parse::<u32>().unwrap() >= 1);
        let lines = log.of(Level::ERROR);
        assert!(matches!(&lines[..], [line] if line.contains("the store refuses")), "{}", log.text());
        assert!(!failed.text.contains("refuses"), "{}", failed.text);
        assert!(world.messages().is_empty());
        world.chaos.heal();
        assert_eq!(world.submit(path, &headers, body).await.status, 202);
        assert_eq!(world.messages().len(), 1);
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_read_or_cancelled_now_is_503_and_not_404() {
    let world = World::new();
    let (log, _guard) = Log::capture();
    let id = world.keyed("k").await.id();
    let (path, cancel) = (format!("/tasks/{id}"), format!("/tasks/{id}/cancel"));
    for (number, (method, path, fault)) in
        [(Method::GET, &path, On::Read), (Method::POST, &cancel, On::Read), (Method::POST, &cancel, On::Swap)]
            .into_iter()
            .enumerate()
    {
        world.chaos.always(fault, Fault::Refuse);
        let failed = world.send(request(method, path, &[], "")).await;
        assert_eq!(failed.told(), (503, "STORE_FAILED"), "{path}");
        assert_ne!(failed.header("retry-after"), "");
        world.chaos.heal();
        assert_eq!(log.of(Level::ERROR).len(), number + 1, "{}", log.text());
    }
    assert_eq!(world.get(&path).await.text("state"), "processing");
    assert_eq!(world.post(&cancel).await.text("why"), "cancelled");
}

/// A store whose errors repeat what it was given, as a database's may.
#[derive(Debug)]
struct Telling;

impl Store for Telling {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        let what = format!("no table for {}", key.text());
        Box::pin(async { Err(StoreError::Refused { what, source: None }) })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        _: Option<&'a Version>,
        _: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let what = format!("no table for {}", key.text());
        Box::pin(async { Err(StoreError::Refused { what, source: None }) })
    }
}

#[tokio::test]
async fn neither_payload_nor_key_nor_token_comes_into_the_log() {
    let (log, _guard) = Log::capture();
    let world = World::new();
    let telling = Submitter::new(Arc::new(Telling), world.publisher.clone(), TOPIC);
    let telling = routes(telling).router();
    let headers = [("idempotency-key", "a-secret-key"), ("authorization", "Bearer a-secret-token")];
    let body = r#"{"task_type":"charge","input":{"iban":"a-secret-iban"}}"#;
    let other = r#"{"task_type":"charge","input":"another-secret"}"#;
    let submit = |body: &str| request(Method::POST, "/tasks/charge", &headers, body);
    assert_eq!(send(&telling, submit(body)).await.told(), (503, "STORE_FAILED"));
    for fate in [Fate::Refused, Fate::Unavailable, Fate::Unanswered, Fate::Panics] {
        world.plan([fate]);
        assert_eq!(world.send(submit(body)).await.status, 503);
    }
    assert_eq!(world.send(submit(body)).await.status, 202);
    assert_eq!(world.send(submit(body)).await.status, 409);
    assert_eq!(world.send(submit(other)).await.status, 422);
    assert_eq!(world.send(submit("{\"input\":a-secret-iban")).await.status, 400);
    let odd = request(Method::POST, "/tasks/charge", &[("idempotency-key", "\"a-secret-key")], body);
    assert_eq!(world.send(odd).await.status, 400);
    let text = log.text();
    assert!(text.contains("a submission could not be recorded") && text.contains("no table for"), "{text}");
    assert!(text.contains("not known to be published"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

/// It cannot work whatever is sent: the application's mistake, not the caller's.
#[tokio::test]
async fn a_submitter_that_cannot_work_is_500() {
    let world = World::new();
    let (log, _guard) = Log::capture();
    let app = routes(world.submitter.clone().creating_lease(Duration::ZERO)).router();
    let answer = send(&app, request(Method::POST, "/tasks/charge", &[], r#"{"input":1}"#)).await;
    assert_eq!(answer.told(), (500, "INTERNAL"), "{}", answer.text);
    assert_eq!(log.of(Level::ERROR).len(), 1, "{}", log.text());
    world.untouched();
}
