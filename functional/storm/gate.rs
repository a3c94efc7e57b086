//! What stands before the instances, as Cloud Run does: it passes each push on to one of them, and counts what Pub/Sub was told.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client;

/// How long the emulator waits for an answer before it pushes to another: five seconds at least.
pub(crate) const ACK_DEADLINE: Duration = Duration::from_secs(5);
/// An answer that took longer than this may have come when the emulator had given the push up; then it
/// pushes again.
const IN_TIME: Duration = Duration::from_secs(4);
/// By then it has.
const AGAIN: Duration = Duration::from_secs(7);
/// Where the emulator pushes to; all others push by hand.
const PUSHES: &str = "/pushes";
const BY_HAND: &str = "/by-hand";

/// A gate on a port of its own; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    at: SocketAddr,
    shared: Arc<Mutex<Counted>>,
    server: JoinHandle<()>,
}

/// What went through.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// The port of each instance that is there.
    instances: BTreeMap<usize, u16>,
    turn: usize,
    /// All pushes.
    pub(crate) delivered: usize,
    /// Each outcome, by its name; an answer that has none, by its status.
    pub(crate) told: BTreeMap<String, usize>,
    /// The messages that the emulator was told are acked.
    pub(crate) acked: HashSet<String>,
    /// Until when it may push again what it was told too late.
    doubtful: Option<Instant>,
    open: usize,
}

impl Gate {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind(client::local(0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let shared = Arc::<Mutex<Counted>>::default();
        let router = Router::new().fallback(pass).with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { at, shared, server }
    }

    /// Where the emulator is to push to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{PUSHES}", self.at)
    }

    /// Pushes by hand.
    pub(crate) async fn push(&self, message: crate::pubsub::Message, id: &str) {
        let request = message.request(BY_HAND, id, 1);
        // Whether there was an answer is counted, too.
        let _ = client::send(self.at, request).await;
    }

    /// From now on the instance gets its share; `None`: none.
    pub(crate) fn turn(&self, instance: usize, port: Option<u16>) {
        let instances = &mut self.counted().instances;
        match port {
            Some(port) => instances.insert(instance, port),
            None => instances.remove(&instance),
        };
    }

    pub(crate) fn counted(&self) -> MutexGuard<'_, Counted> {
        self.shared.lock().unwrap()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

// Dropped when Pub/Sub hangs up, and the connection to the instance with it.
async fn pass(State(shared): State<Arc<Mutex<Counted>>>, request: Request) -> Response {
    let began = Instant::now();
    let (mut parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
    let body = body.to_bytes();
    let by_hand = parts.uri.path() == BY_HAND;
    let open = Open::begin(shared);
    let port = open.0.lock().unwrap().next();
    parts.uri = http::Uri::from_static("/");
    let Some(port) = port else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    let answer = client::send(client::local(port), Request::from_parts(parts, body.clone())).await;
    let response =
        answer.map_or_else(|_| StatusCode::BAD_GATEWAY.into_response(), |answer| answer.map(Body::from));

    let outcome = response.headers().get("pushonce-outcome").and_then(|name| name.to_str().ok());
    let told = outcome.map_or_else(|| response.status().as_str().to_owned(), str::to_owned);
    let mut counted = open.0.lock().unwrap();
    *counted.told.entry(told).or_default() += 1;
    let acks = matches!(response.status().as_u16(), 200 | 204);
    if acks && !by_hand {
        let push: Value = serde_json::from_slice(&body).unwrap();
        counted.acked.insert(push["message"]["messageId"].as_str().unwrap().to_owned());
    }
    if began.elapsed() > IN_TIME {
        counted.doubtful = Some(Instant::now() + AGAIN);
    }
    drop(counted);
    response
}

/// Counts a push until it is answered, or Pub/Sub has hung up.
struct Open(Arc<Mutex<Counted>>);

impl Open {
    fn begin(shared: Arc<Mutex<Counted>>) -> Self {
        shared.lock().unwrap().open += 1;
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().unwrap().open -= 1;
    }
}

impl Counted {
    /// Whether all of these are acked, and nothing is on its way or may still come.
    pub(crate) fn acked_all<'a>(&self, mut messages: impl Iterator<Item = &'a String>) -> bool {
        self.open == 0
            && self.doubtful.is_none_or(|until| until < Instant::now())
            && messages.all(|message| self.acked.contains(message))
    }

    /// Whose turn it is.
    fn next(&mut self) -> Option<u16> {
        self.delivered += 1;
        self.turn += 1;
        let turn = self.turn.checked_rem(self.instances.len())?;
        self.instances.values().nth(turn).copied()
    }
}
