//! The answers to a submission: new, in progress, replayed, another's key; and to what is asked of a task.

use http::Method;
use pushonce::idempotent::End;

use super::world::{Fate, World, request};

const QUEUE: &str = "/queues/mail/tasks";

#[tokio::test]
async fn a_new_task_is_202_and_stands_where_location_says() {
    let world = World::new();
    let body = r#"{"task_type":"charge","input":{"order":7},"idempotency_key":"k"}"#;
    let answer = world.submit(QUEUE, &[], body).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let told = |member| answer.text(member);
    assert_eq!((told("task_type"), told("queue"), told("state")), ("charge", "mail", "processing"));
    assert_eq!((told("scope"), told("idempotency_key")), ("queue:mail", "k"));
    assert_eq!(answer.json["duplicate"], false);
    assert_eq!(answer.header("idempotent-replayed"), "");
    assert!(!answer.text.contains("order"), "no input: {}", answer.text);
    let stands = world.get(answer.header("location")).await;
    assert_eq!((stands.status, &stands.json), (200, &answer.json));
    assert_eq!(stands.header("location"), answer.header("location"));
    assert_eq!(world.attributes("task-id"), [Some(answer.id())]);
    assert_eq!(world.attributes("task-type"), [Some("charge".to_owned())]);
    assert_eq!(world.attributes("task-scope"), [Some("queue:mail".to_owned())]);
}

#[tokio::test]
async fn a_key_counts_within_its_queue_or_its_type() {
    let world = World::new();
    let body = r#"{"task_type":"charge","input":1}"#;
    let key = [("idempotency-key", "k")];
    let mut ids = Vec::new();
    for path in [QUEUE, "/queues/other/tasks", "/tasks/charge", "/queues/a%3Ab/tasks"] {
        let first = world.submit(path, &key, body).await;
        assert_eq!(first.status, 202, "{path}: {}", first.text);
        let second = world.submit(path, &key, body).await;
        assert_eq!((second.told(), second.id()), ((409, "IDEMPOTENCY_IN_PROGRESS"), first.id()), "{path}");
        ids.push(first.id());
    }
    let refund = world.submit("/tasks/refund", &key, r#"{"input":1}"#).await;
    assert_eq!(refund.status, 202);
    ids.push(refund.id());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    // Within a queue the type is a part of what was asked for.
    let other = world.submit(QUEUE, &key, r#"{"task_type":"refund","input":1}"#).await;
    assert_eq!(other.told(), (422, "IDEMPOTENCY_CONFLICT"));
}

#[tokio::test]
async fn a_task_that_runs_is_409_with_its_id_its_link_and_when_to_come_back() {
    let world = World::new();
    let first = world.keyed("k").await;
    let again = world.keyed("k").await;
    assert_eq!(again.told(), (409, "IDEMPOTENCY_IN_PROGRESS"));
    assert_eq!(again.id(), first.id());
    assert_eq!(again.text("task_url"), first.header("location"));
    assert_eq!(again.header("location"), first.header("location"));
    assert!(again.header("retry-after").parse::<u32>().unwrap() >= 1);
    assert_eq!(world.messages().len(), 1);
    assert_eq!(world.get(again.text("task_url")).await.id(), first.id());
}

#[tokio::test]
async fn a_task_that_is_being_created_is_409_too() {
    let world = World::new();
    world.plan([Fate::Waits]);
    let both = async {
        world.publisher.waiting.acquire().await.unwrap().forget();
        let second = world.keyed("k").await;
        let shown = world.get(second.text("task_url")).await;
        world.publisher.gate.add_permits(1);
        (second, shown)
    };
    let (first, (second, shown)) = tokio::join!(world.keyed("k"), both);
    assert_eq!(first.status, 202);
    assert_eq!((second.told(), second.id()), ((409, "IDEMPOTENCY_IN_PROGRESS"), first.id()));
    assert!((1..=30).contains(&second.header("retry-after").parse::<u32>().unwrap()));
    assert_eq!((shown.status, shown.id()), (200, first.id()));
    assert_eq!(world.messages().len(), 1);
}

#[tokio::test]
async fn a_task_that_is_over_is_replayed() {
    for (end, state, why) in [
        (End::Completed, "completed", ""),
        // F89: recognisable as a replay, and as a failure.
        (End::DeadLettered, "failed", "dead-lettered"),
        (End::Lost, "failed", "lost"),
    ] {
        let world = World::new();
        let first = world.keyed("k").await;
        world.end(&first.id(), end).await;
        for _ in 0..2 {
            let replay = world.keyed("k").await;
            assert_eq!((replay.status, replay.id()), (200, first.id()), "{end:?}: {}", replay.text);
            assert_eq!(replay.json["duplicate"], true);
            assert_eq!(replay.header("idempotent-replayed"), "true");
            assert_eq!((replay.text("state"), replay.text("why")), (state, why));
        }
        // Whoever asks for it is told no duplicate.
        let shown = world.get(first.header("location")).await;
        assert_eq!((shown.status, &shown.json["duplicate"]), (200, &false.into()));
        assert_eq!((shown.text("state"), shown.header("idempotent-replayed")), (state, ""));
        assert_eq!(world.messages().len(), 1);
    }
}

#[tokio::test]
async fn a_cancelled_task_is_replayed_as_failed() {
    let world = World::new();
    let first = world.keyed("k").await;
    let cancel = format!("{}/cancel", first.header("location"));
    for _ in 0..2 {
        let cancelled = world.post(&cancel).await;
        assert_eq!((cancelled.status, cancelled.id()), (200, first.id()), "{}", cancelled.text);
        assert_eq!((cancelled.text("state"), cancelled.text("why")), ("failed", "cancelled"));
        assert_eq!(cancelled.header("location"), first.header("location"));
    }
    let replay = world.keyed("k").await;
    assert_eq!((replay.status, replay.text("why")), (200, "cancelled"));
    assert_eq!((&replay.json["duplicate"], replay.id()), (&true.into(), first.id()));
}

#[tokio::test]
async fn what_is_over_cannot_be_cancelled_and_what_is_unknown_is_404() {
    for end in [End::Completed, End::DeadLettered, End::Lost] {
        let world = World::new();
        let first = world.keyed("k").await;
        world.end(&first.id(), end).await;
        let before = world.get(first.header("location")).await;
        let late = world.post(&format!("/tasks/{}/cancel", first.id())).await;
        assert_eq!((late.told(), late.id()), ((409, "TASK_OVER"), first.id()));
        assert_eq!(world.get(first.header("location")).await.json, before.json);
    }
    let world = World::new();
    let id = world.keyed("k").await.id();
    for unknown in [
        "0190f5b2-0000-7000-8000-000000000000",
        "charge",
        "1",
        "%00",
        &id.to_uppercase(),
        &id.replace('-', ""),
        &format!("{id}%20"),
        &format!("%7B{id}%7D"),
    ] {
        assert_eq!(
            world.get(&format!("/tasks/{unknown}")).await.told(),
            (404, "TASK_NOT_FOUND"),
            "{unknown}"
        );
        let cancel = world.post(&format!("/tasks/{unknown}/cancel")).await;
        assert_eq!(cancel.told(), (404, "TASK_NOT_FOUND"), "{unknown}");
    }
    assert_eq!(world.get(&format!("/tasks/{id}")).await.text("state"), "processing");
}

/// F87: while the first runs, and after it; never the in-progress that invites a retry, and nothing of the first.
#[tokio::test]
async fn another_input_under_the_key_is_422_and_learns_nothing() {
    for queued in [false, true] {
        let world = World::new();
        let path = if queued { QUEUE } else { "/tasks/charge" };
        let body = |input: &str| format!(r#"{{"task_type":"charge","input":{input}}}"#);
        let key = [("idempotency-key", "k")];
        world.plan([Fate::Waits]);
        let conflicting = async {
            world.publisher.waiting.acquire().await.unwrap().forget();
            let other = world.submit(path, &key, &body("{\"b\":2}")).await;
            world.publisher.gate.add_permits(1);
            other
        };
        let one = body("{\"secret\":1}");
        let (first, creating) = tokio::join!(world.submit(path, &key, &one), conflicting);
        let running = world.submit(path, &key, &body("{\"b\":2}")).await;
        world.end(&first.id(), End::Completed).await;
        let over = world.submit(path, &key, &body("{\"b\":2}")).await;
        for answer in [creating, running, over] {
            assert_eq!(answer.told(), (422, "IDEMPOTENCY_CONFLICT"));
            for of_the_first in ["secret", &first.id(), first.text("created_at")] {
                assert!(!answer.text.contains(of_the_first), "{}", answer.text);
            }
            assert_eq!((answer.header("location"), answer.header("retry-after")), ("", ""));
        }
        assert_eq!(world.messages().len(), 1);
        assert_eq!(world.submit(path, &key, &one).await.status, 200);
    }
}

/// Order of members and white space do not make another input; the published text is the first one's.
#[tokio::test]
async fn the_same_input_written_otherwise_is_a_replay() {
    let world = World::new();
    let key = [("idempotency-key", "k")];
    let first = world.submit("/tasks/charge", &key, r#"{"input":{"a":1,"b":[2]}}"#).await;
    world.end(&first.id(), End::Completed).await;
    let replay = world.submit("/tasks/charge", &key, "{\"input\" : {\"b\" : [ 2.0 ],\n\"a\":1 }}").await;
    assert_eq!((replay.status, replay.id()), (200, first.id()));
}

#[tokio::test]
async fn a_wrong_method_is_405_and_says_which_are_right() {
    let world = World::new();
    for (path, allowed) in [(QUEUE, "POST"), ("/tasks/charge", "GET,HEAD,POST"), ("/tasks/x/cancel", "POST")]
    {
        for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::GET, Method::HEAD]
        {
            if allowed.contains(method.as_str()) {
                continue;
            }
            let answer = world.send(request(method.clone(), path, &[], "")).await;
            assert_eq!((answer.status, answer.header("allow")), (405, allowed), "{method} {path}");
            let code = if method == Method::HEAD { "" } else { "METHOD_NOT_ALLOWED" };
            assert_eq!(answer.text("code"), code, "{method} {path}");
        }
    }
}
