//! The layer under axum.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::{Router, routing::post};
use pushonce::store::Memory;
use pushonce::{Ack, Failure, IdempotentLayer, PubSub, Store};
use tower::ServiceExt as _;

#[tokio::test]
async fn a_push_runs_once() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let handler = move |PubSub(data): PubSub<serde_json::Value>| async move {
        assert_eq!(data["po"], 12);
        counted.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Failure>(Ack)
    };
    let app: Router = Router::new().route("/", post(handler).layer(IdempotentLayer::new("orders", store)));
    let push = || {
        let body = r#"{"message":{"messageId":"7","data":"eyJwbyI6MTJ9"}}"#;
        http::Request::post("/").body(Body::from(body)).unwrap()
    };
    let first = app.clone().oneshot(push()).await.unwrap();
    assert_eq!(
        (first.status().as_u16(), &first.headers()["pushonce-outcome"]),
        (200, &"ran".parse().unwrap())
    );
    let second = app.oneshot(push()).await.unwrap();
    assert_eq!(
        (second.status().as_u16(), &second.headers()["pushonce-outcome"]),
        (204, &"duplicate".parse().unwrap())
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
