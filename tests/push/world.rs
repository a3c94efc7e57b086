//! What the tests share: a store that can be made to fail, pushes, and what came of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::{MethodRouter, post};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use pushonce::store::chaos::Chaos;
use pushonce::store::record::{Ended, State};
use pushonce::store::{Memory, Record};
use pushonce::{IdempotentLayer, IntoKey, Store};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The memory store behind one that makes faults to order.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) memory: Arc<Memory>,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) store: Arc<dyn Store>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(Memory::new())
    }

    pub(crate) fn of(memory: Memory) -> Self {
        let memory = Arc::new(memory);
        let chaos = Chaos::new(memory.clone());
        Self { memory, store: chaos.clone(), chaos }
    }

    /// The layer of the consumer `orders`.
    pub(crate) fn layer(&self) -> IdempotentLayer {
        IdempotentLayer::new("orders", self.store.clone())
    }

    /// What stands under a key, without disturbing the planned faults.
    pub(crate) async fn record(&self, key: impl IntoKey) -> Option<Record> {
        let key = key.into_key().unwrap();
        self.memory.read(&key).await.unwrap().map(|stored| stored.record)
    }

    /// Takes a key of the consumer `orders` away, as an operator or garbage collection may.
    pub(crate) fn forget(&self, text: &str) {
        self.memory.forget(&("orders", text).into_key().unwrap());
    }

    /// State and history of a key of the consumer `orders`.
    pub(crate) async fn stands(&self, text: &str) -> Option<(State, Ended, u32)> {
        let record = self.record(("orders", text)).await?;
        Some((record.state, record.ended, record.runs))
    }
}

/// How often a handler ran.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    /// Counts one more, and tells how many there were before.
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) as usize
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// A route that answers these in turn; the last one for ever.
    pub(crate) fn answering(&self, statuses: &[u16]) -> MethodRouter {
        let (runs, statuses) = (self.clone(), statuses.to_vec());
        post(async move || {
            let at = runs.add().min(statuses.len() - 1);
            StatusCode::from_u16(statuses[at]).unwrap()
        })
    }
}

/// A handler that panics.
pub(crate) async fn panics() {
    panic!("no")
}

/// A route under a layer.
pub(crate) fn app(route: MethodRouter, layer: IdempotentLayer) -> Router {
    Router::new().route("/", route.layer(layer))
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The outcome that the answer names; empty where it names none.
    pub(crate) fn outcome(&self) -> &str {
        self.headers.get("pushonce-outcome").map_or("", |value| value.to_str().unwrap())
    }

    /// Status and outcome.
    pub(crate) fn told(&self) -> (u16, &str) {
        (self.status, self.outcome())
    }
}

pub(crate) async fn send(app: &Router, request: Request<Body>) -> Answer {
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

/// Sends a wrapped push of that id, without data.
pub(crate) async fn push(app: &Router, id: &str) -> Answer {
    send(app, wrapped(&json!({ "messageId": id }))).await
}

/// Sends a wrapped push of that message.
pub(crate) async fn message(app: &Router, message: &Value) -> Answer {
    send(app, wrapped(message)).await
}

/// A wrapped push of that message, in its third delivery.
pub(crate) fn wrapped(message: &Value) -> Request<Body> {
    let body =
        json!({ "message": message, "subscription": "projects/p/subscriptions/s", "deliveryAttempt": 3 });
    posted(body.to_string())
}

/// A POST of JSON.
pub(crate) fn posted(body: impl Into<Body>) -> Request<Body> {
    Request::post("/").header("content-type", "application/json").body(body.into()).unwrap()
}

/// A message of that id and data.
pub(crate) fn with_data(id: &str, data: impl AsRef<[u8]>) -> Value {
    json!({ "messageId": id, "data": BASE64_STANDARD.encode(data) })
}

/// A file of `tests/payloads`: a whole request, or the body of a wrapped push.
pub(crate) fn file(name: &str) -> Request<Body> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payloads").join(name);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if name.ends_with(".json") {
        return posted(text);
    }
    let end = text.windows(2).position(|pair| pair == b"\n\n").expect("a blank line after the headers");
    let mut request = Request::post("/");
    for line in text[..end].split(|byte| *byte == b'\n').skip(1) {
        let colon = line.iter().position(|byte| *byte == b':').expect("a header");
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    request.body(text[end + 2..].to_vec().into()).unwrap()
}
