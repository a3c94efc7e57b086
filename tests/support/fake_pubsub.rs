//! A fake Pub/Sub: a gRPC server that counts what is published, and answers as it was told to.
//!
//! It keeps nothing. It is for what the emulator cannot show: errors at a chosen moment, and how often a
//! message really went over the wire.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{BufMut as _, Bytes, BytesMut};
use gcloud_sdk::tonic::Code;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What it answers to one publish.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// Published, under this id.
    Id(&'static str),
    Status(Code),
    /// The stream is reset instead of an answer.
    Reset,
    /// Nothing, ever.
    Silence,
}

/// A publish that came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Bytes,
}

/// The fake. It ends when dropped.
#[derive(Debug)]
pub(crate) struct FakePubSub {
    address: SocketAddr,
    script: Arc<Script>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: watch::Sender<Vec<Asked>>,
}

impl FakePubSub {
    /// A fake on a free loopback port. Publishes beyond the last answer succeed.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), answers)
    }

    /// A fake on that listener.
    pub(crate) fn start_on(listener: TcpListener, answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect());
        let script = Arc::new(Script { answers, asked: watch::Sender::default() });
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, script.clone()));
        Self { address, script, _serving: serving }
    }

    /// Its address, `host:port`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.borrow().clone()
    }

    /// Ends when so much was asked.
    pub(crate) async fn was_asked(&self, times: usize) {
        drop(self.script.asked.subscribe().wait_for(|asked| asked.len() >= times).await);
    }
}

async fn serve(listener: TcpListener, script: Arc<Script>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        let script = script.clone();
        let service = service_fn(move |request| answer(request, script.clone()));
        connections
            .spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    script: Arc<Script>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = io::Error>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let message = body.collect().await?.to_bytes();
    let path = parts.uri.path().to_owned();
    // Behind one byte for compression and four for the length.
    let asked = Asked { path, headers: parts.headers, message: message.slice(5..) };
    let next = lock(&script.answers).pop_front();
    script.asked.send_modify(|all| all.push(asked));
    let mut trailers = HeaderMap::new();
    let frames = match next.unwrap_or(Answer::Id("beyond the script")) {
        Answer::Id(id) => {
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            vec![Ok(Frame::data(published(id))), Ok(Frame::trailers(trailers))]
        }
        Answer::Status(code) => {
            trailers.insert("grpc-status", HeaderValue::from(code as i32));
            trailers.insert("grpc-message", HeaderValue::from_static("as the script says"));
            vec![Ok(Frame::trailers(trailers))]
        }
        Answer::Reset => vec![Err(io::Error::other("reset"))],
        Answer::Silence => std::future::pending().await,
    };
    let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    Ok(response)
}

/// A `PublishResponse`, whose first field is the ids, in its frame.
fn published(id: &str) -> Bytes {
    let length = u8::try_from(id.len()).unwrap();
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::from(length) + 2);
    bytes.put_u8(0x0a);
    bytes.put_u8(length);
    bytes.put_slice(id.as_bytes());
    bytes.freeze()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
