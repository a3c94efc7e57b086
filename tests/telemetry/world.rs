//! What the tests share: a store that can be made to fail, pushes with secrets in them, and handlers.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, post};
use http::StatusCode;
use pushonce::store::Memory;
use pushonce::store::chaos::Chaos;
use pushonce::testing::{Answer, Push};
use pushonce::{IdempotentLayer, Store};
use serde_json::json;

/// In the data of each push.
pub(crate) const PAYLOAD: &str = "4111-1111-1111-1111";
/// In its header `authorization`.
pub(crate) const TOKEN: &str = "eyJhbGciOi";
pub(crate) const SUBSCRIPTION: &str = "projects/p/subscriptions/s";

/// The memory store behind one that makes faults to order.
pub(crate) struct World {
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) store: Arc<dyn Store>,
}

impl World {
    pub(crate) fn new() -> Self {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        Self { store: chaos.clone(), chaos }
    }

    /// The layer of the consumer `orders`.
    pub(crate) fn layer(&self) -> IdempotentLayer {
        IdempotentLayer::new("orders", self.store.clone())
    }
}

/// A route under a layer.
pub(crate) fn app(route: MethodRouter, layer: IdempotentLayer) -> Router {
    Router::new().route("/", route.layer(layer))
}

/// A handler that answers with that status.
pub(crate) fn answering(status: u16) -> MethodRouter {
    post(async move || StatusCode::from_u16(status).unwrap())
}

/// A message in its third delivery, with what must not be logged.
pub(crate) fn message(id: &str) -> Push {
    Push::json(&json!({ "card": PAYLOAD }))
        .id(id)
        .attempt(3)
        .subscription(SUBSCRIPTION)
        .header("authorization", &format!("Bearer {TOKEN}"))
        .attribute("secret", PAYLOAD)
}

pub(crate) async fn push(app: &Router, id: &str) -> Answer {
    message(id).send(app).await
}
