//! A fake Datastore: a gRPC server that gives the answers it was told to, one after another.
//!
//! It keeps nothing and decides nothing. It is for what no emulator can show: permanent faults, outages
//! at a chosen moment, and what exactly was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{BufMut as _, Bytes, BytesMut};
use gcloud_sdk::google::datastore::v1::{CommitResponse, LookupResponse};
use gcloud_sdk::prost::Message;
use gcloud_sdk::tonic::Code;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What it answers to one call.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Lookup(LookupResponse),
    Commit(CommitResponse),
    Status(Code, &'static str),
    /// Nothing, ever.
    Silence,
}

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    message: Bytes,
}

impl Asked {
    pub(crate) fn message<M: Message + Default>(&self) -> M {
        M::decode(self.message.clone()).unwrap()
    }
}

/// The fake. It ends when dropped.
#[derive(Debug)]
pub(crate) struct FakeDatastore {
    address: SocketAddr,
    script: Arc<Script>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
}

impl FakeDatastore {
    /// A fake on a free loopback port. Calls beyond the last answer are UNIMPLEMENTED.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answers = Mutex::new(answers.into_iter().collect());
        let script = Arc::new(Script { answers, asked: Mutex::default(), connections: AtomicUsize::new(0) });
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, script.clone()));
        Self { address, script, _serving: serving }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        lock(&self.script.asked).clone()
    }

    /// The connections that were ever made.
    pub(crate) fn connections(&self) -> usize {
        self.script.connections.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, script: Arc<Script>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        script.connections.fetch_add(1, Ordering::SeqCst);
        let script = script.clone();
        let service = service_fn(move |request| answer(request, script.clone()));
        connections
            .spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    script: Arc<Script>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let message = body.collect().await?.to_bytes();
    lock(&script.asked).push(Asked {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        // Behind one byte for compression and four for the length.
        message: message.slice(5..),
    });
    let next = lock(&script.answers).pop_front();
    let (message, code, said) =
        match next.unwrap_or(Answer::Status(Code::Unimplemented, "the script is at its end")) {
            Answer::Lookup(message) => (Some(framed(&message)), Code::Ok, ""),
            Answer::Commit(message) => (Some(framed(&message)), Code::Ok, ""),
            Answer::Status(code, said) => (None, code, said),
            Answer::Silence => std::future::pending().await,
        };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code as i32));
    trailers.insert("grpc-message", HeaderValue::from_static(said));
    let frames = message.map(Frame::data).into_iter().chain([Frame::trailers(trailers)]).map(Ok);
    let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    Ok(response)
}

fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut bytes).unwrap();
    bytes.freeze()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
