//! The world outside: a real HTTP server that counts the effects it is asked for, and misbehaves to order.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// One request, in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// Path and query.
    pub(crate) path: String,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
    /// When it arrived.
    pub(crate) at: Instant,
    /// How many others were at work when it arrived.
    pub(crate) alongside: usize,
}

impl Effect {
    /// What makes a repeat harmless: header `idempotency-key`.
    pub(crate) fn id(&self) -> &str {
        self.header("idempotency-key").unwrap_or_default()
    }

    /// The holder's fence: header `pushonce-fence`.
    pub(crate) fn fence(&self) -> u64 {
        let fence = self.header("pushonce-fence").expect("an effect carries the fence of its holder");
        fence.parse().expect("a fence is a number")
    }

    /// What the handler was told of earlier runs: header `pushonce-history`.
    pub(crate) fn history(&self) -> &str {
        self.header("pushonce-history").expect("an effect carries the history of its key")
    }

    /// A header's text, where it has one.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A supplier on a port of its own; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Supplier {
    at: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    effects: watch::Sender<Vec<Effect>>,
    // Answers to come; when there are none left, 200.
    scripted: Mutex<VecDeque<Answer>>,
    released: Semaphore,
    at_work: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Status(StatusCode),
    After(Duration),
    Held(StatusCode),
}

impl Supplier {
    /// Starts one that answers 200 to everything.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(crate::client::local(0)).await.expect("a free port");
        let at = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            effects: watch::Sender::new(Vec::new()),
            scripted: Mutex::default(),
            released: Semaphore::new(0),
            at_work: AtomicUsize::new(0),
        });
        let router = Router::new().fallback(take).with_state(shared.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the supplier serves");
        });
        Self { at, shared, server }
    }

    /// Its URL with this path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    /// The next `times` requests not yet spoken for are answered with this status.
    pub(crate) fn answer(&self, status: u16, times: usize) {
        let status = StatusCode::from_u16(status).expect("a status");
        self.script(Answer::Status(status), times);
    }

    /// The next `times` requests not yet spoken for take this long, and are then answered 200.
    pub(crate) fn take_time(&self, time: Duration, times: usize) {
        self.script(Answer::After(time), times);
    }

    /// The next request not yet spoken for gets its answer, 200, only after [`Supplier::release`].
    pub(crate) fn hold(&self) {
        self.hold_then(200);
    }

    /// The same with another answer.
    pub(crate) fn hold_then(&self, status: u16) {
        self.script(Answer::Held(StatusCode::from_u16(status).expect("a status")), 1);
    }

    /// Answers one held request: that which was held first, or the next to be held.
    pub(crate) fn release(&self) {
        self.shared.released.add_permits(1);
    }

    /// All effects so far.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        self.shared.effects.borrow().clone()
    }

    /// How often this effect was asked for.
    pub(crate) fn count(&self, id: &str) -> usize {
        self.shared.effects.borrow().iter().filter(|effect| effect.id() == id).count()
    }

    /// Waits until the effects meet a condition. Fails, listing them, if they do not within the limit.
    pub(crate) async fn await_effects(
        &self,
        limit: Duration,
        mut wanted: impl FnMut(&[Effect]) -> bool,
    ) -> Vec<Effect> {
        let mut seen = self.shared.effects.subscribe();
        let met = tokio::time::timeout(limit, seen.wait_for(|effects| wanted(effects))).await;
        match met {
            Ok(effects) => effects.expect("the sender lives as long as self").clone(),
            Err(_) => panic!("the condition was not met in {limit:?}; {self}"),
        }
    }

    fn script(&self, answer: Answer, times: usize) {
        let mut scripted = self.shared.scripted.lock().unwrap_or_else(PoisonError::into_inner);
        scripted.extend(std::iter::repeat_n(answer, times));
    }
}

impl fmt::Display for Supplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effects = self.shared.effects.borrow();
        write!(f, "the supplier has {} effects", effects.len())?;
        let Some(first) = effects.first() else { return Ok(()) };
        for effect in effects.iter() {
            let after = effect.at.duration_since(first.at);
            write!(f, "\n  +{after:<12.1?} {} id={} {:?}", effect.path, effect.id(), effect.body)?;
        }
        Ok(())
    }
}

impl Drop for Supplier {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
    let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let (alongside, _at_work) = AtWork::begin(&shared.at_work);
    let effect =
        Effect { path, headers: parts.headers, body: body.to_bytes(), at: Instant::now(), alongside };
    // The answer is chosen before the effect shows, so that a test that saw it can script the next one.
    let answer = shared.scripted.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    shared.effects.send_modify(|effects| effects.push(effect));
    match answer {
        None => StatusCode::OK,
        Some(Answer::Status(status)) => status,
        Some(Answer::After(time)) => {
            tokio::time::sleep(time).await;
            StatusCode::OK
        }
        Some(Answer::Held(status)) => {
            shared.released.acquire().await.expect("the semaphore is never closed").forget();
            status
        }
    }
    .into_response()
}

/// Counts a request until it is answered, or its caller has gone.
struct AtWork<'a>(&'a AtomicUsize);

impl<'a> AtWork<'a> {
    /// Gives, too, how many were counted before.
    fn begin(at_work: &'a AtomicUsize) -> (usize, Self) {
        (at_work.fetch_add(1, Ordering::SeqCst), Self(at_work))
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
