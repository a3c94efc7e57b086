//! What stands in front of the instances, as Cloud Run does: it passes each push on to one of them and notes what was answered.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client;
use crate::process::Instance;

/// What Pub/Sub was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Path and query of the push.
    pub(crate) path: String,
    /// The status; 502 if no instance answered.
    pub(crate) status: u16,
    /// Header `pushonce-outcome`; empty if there is none.
    pub(crate) outcome: String,
}

impl Answer {
    /// Whether Pub/Sub takes it for an ack.
    pub(crate) fn acks(&self) -> bool {
        matches!(self.status, 200 | 204)
    }
}

/// A front on a port of its own; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Front {
    at: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    instances: Mutex<Vec<u16>>,
    turn: AtomicUsize,
    answers: watch::Sender<Vec<Answer>>,
}

impl Front {
    /// Starts one in front of these instances, which take turns.
    pub(crate) async fn of<const N: usize>(instances: [&Instance; N]) -> Self {
        let listener = TcpListener::bind(client::local(0)).await.expect("a free port");
        let at = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            instances: Mutex::default(),
            turn: AtomicUsize::new(0),
            answers: watch::Sender::new(Vec::new()),
        });
        let router = Router::new().fallback(pass).with_state(shared.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the front serves");
        });
        let front = Self { at, shared, server };
        front.turn_to(instances);
        front
    }

    /// From now on passes pushes on to these instances only.
    pub(crate) fn turn_to<const N: usize>(&self, instances: [&Instance; N]) {
        let ports = instances.map(|instance| instance.port).to_vec();
        *self.shared.instances.lock().unwrap_or_else(PoisonError::into_inner) = ports;
    }

    /// Its URL with this path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    /// Waits until the answers meet a condition. Fails, listing them, if they do not within the limit.
    pub(crate) async fn await_answers(
        &self,
        limit: Duration,
        mut wanted: impl FnMut(&[Answer]) -> bool,
    ) -> Vec<Answer> {
        let mut seen = self.shared.answers.subscribe();
        match tokio::time::timeout(limit, seen.wait_for(|answers| wanted(answers))).await {
            Ok(answers) => answers.expect("the sender lives as long as self").clone(),
            Err(_) => panic!("the condition was not met in {limit:?}; {self}"),
        }
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.shared.answers.borrow();
        write!(f, "the front gave {} answers", answers.len())?;
        for Answer { path, status, outcome } in answers.iter() {
            write!(f, "\n  {path} {status} {outcome}")?;
        }
        Ok(())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.server.abort();
    }
}

// Dropped when Pub/Sub hangs up, and the connection to the instance with it.
async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
    let turn = shared.turn.fetch_add(1, Ordering::Relaxed);
    let port = {
        let instances = shared.instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances[turn % instances.len()]
    };
    let request = Request::from_parts(parts, body.to_bytes());
    let response = match client::send(client::local(port), request).await {
        Ok(response) => response.map(Body::from),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    };
    let outcome = response.headers().get("pushonce-outcome").and_then(|name| name.to_str().ok());
    let answer =
        Answer { path, status: response.status().as_u16(), outcome: outcome.unwrap_or_default().to_owned() };
    shared.answers.send_modify(|answers| answers.push(answer));
    response
}
