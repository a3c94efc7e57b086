//! A small HTTP/1.1 client: one connection per request, so that a test decides when it hangs up.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// No answer of a test takes longer: a server that hangs fails the test instead of stopping it.
const LIMIT: Duration = Duration::from_secs(60);

/// The address of a port on this machine.
pub(crate) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Sends one request and reads the whole answer.
pub(crate) async fn send(to: SocketAddr, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
    tokio::time::timeout(LIMIT, async {
        let stream = TcpStream::connect(to).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async move {
            let (parts, body) = sender.send_request(prepared(to, request)?).await?.into_parts();
            Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
        };
        // One future for both, so that dropping it closes the socket there and then.
        tokio::join!(exchange, connection).0
    })
    .await?
}

/// Sends one request whose answer is not waited for; [`InFlight::hang_up`] closes the connection.
pub(crate) fn send_in_background(to: SocketAddr, request: Request<Bytes>) -> InFlight {
    InFlight(tokio::spawn(send(to, request)))
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct InFlight(JoinHandle<Result<Response<Bytes>, BoxError>>);

impl InFlight {
    /// Closes the connection, as Pub/Sub does at the ack deadline, and waits until it is closed.
    pub(crate) async fn hang_up(self) {
        self.0.abort();
        let ended = self.0.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the answer came before the hang-up");
    }

    /// Waits for the answer after all.
    pub(crate) async fn answer(self) -> Result<Response<Bytes>, BoxError> {
        self.0.await?
    }
}

/// Sends JSON and reads JSON; `null` where the answer has no body.
pub(crate) async fn json(
    to: SocketAddr,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(StatusCode, Value), BoxError> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = send(to, request.body(Bytes::from(body))?).await?;
    let status = answer.status();
    let text = answer.into_body();
    Ok((status, if text.is_empty() { Value::Null } else { serde_json::from_slice(&text)? }))
}

/// Why a request got no answer.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn prepared(to: SocketAddr, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, BoxError> {
    let (mut parts, body) = request.into_parts();
    parts.headers.entry("host").or_insert(to.to_string().parse()?);
    Ok(Request::from_parts(parts, Full::new(body)))
}
