//! A fake S3, as far as it answers itself: it stands before a real server, or before the fake of Google
//! Cloud Storage, gives the answers that no server here can be made to give, and passes on all else.
//!
//! It also loses answers, by cutting the connection before or after the server has the request, and
//! counts what went over the wire.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{IF_NONE_MATCH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// What happens in place of a request's usual course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instead {
    /// The connection is cut, and the server never sees it.
    CutBefore,
    /// The server answers, and the connection is cut before the answer.
    CutAfter,
    /// Nobody answers, ever.
    Silence,
    /// This status and error code, of the fake.
    Answer(u16, &'static str),
}

/// The fake. It ends when dropped, and every connection with it.
#[derive(Debug)]
pub(crate) struct FakeAnswers {
    address: SocketAddr,
    wire: Arc<Wire>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct Wire {
    upstream: String,
    client: Client<HttpConnector, Full<Bytes>>,
    reads: Mutex<VecDeque<Instead>>,
    writes: Mutex<VecDeque<Instead>>,
    creates: Mutex<Option<(Arc<Barrier>, usize)>>,
    dropped: Mutex<Option<&'static str>>,
    seen: Mutex<Vec<(Method, HeaderMap)>>,
}

impl FakeAnswers {
    /// A fake on a free loopback port, before `upstream` (`host:port`).
    pub(crate) async fn before(upstream: &str) -> Self {
        Self::before_at("127.0.0.1:0", upstream).await
    }

    /// A fake at that address.
    pub(crate) async fn before_at(host: &str, upstream: &str) -> Self {
        let listener = TcpListener::bind(host).await.unwrap();
        let wire = Arc::new(Wire {
            upstream: upstream.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            reads: Mutex::default(),
            writes: Mutex::default(),
            creates: Mutex::default(),
            dropped: Mutex::default(),
            seen: Mutex::default(),
        });
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, wire.clone()));
        Self { address, wire, _serving: serving }
    }

    /// Its own address, as `host:port`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// What the next PUTs meet, one after another.
    pub(crate) fn next_writes(&self, instead: impl IntoIterator<Item = Instead>) {
        lock(&self.wire.writes).extend(instead);
    }

    /// What the next GETs meet, one after another.
    pub(crate) fn next_reads(&self, instead: impl IntoIterator<Item = Instead>) {
        lock(&self.wire.reads).extend(instead);
    }

    /// Answers so many creates with 409, all at once when the last of them has come, and none after them.
    pub(crate) fn refuse_creates(&self, count: usize) {
        *lock(&self.wire.creates) = Some((Arc::new(Barrier::new(count)), count));
    }

    /// Passes requests on without this header from now on.
    pub(crate) fn drop_header(&self, name: &'static str) {
        *lock(&self.wire.dropped) = Some(name);
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<(Method, HeaderMap)> {
        std::mem::take(&mut lock(&self.wire.seen))
    }
}

impl Wire {
    fn next(&self, method: &Method) -> Option<Instead> {
        match *method {
            Method::GET => lock(&self.reads).pop_front(),
            Method::PUT => lock(&self.writes).pop_front(),
            _ => None,
        }
    }

    /// The barrier of the creates that are refused, if this is one of them.
    fn refused_create(&self, headers: &HeaderMap) -> Option<Arc<Barrier>> {
        let mut creates = lock(&self.creates);
        let (barrier, left) = creates.as_mut().filter(|_| headers.contains_key(IF_NONE_MATCH))?;
        *left = left.checked_sub(1)?;
        Some(barrier.clone())
    }

    async fn forward(
        &self,
        parts: http::request::Parts,
        body: Bytes,
    ) -> Result<Response<Full<Bytes>>, io::Error> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method;
        *request.uri_mut() = format!("http://{}{path}", self.upstream).parse::<Uri>().unwrap();
        // The host too: it is signed.
        *request.headers_mut() = parts.headers;
        if let Some(name) = *lock(&self.dropped) {
            request.headers_mut().remove(name);
        }
        let answer = self.client.request(request).await.map_err(io::Error::other)?;
        let (mut parts, body) = answer.into_parts();
        parts.headers.remove(TRANSFER_ENCODING);
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(parts, Full::new(body)))
    }
}

async fn serve(listener: TcpListener, wire: Arc<Wire>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let wire = wire.clone();
        let service = service_fn(move |request| answer(request, wire.clone()));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        while connections.try_join_next().is_some() {}
    }
}

/// An error cuts the connection.
async fn answer(request: Request<Incoming>, wire: Arc<Wire>) -> Result<Response<Full<Bytes>>, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    lock(&wire.seen).push((parts.method.clone(), parts.headers.clone()));
    if let Some(barrier) = wire.refused_create(&parts.headers) {
        barrier.wait().await;
        return Ok(told(409, "ConditionalRequestConflict"));
    }
    match wire.next(&parts.method) {
        None => wire.forward(parts, body).await,
        Some(Instead::Answer(status, code)) => Ok(told(status, code)),
        Some(Instead::Silence) => std::future::pending().await,
        Some(Instead::CutBefore) => Err(io::Error::other("cut before")),
        Some(Instead::CutAfter) => {
            let answer = wire.forward(parts, body).await?;
            assert!(answer.status().is_success(), "the write to be lost did not happen: {answer:?}");
            Err(io::Error::other("cut after"))
        }
    }
}

fn told(status: u16, code: &str) -> Response<Full<Bytes>> {
    let document =
        format!("<?xml version='1.0'?><Error><Code>{code}</Code><Message>of the fake</Message></Error>");
    let status = StatusCode::from_u16(status).unwrap();
    Response::builder().status(status).body(Full::new(document.into())).unwrap()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
