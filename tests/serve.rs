//! The shipped server over real sockets: how much it takes, how long it waits, and how it stops.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by a panic, also in what its tests share"
)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::routing::{MethodRouter, any, post};
use axum::{Extension, Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use pushonce::store::Memory;
use pushonce::{Delivery, IdempotentLayer, PubSub, Serve, serve};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// No answer of a test takes longer, on a machine that is busy with others.
const LIMIT: Duration = Duration::from_secs(60);

/// A server, for as long as it lives: it is never told to stop, which would drain the whole process.
struct Running(SocketAddr, JoinHandle<()>);

impl Running {
    async fn of(route: MethodRouter, layer: IdempotentLayer, set: impl FnOnce(Serve) -> Serve) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let app = Router::new().route("/", route.layer(layer));
        let server = set(serve(app).listener(listener).until(std::future::pending()));
        Self(at, tokio::spawn(async move { server.await.unwrap() }))
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.0).await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.1.abort();
    }
}

fn layer() -> IdempotentLayer {
    IdempotentLayer::new("orders", Arc::new(Memory::new()))
}

/// The head of a POST whose connection ends with its answer.
fn head(headers: &str, length: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    )
}

/// All that comes until the connection is closed.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    tokio::time::timeout(LIMIT, stream.read_to_end(&mut text))
        .await
        .expect("the connection is closed")
        .unwrap();
    String::from_utf8(text).unwrap()
}

async fn send(server: &Running, headers: &str, body: &[u8]) -> String {
    let mut stream = server.connect().await;
    stream.write_all(head(headers, body.len()).as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    answer(&mut stream).await
}

/// The status of an answer, and its outcome; empty where it names none.
fn told(answer: &str) -> (u16, &str) {
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer:?}")).parse().unwrap();
    let outcome = answer.lines().find_map(|line| line.strip_prefix("pushonce-outcome: "));
    (status, outcome.unwrap_or_default())
}

/// Attributes of an unwrapped push, with the longest values that Pub/Sub allows.
fn attributes(count: usize) -> String {
    let value = "v".repeat(1024);
    let attributes = (0..count).map(|at| format!("attribute-{at}: {value}\r\n")).collect::<String>();
    format!("x-goog-pubsub-message-id: m\r\n{attributes}")
}

// F19
#[tokio::test]
async fn a_push_with_100_attributes_as_headers_passes() {
    let handler = post(async |delivery: Delivery| {
        let whole = delivery.attributes().filter(|(_, value)| value.len() == 1024).count();
        assert_eq!((whole, delivery.data().unwrap()), (100, Bytes::from("{}")));
    });
    let server = Running::of(handler, layer(), |server| server).await;
    assert_eq!(told(&send(&server, &attributes(100), b"{}").await), (200, "ran"));
    assert_eq!(told(&send(&server, &attributes(100), b"{}").await), (204, "duplicate"));
}

#[tokio::test]
async fn more_headers_than_any_push_has_are_refused() {
    let server = Running::of(post(async || ()), layer(), |server| server).await;
    let many = (0..300).map(|at| format!("a-{at}: b\r\n")).collect::<String>();
    assert_eq!(told(&send(&server, &many, b"").await).0, 431);
    let long = format!("a: {}\r\n", "v".repeat(300 * 1024));
    assert_eq!(told(&send(&server, &long, b"").await).0, 431);
}

// F06
#[tokio::test]
async fn a_message_of_10_mb_passes() {
    let text = format!("\"{}\"", "x".repeat(10_000_000 - 2));
    let body = format!(r#"{{"message":{{"messageId":"m","data":"{}"}}}}"#, BASE64_STANDARD.encode(text));
    let length = body.len();
    let handlers = [
        post(async move |body: Bytes| assert_eq!(body.len(), length)),
        post(async |Json(body): Json<Value>| assert_eq!(body["message"]["messageId"], "m")),
        post(async |PubSub(text): PubSub<String>| assert_eq!(text.len(), 10_000_000 - 2)),
        post(async |Extension(delivery): Extension<Delivery>| {
            assert_eq!(delivery.data().unwrap().len(), 10_000_000);
        }),
    ];
    for handler in handlers {
        let server = Running::of(handler, layer(), |server| server).await;
        let headers = "content-type: application/json\r\n";
        assert_eq!(told(&send(&server, headers, body.as_bytes()).await), (200, "ran"));
    }
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let server =
        Running::of(post(async || ()), layer(), |server| server.header_timeout(Duration::from_millis(100)))
            .await;
    // Silence; what could yet become HTTP/2; half of the headers.
    for sent in ["", "P", "PRI * HTTP/2.0\r\n", "POST / HTTP/1.1\r\nhost: localhost\r\nx-goog"] {
        let mut stream = server.connect().await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        assert!(!answer(&mut stream).await.contains(" 200 "), "{sent:?}");
    }
    // And between two requests.
    let mut stream = server.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(told(&answer(&mut stream).await).0, 405);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_answered_408_and_nothing_is_claimed() {
    let memory = Arc::new(Memory::new());
    let layer = IdempotentLayer::new("orders", memory.clone()).body_timeout(Duration::from_millis(100));
    let server = Running::of(post(async || ()), layer, |server| server).await;
    let mut stream = server.connect().await;
    stream.write_all(head("", 100).as_bytes()).await.unwrap();
    stream.write_all(b"{\"message\":").await.unwrap();
    assert_eq!(told(&answer(&mut stream).await), (408, "refused"));
    assert!(memory.is_empty());
}

// F09
#[tokio::test]
async fn a_body_shorter_than_its_length_claims_nothing() {
    let memory = Arc::new(Memory::new());
    let server = Running::of(post(async || ()), IdempotentLayer::new("orders", memory.clone()), |s| s).await;
    let mut stream = server.connect().await;
    stream.write_all(head("", 1000).as_bytes()).await.unwrap();
    stream.write_all(br#"{"message":{"messageId":"m"}}"#).await.unwrap();
    stream.shutdown().await.unwrap();
    let text = answer(&mut stream).await;
    assert!(text.is_empty() || told(&text) == (400, "refused"), "{text}");
    assert!(memory.is_empty());
}

/// A supplier that says when it is asked, and answers when it is told to.
struct Supplier {
    at: SocketAddr,
    asked: Arc<Notify>,
    release: Arc<Notify>,
}

impl Supplier {
    async fn start() -> Self {
        let (asked, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (ask, released) = (asked.clone(), release.clone());
        let router = Router::new().fallback(any(async move || {
            ask.notify_one();
            released.notified().await;
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { at, asked, release }
    }
}

/// The example `orders` in a process of its own.
struct Orders {
    child: Child,
    at: SocketAddr,
}

impl Orders {
    async fn start(supplier: &Supplier) -> Self {
        let program = tokio::task::spawn_blocking(orders).await.unwrap();
        // Freed again before the process takes it; nothing else on this machine asks for a certain port.
        let at = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let mut child = Command::new(program)
            .env("PORT", at.port().to_string())
            .env("SUPPLIER_URL", format!("http://{}/", supplier.at))
            .env_remove("PUSHONCE_STORE")
            .env_remove("PUSHONCE_DISABLED")
            .env_remove("K_SERVICE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let up = async {
            while TcpStream::connect(at).await.is_err() {
                assert!(child.try_wait().unwrap().is_none(), "orders ended at once");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, up).await.expect("orders listens");
        Self { child, at }
    }

    async fn push(&self) -> TcpStream {
        let body = r#"{"message":{"messageId":"m"}}"#;
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        stream.write_all(format!("{}{body}", head("", body.len())).as_bytes()).await.unwrap();
        stream
    }

    fn term(&self) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    }

    /// Waits until it accepts no connection any more.
    async fn closed(&self) {
        let closed = async {
            while TcpStream::connect(self.at).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, closed).await.expect("it stops accepting");
    }
}

/// Builds the example, which cargo has done already where all tests are run.
fn orders() -> PathBuf {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--example", "orders", "--features", "telemetry"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    if cfg!(feature = "datastore") {
        cargo.arg("--all-features");
    }
    assert!(cargo.status().unwrap().success(), "orders does not build");
    // This test is target/PROFILE/deps/serve-HASH.
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).expect("target/PROFILE").join("examples/orders")
}

// F56
#[tokio::test]
async fn on_sigterm_work_in_flight_ends_and_is_answered_and_an_idle_connection_is_closed() {
    let supplier = Supplier::start().await;
    let mut orders = Orders::start(&supplier).await;
    let mut idle = TcpStream::connect(orders.at).await.unwrap();
    let mut pushed = orders.push().await;
    supplier.asked.notified().await;
    orders.term();
    orders.closed().await;
    assert_eq!(answer(&mut idle).await, "");
    supplier.release.notify_one();
    assert_eq!(told(&answer(&mut pushed).await), (200, "ran"));
    assert!(tokio::time::timeout(LIMIT, orders.child.wait()).await.unwrap().unwrap().success());
}

// F56
#[tokio::test]
async fn on_sigterm_work_that_does_not_end_is_nacked_before_cloud_run_kills() {
    let supplier = Supplier::start().await;
    let mut orders = Orders::start(&supplier).await;
    let mut pushed = orders.push().await;
    supplier.asked.notified().await;
    let began = Instant::now();
    orders.term();
    assert_eq!(told(&answer(&mut pushed).await), (503, "unavailable"));
    assert!(tokio::time::timeout(LIMIT, orders.child.wait()).await.unwrap().unwrap().success());
    let took = began.elapsed();
    assert!((Duration::from_secs(6)..Duration::from_secs(10)).contains(&took), "{took:?}");
}
