//! Wherever the routes are nested, and however a path is written: they are found, and the links are right.

use axum::Router;
use axum::routing::get;
use http::{Method, Request};
use pushonce::submit::routes;
use tower::ServiceExt as _;

use super::world::{World, request, send};

#[tokio::test]
async fn the_links_are_right_wherever_the_routes_are_nested() {
    let world = World::new();
    let tasks = || routes(world.submitter.clone()).router();
    for (place, (app, prefix)) in [
        (tasks(), ""),
        (Router::new().merge(tasks()), ""),
        (Router::new().nest("/api", tasks()), "/api"),
        (Router::new().nest("/v1", Router::new().nest("/api", tasks())), "/v1/api"),
        (Router::new().nest_service("/api", tasks()), "/api"),
        (Router::new().nest("/of/{customer}", tasks()), "/of/ad%20a"),
        (Router::new().nest("/of/{queue}/{id}", tasks()), "/of/tasks/tasks"),
    ]
    .into_iter()
    .enumerate()
    {
        for (number, path) in
            ["/tasks/charge", "/queues/q/tasks", "/tasks/charge/", "/queues/q/tasks/"].iter().enumerate()
        {
            let body = r#"{"task_type":"charge","input":1}"#;
            let key = format!("{place} {number}");
            let submit =
                || request(Method::POST, &format!("{prefix}{path}"), &[("idempotency-key", &key)], body);
            let first = send(&app, submit()).await;
            assert_eq!(first.status, 202, "{prefix}{path}: {}", first.text);
            let location = format!("{prefix}/tasks/{}", first.id());
            assert_eq!(first.header("location"), location);
            let again = send(&app, submit()).await;
            assert_eq!((again.status, again.text("task_url")), (409, &*location));
            for path in [location.clone(), format!("{location}/"), format!("{location}?a=b")] {
                let shown = send(&app, request(Method::GET, &path, &[], "")).await;
                assert_eq!((shown.status, shown.header("location")), (200, &*location), "{path}");
            }
            let slash = if number % 2 == 0 { "" } else { "/" };
            let cancel = request(Method::POST, &format!("{location}/cancel{slash}"), &[], "");
            let cancelled = send(&app, cancel).await;
            assert_eq!((cancelled.status, cancelled.header("location")), (200, &*location));
        }
    }
}

/// A proxy is asked with the whole address.
#[tokio::test]
async fn the_links_have_no_host() {
    let world = World::new();
    let app = Router::new().nest("/api", routes(world.submitter.clone()).router());
    let answer =
        send(&app, request(Method::POST, "http://evil.example/api/tasks/t?x", &[], "{\"input\":1}")).await;
    assert_eq!(answer.header("location"), format!("/api/tasks/{}", answer.id()));
}

/// HEAD answers what GET would, without the body.
#[tokio::test]
async fn head_answers_like_get() {
    let world = World::new();
    let first = world.keyed("k").await;
    let known = world.send(request(Method::HEAD, first.header("location"), &[], "")).await;
    assert_eq!((known.status, known.header("location")), (200, first.header("location")));
    let unknown = world.send(request(Method::HEAD, "/tasks/x", &[], "")).await;
    assert_eq!((unknown.status, unknown.header("content-type")), (404, super::world::PROBLEM));
}

/// What is none of their paths is the application's to answer.
#[tokio::test]
async fn the_application_keeps_its_own_routes_and_fallback() {
    let world = World::new();
    let app = Router::new()
        .route("/healthz", get(async || "ok"))
        .fallback(async || "its own")
        .merge(routes(world.submitter.clone()).router());
    for (path, text) in
        [("/healthz", "ok"), ("/tasks", "its own"), ("/tasks/x/y", "its own"), ("/queues/q", "its own")]
    {
        let answer =
            app.clone().oneshot(Request::get(path).body(axum::body::Body::empty()).unwrap()).await.unwrap();
        let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
        assert_eq!(body, text, "{path}");
    }
    assert_eq!(send(&app, request(Method::POST, "/tasks/t", &[], "{\"input\":1}")).await.status, 202);
}
