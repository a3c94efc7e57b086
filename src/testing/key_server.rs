//! A key server on this machine: publishes keys as Google does, signs tokens with them, and fails to order.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::impossible;
use super::signing::{Claims, Signer};
use crate::time::{Clock, system_clock};

/// What Cloud Run writes in place of a signature that it has checked.
const REMOVED: &str = "SIGNATURE_REMOVED_BY_GOOGLE";

/// A key server on `127.0.0.1`, which also signs tokens as Google signs a push. Clones are the same
/// server; it ends with the last of them. (Feature `oidc`.)
///
/// ```
/// use pushonce::testing::{Claims, KeyServer};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let keys = KeyServer::start().await;
/// let claims = Claims::new("https://orders.example.run.app", "pusher@project.iam.gserviceaccount.com");
/// let header = format!("Bearer {}", keys.token(&claims));
/// # let _ = (header, keys.url());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KeyServer {
    at: SocketAddr,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    _accepting: Arc<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    fetches: AtomicUsize,
    behaviour: Mutex<Behaviour>,
}

#[derive(Debug)]
struct Behaviour {
    /// What is published; the last one signs.
    keys: Vec<Signer>,
    headers: HeaderMap,
    status: StatusCode,
    body: Option<Bytes>,
    delay: Duration,
    down: bool,
}

impl KeyServer {
    /// Starts one on a free port, with one key.
    ///
    /// # Panics
    /// If this machine has no free port.
    pub async fn start() -> Self {
        let (listener, at) = match listening().await {
            Ok(found) => found,
            Err(error) => impossible(format_args!("no key server could be started: {error}")),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=UTF-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600, must-revalidate"));
        let behaviour = Behaviour {
            keys: vec![Signer::first()],
            headers,
            status: StatusCode::OK,
            body: None,
            delay: Duration::ZERO,
            down: false,
        };
        let shared = Arc::new(Shared { fetches: AtomicUsize::new(0), behaviour: Mutex::new(behaviour) });
        #[expect(clippy::disallowed_methods, reason = "it writes nothing, and ends with its server")]
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { at, shared, clock: system_clock(), _accepting: Arc::new(AbortOnDropHandle::new(accepting)) }
    }

    /// Signs by the time of another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Where the keys are.
    pub fn url(&self) -> String {
        format!("http://{}/oauth2/v3/certs", self.at)
    }

    /// A token with these claims, signed by the newest key.
    pub fn token(&self, claims: &Claims) -> String {
        let header = json!({ "alg": "RS256", "kid": self.kid(), "typ": "JWT" });
        self.sign(&header, &claims.at(self.clock.wall()))
    }

    /// The same as Cloud Run hands it on where it has checked it itself: with a fixed text in place of
    /// the signature.
    pub fn stripped(&self, claims: &Claims) -> String {
        let token = self.token(claims);
        let message = token.rsplit_once('.').map_or("", |(message, _)| message);
        format!("{message}.{REMOVED}")
    }

    /// Any JSON as header and claims, signed with the newest key by RS256 whatever the header says.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        self.newest().sign(header, claims)
    }

    /// The id of the key that signs.
    pub fn kid(&self) -> String {
        self.newest().kid
    }

    /// The keys as they are published.
    pub fn keys(&self) -> Value {
        self.behaviour().published()
    }

    /// Signs with a new key from now on, which is published beside the others.
    pub fn rotate(&self) {
        let signer = Signer::new();
        self.behaviour().keys.push(signer);
    }

    /// Publishes the newest key only.
    pub fn retire(&self) {
        let keys = &mut self.behaviour().keys;
        keys.drain(..keys.len().saturating_sub(1));
    }

    /// How often the keys were asked for, answered or not.
    pub fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// Hangs up on everybody, until [`up`](Self::up).
    pub fn down(&self) {
        self.behaviour().down = true;
    }

    /// Answers again.
    pub fn up(&self) {
        self.behaviour().down = false;
    }

    /// Answers with this status.
    pub fn status(&self, status: StatusCode) {
        self.behaviour().status = status;
    }

    /// Answers with this body, or with the keys.
    pub fn body(&self, body: Option<Bytes>) {
        self.behaviour().body = body;
    }

    /// Answers after this time.
    pub fn delay(&self, delay: Duration) {
        self.behaviour().delay = delay;
    }

    /// Answers with this header; default is `cache-control: public, max-age=3600, must-revalidate`.
    pub fn header(&self, name: HeaderName, value: HeaderValue) {
        self.behaviour().headers.insert(name, value);
    }

    /// Answers without that header.
    pub fn without_header(&self, name: HeaderName) {
        self.behaviour().headers.remove(name);
    }

    fn newest(&self) -> Signer {
        match self.behaviour().keys.last() {
            Some(signer) => signer.clone(),
            None => impossible("the key server has no key"),
        }
    }

    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.shared.behaviour()
    }
}

impl Behaviour {
    fn published(&self) -> Value {
        json!({ "keys": self.keys.iter().map(Signer::public).collect::<Vec<_>>() })
    }
}

impl Shared {
    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: hangs up.
    async fn answer(&self) -> Option<Response<Full<Bytes>>> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let (delay, down) = {
            let behaviour = self.behaviour();
            (behaviour.delay, behaviour.down)
        };
        if down {
            return None;
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let behaviour = self.behaviour();
        let body = behaviour.body.clone().unwrap_or_else(|| behaviour.published().to_string().into());
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = behaviour.status;
        *response.headers_mut() = behaviour.headers.clone();
        Some(response)
    }
}

async fn listening() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        #[expect(clippy::disallowed_methods, reason = "it writes nothing, and ends with its connection")]
        drop(tokio::spawn(connected(stream, shared.clone())));
    }
}

async fn connected(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|_: Request<Incoming>| async {
        // An error closes the connection without an answer.
        shared.answer().await.ok_or("down")
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
