//! Bodies: how large, how slow and how broken they may be, on the way in and on the way out.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use pushonce::store::record::{Ended, State};
use pushonce::{Delivery, PubSub, json_pointer};
use serde_json::{Value, json};
use tracing::Level;

use crate::log::Log;
use crate::world::{Runs, World, app, file, message, posted, push, send, with_data};

#[tokio::test]
async fn a_body_over_the_limit_is_answered_413_and_logged_with_size_and_limit() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[200]), world.layer().body_limit(1000));
    let sized = Body::from(vec![b' '; 1001]);
    let streamed = Body::from_stream(stream::iter((0..11).map(|_| Ok::<_, io::Error>(vec![b' '; 100]))));
    for body in [sized, streamed] {
        assert_eq!(send(&app, posted(body)).await.told(), (413, "refused"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("refused", Level::ERROR));
        let error = line.field("error");
        assert!(
            error.contains("`body_limit`, 1000 bytes") && error.contains("1001") | error.contains("1100"),
            "{error}"
        );
    }
    assert_eq!((runs.count(), world.memory.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_answered_408() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let app = app(Runs::default().answering(&[200]), world.layer());
    let slow = stream::iter([Ok::<_, io::Error>("{")]).chain(stream::pending());
    let began = tokio::time::Instant::now();
    assert_eq!(send(&app, posted(Body::from_stream(slow))).await.told(), (408, "refused"));
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(log.outcome().level, Level::ERROR);
}

// F09
#[tokio::test]
async fn what_is_no_envelope_or_breaks_off_is_answered_400_without_a_dump_of_it() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let app = app(runs.answering(&[200]), world.layer());
    let broken = stream::iter([Ok("{\"message\":{\"secret\":"), Err(io::Error::other("reset"))]);
    let bodies = [
        Body::from_stream(broken),
        Body::empty(),
        "[]".into(),
        "{\"message\":{\"secret\":".into(),
        "\u{feff}{\"message\":{\"messageId\":\"secret\"}}".into(),
        "{\"message\":\"secret\"}".into(),
        "{\"message\":{\"data\":\"c2VjcmV0\"}}".into(),
    ];
    for body in bodies {
        let answer = send(&app, posted(body)).await;
        assert_eq!(answer.told(), (400, "refused"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("refused", Level::ERROR));
        assert!(!line.field("error").is_empty());
        assert!(!format!("{line:?}{answer:?}").contains("secret"), "{line:?}{answer:?}");
    }
    assert_eq!((runs.count(), world.memory.len()), (0, 0));
}

// F06
#[tokio::test]
async fn a_message_of_10_mb_passes_through_every_kind_of_handler() {
    let text = "x".repeat(10_000_000 - 2);
    let data = format!("\"{text}\"");
    let body = json!({ "message": with_data("m", &data) }).to_string();
    let length = body.len();
    let handlers = [
        post(async move |body: Bytes| assert_eq!(body.len(), length)),
        post(async move |Json(body): Json<Value>| assert_eq!(body["message"]["messageId"], "m")),
        post(async move |PubSub(text): PubSub<String>| assert_eq!(text.len(), 10_000_000 - 2)),
        post(async move |delivery: Delivery| assert_eq!(delivery.data().unwrap().len(), 10_000_000)),
    ];
    for handler in handlers {
        let world = World::new();
        assert_eq!(send(&app(handler, world.layer()), posted(body.clone())).await.told(), (200, "ran"));
    }
    let bare = Router::new()
        .route("/", post(async |PubSub(text): PubSub<String>| assert_eq!(text.len(), 10_000_000 - 2)));
    assert_eq!(send(&bare, posted(body)).await.status, 200);
}

// F18
#[tokio::test]
async fn a_push_without_a_content_type_passes_through_axums_json() {
    let handler = || post(async |Json(order): Json<Value>| assert_eq!(order["status"], "SHIPPED"));
    let world = World::new();
    let unwrapped = app(handler(), world.layer());
    assert_eq!(send(&unwrapped, file("14-unwrapped-no-content-type.http")).await.told(), (200, "ran"));
    // Without metadata too.
    let bare = app(handler(), world.layer().key(json_pointer("/po")));
    let body = r#"{"po":"PO-1","status":"SHIPPED"}"#;
    let request = http::Request::post("/").body(body.into()).unwrap();
    assert_eq!(send(&bare, request).await.told(), (200, "ran"));
}

#[tokio::test]
async fn the_handler_sees_the_bytes_that_were_sent() {
    let world = World::new();
    let sent: Arc<str> = format!(
        "\n {{\"extra\": 1, \"message\": {{\"messageId\":\"m\",\"data\":\"{}\"}}}} ",
        BASE64_STANDARD.encode([0, 255, 254])
    )
    .into();
    let handler = post({
        let expected = sent.clone();
        async move |axum::Extension(delivery): axum::Extension<Delivery>, body: Bytes| {
            assert_eq!((&*body, &delivery.body()[..]), (expected.as_bytes(), expected.as_bytes()));
            assert_eq!(delivery.data().unwrap(), &[0, 255, 254][..]);
        }
    });
    assert_eq!(send(&app(handler, world.layer()), posted(sent.to_string())).await.told(), (200, "ran"));
}

// F52
#[tokio::test]
async fn an_answer_whose_body_fails_or_is_over_the_bound_is_a_failure() {
    let failing = || {
        let broken = [Ok("half"), Err(io::Error::other("the export broke off"))];
        Body::from_stream(stream::iter(broken))
    };
    for (body, says) in [
        (failing as fn() -> Body, "the export broke off"),
        (|| Body::from(vec![0; 1025]), "`response_limit`, 1024 bytes"),
    ] {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        let counted = runs.clone();
        let handler = post(async move || if counted.add() == 0 { body() } else { Body::empty() });
        let app = app(handler, world.layer().response_limit(1024));
        assert_eq!(push(&app, "m").await.told(), (500, "failed"));
        let line = log.outcome();
        assert!(line.field("error").contains(says), "{line:?}");
        assert_eq!(world.stands("m").await, Some((State::Released, Ended::Failed, 1)));
        assert_eq!(push(&app, "m").await.told(), (200, "ran"));
    }
}

#[tokio::test]
async fn work_inside_a_streamed_answer_is_done_before_it_is_recorded_and_its_bytes_go_out() {
    let (world, runs) = (World::new(), Runs::default());
    let (counted, store) = (runs.clone(), world.memory.clone());
    let handler = post(async move || {
        Body::from_stream(stream::once(async move {
            let key = pushonce::IntoKey::into_key(("orders", "m")).unwrap();
            let stored = pushonce::Store::read(&*store, &key).await.unwrap().unwrap();
            assert_eq!(stored.record.state, State::Claimed);
            counted.add();
            Ok::<_, io::Error>("exported")
        }))
    });
    let answer = message(&app(handler, world.layer()), &json!({ "messageId": "m" })).await;
    assert_eq!((answer.told(), &answer.body[..]), ((200, "ran"), &b"exported"[..]));
    assert_eq!((runs.count(), world.stands("m").await.unwrap().0), (1, State::Done));
}
