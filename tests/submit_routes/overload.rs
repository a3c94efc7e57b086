//! The back-pressure hook: 429 and 503, asked before a new task and never before a replay.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use http::Method;
use pushonce::idempotent::End;
use pushonce::submit::{Overload, routes};

use super::world::{Answer, World, request, send};

/// The routes of that world, turned away like this, and the queues that the hook was asked about.
fn overloaded(world: &World, overload: Overload) -> (Router, Arc<Mutex<Vec<Option<String>>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let queues = asked.clone();
    let submitter = world.submitter.clone().backpressure(move |queue| {
        queues.lock().unwrap().push(queue.map(str::to_owned));
        Some(overload)
    });
    (routes(submitter).router(), asked)
}

async fn submit(app: &Router, path: &str, key: &str, input: u8) -> Answer {
    let body = format!("{{\"task_type\":\"charge\",\"input\":{input}}}");
    let headers = [("idempotency-key", key)];
    send(app, request(Method::POST, path, if key.is_empty() { &[] } else { &headers }, &body)).await
}

#[tokio::test]
async fn a_new_submission_is_turned_away_and_leaves_nothing() {
    let many = |millis| Overload::TooMany { retry_after: Duration::from_millis(millis) };
    let all = |millis| Overload::Unavailable { retry_after: Duration::from_millis(millis) };
    for (overload, told, retry_after) in [
        (many(30_000), (429, "TOO_MANY_SUBMISSIONS"), "30"),
        (many(1500), (429, "TOO_MANY_SUBMISSIONS"), "2"),
        (many(0), (429, "TOO_MANY_SUBMISSIONS"), "1"),
        (all(30_000), (503, "OVERLOADED"), "30"),
        (all(1), (503, "OVERLOADED"), "1"),
    ] {
        let world = World::new();
        let (app, asked) = overloaded(&world, overload);
        for (path, key) in [("/queues/mail/tasks", "k"), ("/queues/mail/tasks", ""), ("/tasks/charge", "k")] {
            let answer = submit(&app, path, key, 1).await;
            assert_eq!(answer.told(), told);
            assert_eq!(answer.header("retry-after"), retry_after);
        }
        let mail = Some("mail".to_owned());
        assert_eq!(*asked.lock().unwrap(), [mail.clone(), mail, None]);
        world.untouched();
        // What cannot be is told so, whatever waits.
        assert_eq!(submit(&app, "/tasks/refund", "k", 1).await.told(), (400, "INVALID_BODY"));
        assert_eq!(submit(&app, "/tasks/charge", "a,b", 1).await.told(), (400, "IDEMPOTENCY_KEY_INVALID"));
    }
}

#[tokio::test]
async fn what_stands_is_answered_before_the_hook() {
    let world = World::new();
    let (app, _) = overloaded(&world, Overload::TooMany { retry_after: Duration::from_secs(9) });
    for path in ["/tasks/charge", "/queues/q/tasks"] {
        let first = submit(&world.app, path, "k", 1).await;
        assert_eq!(first.status, 202);
        let running = submit(&app, path, "k", 1).await;
        assert_eq!((running.told(), running.id()), ((409, "IDEMPOTENCY_IN_PROGRESS"), first.id()));
        assert_eq!(submit(&app, path, "k", 2).await.told(), (422, "IDEMPOTENCY_CONFLICT"));
        world.end(&first.id(), End::Completed).await;
        let replay = submit(&app, path, "k", 1).await;
        assert_eq!((replay.status, replay.id()), (200, first.id()));
        assert_eq!(replay.header("idempotent-replayed"), "true");
        assert_eq!(submit(&app, path, "k", 2).await.told(), (422, "IDEMPOTENCY_CONFLICT"));
        assert_eq!(submit(&app, path, "new", 1).await.told(), (429, "TOO_MANY_SUBMISSIONS"));
        // Looking and cancelling are no submissions.
        assert_eq!(send(&app, request(Method::GET, first.header("location"), &[], "")).await.status, 200);
    }
}
