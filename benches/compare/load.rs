//! The load: pushes of 1 KiB over connections that are kept, each connection with one in flight.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Of a message's data, as it is sent.
const DATA: usize = 1024;
/// A server that answers later stands still.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to send, and when to stop: at whichever comes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) port: u16,
    pub(crate) in_flight: usize,
    pub(crate) messages: u64,
    pub(crate) time: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// How long each message took that was answered 200, the shortest first.
    pub(crate) latencies: Vec<Duration>,
    /// Those that were answered otherwise.
    pub(crate) refused: u64,
    pub(crate) took: Duration,
}

impl Load {
    pub(crate) async fn send(self) -> Loaded {
        let left = Arc::new(AtomicU64::new(self.messages));
        let began = Instant::now();
        let mut connections = JoinSet::new();
        for _ in 0..self.in_flight {
            connections.spawn(self.over_one_connection(left.clone(), began));
        }
        let mut loaded = Loaded::default();
        while let Some(done) = connections.join_next().await {
            let part = done.expect("a connection does not panic");
            loaded.latencies.extend(part.latencies);
            loaded.refused += part.refused;
        }
        loaded.took = began.elapsed();
        loaded.latencies.sort_unstable();
        loaded
    }

    async fn over_one_connection(self, left: Arc<AtomicU64>, began: Instant) -> Loaded {
        let mut loaded = Loaded::default();
        let mut connection = Connection::open(self.port).await;
        let next = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        while began.elapsed() < self.time && next().is_ok() {
            let sent = Instant::now();
            match connection.push(new_id()).await {
                200 => loaded.latencies.push(sent.elapsed()),
                _ => loaded.refused += 1,
            }
        }
        loaded
    }
}

impl Loaded {
    /// Messages a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }

    /// Which latency that part of the messages did not exceed.
    pub(crate) fn percentile(&self, part: f64) -> Duration {
        let rank = (self.latencies.len() as f64 * part).ceil() as usize;
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// An id that nobody has used, as long as one of Pub/Sub's.
pub(crate) fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_micros();
    let _ = NEXT.compare_exchange(0, now() as u64, Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One connection, which is opened again where the server has closed it.
pub(crate) struct Connection {
    port: u16,
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    data: String,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Self {
        let stream = dial(port).await;
        Self { port, stream, request: Vec::new(), answer: Vec::new(), data: "e".repeat(DATA) }
    }

    /// Pushes the message of that id; the status that it was answered with.
    pub(crate) async fn push(&mut self, id: u64) -> u16 {
        let data = &self.data;
        let body = format!(
            r#"{{"message":{{"data":"{data}","messageId":"{id}","message_id":"{id}","publishTime":"2026-01-04T00:00:00.1Z","publish_time":"2026-01-04T00:00:00.1Z"}},"subscription":"projects/p1/subscriptions/orders"}}"#
        );
        self.post("/", &body).await.0
    }

    /// Status and body of the answer.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: APIs-Google\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(body.as_bytes());
        let answer = tokio::time::timeout(PATIENCE, self.exchange()).await;
        let (head, body) = answer.expect("an answer in time");
        if head.closes {
            self.stream = dial(self.port).await;
        }
        (head.status, body)
    }

    /// Sends the request, and reads the whole answer: its head and its body.
    async fn exchange(&mut self) -> (Head, String) {
        self.stream.write_all(&self.request).await.expect("a server that reads");
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await.expect("a server that answers");
            assert!(read > 0, "the server has closed the connection: {}", text(&self.answer));
            let Some(end) = self.answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let (head, body) = (Head::parse(&text(&self.answer[..end])), &self.answer[end + 4..]);
            if body.len() == head.body {
                return (head, text(body).into_owned());
            }
        }
    }
}

async fn dial(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a server that listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

struct Head {
    status: u16,
    closes: bool,
    /// How long the body is.
    body: usize,
}

impl Head {
    fn parse(head: &str) -> Self {
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status line");
        let named = |name: &str| {
            let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
            lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        let closes = named("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let body = named("content-length").map(|value| value.parse().expect("a length"));
        assert!(body.is_some() || status == 204, "an answer whose length is not told: {head}");
        Self { status, closes, body: body.unwrap_or(0) }
    }
}
