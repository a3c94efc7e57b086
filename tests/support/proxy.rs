//! A proxy between a store and its server: it counts round trips, and loses or holds what a test marks.
//!
//! What it counts is what went over the wire, whatever the client believes. A marker is a part of the
//! record's document, which every store sends in clear.

#[path = "pieces.rs"]
mod pieces;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

pub(crate) use self::pieces::Speech;
use self::pieces::{DATA, HEADERS, PREFACE, Piece};

/// How a pool of sqlx proves that a connection which was given back is well, on PostgreSQL (Sync alone)
/// and on MySQL (COM_PING). Nobody waits for it, so it is no trip of the store's.
const PROOFS: [&[u8]; 2] = [&[b'S', 0, 0, 0, 4], &[1, 0, 0, 0, 14]];

/// What happens to the request that has the marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The connection is dropped instead of passing it on.
    CutBefore,
    /// It is passed on, and the connection is dropped when its answer begins.
    CutAfter,
    /// It is kept, and passed on when the test says so, whether or not its client is there still.
    Hold,
    /// It is passed on, and its answer is kept until the test says so.
    HoldAnswer,
}

/// How the way to the server is, for all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Nothing is passed on, either way.
    Silent,
    /// No connection lasts.
    Down,
}

/// The proxy. It ends when dropped, and every connection with it.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    wire: Arc<Wire>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct Wire {
    upstream: String,
    speech: Speech,
    trips: AtomicUsize,
    connections: AtomicUsize,
    fault: Mutex<Option<(Fault, String)>>,
    way: watch::Sender<Way>,
    go_on: Notify,
    landed: Notify,
}

impl Proxy {
    /// A proxy on a free loopback port, in front of `upstream` (`host:port`).
    pub(crate) async fn start(upstream: &str, speech: Speech) -> io::Result<Self> {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await?, upstream, speech)
    }

    /// A proxy on that listener.
    pub(crate) fn start_on(listener: TcpListener, upstream: &str, speech: Speech) -> io::Result<Self> {
        let wire = Arc::new(Wire {
            upstream: upstream.to_owned(),
            speech,
            trips: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            fault: Mutex::new(None),
            way: watch::Sender::new(Way::Open),
            go_on: Notify::new(),
            landed: Notify::new(),
        });
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, wire.clone()));
        Ok(Self { address, wire, _serving: serving })
    }

    /// Its own address, as `host:port`.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The round trips since the last call, of all connections, that somebody waited for.
    pub(crate) fn take(&self) -> usize {
        self.wire.trips.swap(0, Ordering::SeqCst)
    }

    /// The connections that were ever made.
    pub(crate) fn connections(&self) -> usize {
        self.wire.connections.load(Ordering::SeqCst)
    }

    /// Drops the connection instead of passing on the next request with that marker: it is never carried out.
    /// Every request has the empty marker.
    pub(crate) fn cut_before(&self, marker: impl Into<String>) {
        self.wire.set(Fault::CutBefore, marker);
    }

    /// Passes the next request with that marker on and drops the connection when its answer begins: it was carried out.
    pub(crate) fn cut_after(&self, marker: impl Into<String>) {
        self.wire.set(Fault::CutAfter, marker);
    }

    /// Keeps the next request with that marker, and what follows on its connection, until [`Proxy::go_on`].
    pub(crate) fn hold(&self, marker: impl Into<String>) {
        self.wire.set(Fault::Hold, marker);
    }

    /// Passes the next request with that marker on, and keeps its answer, and what follows on its connection,
    /// until [`Proxy::go_on`].
    pub(crate) fn hold_answer(&self, marker: impl Into<String>) {
        self.wire.set(Fault::HoldAnswer, marker);
    }

    /// Passes nothing on any more, either way, and keeps what comes.
    pub(crate) fn fall_silent(&self) {
        self.wire.way.send_replace(Way::Silent);
    }

    /// Drops every connection, and new ones as they come.
    pub(crate) fn go_down(&self) {
        self.wire.way.send_replace(Way::Down);
    }

    /// Passes on what was kept and what comes.
    pub(crate) fn come_back(&self) {
        self.wire.way.send_replace(Way::Open);
    }

    /// Passes on what is kept, and waits until the server has answered it or dropped it.
    pub(crate) async fn go_on(&self) {
        assert!(!self.is_waiting(), "nothing is kept: the marked request has not come");
        self.wire.go_on.notify_one();
        self.wire.landed.notified().await;
    }

    /// Whether the marked request is still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.wire.fault.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Wire {
    fn set(&self, fault: Fault, marker: impl Into<String>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some((fault, marker.into()));
    }

    /// Ends when the way is one of those.
    async fn until(&self, ways: &[Way]) {
        // An error means that the proxy is gone, and what carries the connection with it.
        let _ = self.way.subscribe().wait_for(|way| ways.contains(way)).await;
    }

    /// What is to happen to these bytes, once.
    fn fault_of(&self, bytes: &[u8]) -> Option<Fault> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        // Some documents are laid out for people.
        let bytes: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let has = |marker: &str| {
            marker.is_empty() || bytes.windows(marker.len()).any(|some| some == marker.as_bytes())
        };
        fault.take_if(|(_, marker)| has(marker)).map(|(fault, _)| fault)
    }
}

async fn serve(listener: TcpListener, wire: Arc<Wire>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await?;
        wire.connections.fetch_add(1, Ordering::SeqCst);
        connections.spawn(carry(client, wire.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// What both directions of one connection know of it.
#[derive(Default)]
struct Connection {
    /// Whether the client has spoken last.
    asked: AtomicBool,
    /// The stream whose answer is to be lost; those of HTTP/2 begin with 1.
    doomed: AtomicU32,
    /// Whether that answer is only kept for a while.
    kept: AtomicBool,
    /// Whether a request of it, or an answer, was kept and passed on late.
    late: AtomicBool,
}

/// Carries one connection until one side ends it; both sockets are then dropped.
async fn carry(client: TcpStream, wire: Arc<Wire>) -> io::Result<()> {
    if *wire.way.borrow() == Way::Down {
        return Ok(());
    }
    let server = TcpStream::connect(&wire.upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let connection = Connection::default();
    let ended = tokio::select! {
        ended = requests(from_client, to_server, &wire, &connection) => ended,
        ended = answers(from_server, to_client, &wire, &connection) => ended,
        () = wire.until(&[Way::Down]) => Ok(()),
    };
    if connection.late.load(Ordering::SeqCst) {
        wire.landed.notify_one();
    }
    ended
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wire: &Wire,
    connection: &Connection,
) -> io::Result<()> {
    if wire.speech == Speech::Streams {
        let mut preface = [0; PREFACE];
        from.read_exact(&mut preface).await?;
        to.write_all(&preface).await?;
    }
    // Of a client's streams each has a higher number than the one before (RFC 9113, 5.1.1).
    let mut newest = 0;
    // A marker may come in two pieces.
    let mut seen = Vec::new();
    loop {
        let piece = Piece::read(&mut from, wire.speech).await?;
        let is_request = match wire.speech {
            Speech::Turns => !connection.asked.swap(true, Ordering::SeqCst),
            Speech::Streams => piece.kind == HEADERS && piece.stream > newest,
        };
        if is_request {
            newest = piece.stream;
            seen.clear();
        }
        let is_proof = PROOFS.contains(&&*piece.bytes);
        if is_request && !is_proof {
            wire.trips.fetch_add(1, Ordering::SeqCst);
        }
        if piece.kind == DATA && !is_proof {
            seen.extend_from_slice(&piece.bytes);
            match wire.fault_of(&seen) {
                Some(Fault::CutBefore) => return Ok(()),
                Some(Fault::CutAfter) => connection.doomed.store(piece.stream, Ordering::SeqCst),
                Some(Fault::Hold) => {
                    wire.go_on.notified().await;
                    connection.late.store(true, Ordering::SeqCst);
                }
                Some(Fault::HoldAnswer) => {
                    connection.kept.store(true, Ordering::SeqCst);
                    connection.doomed.store(piece.stream, Ordering::SeqCst);
                    connection.late.store(true, Ordering::SeqCst);
                }
                None => {}
            }
        }
        wire.until(&[Way::Open]).await;
        to.write_all(&piece.bytes).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wire: &Wire,
    connection: &Connection,
) -> io::Result<()> {
    loop {
        let piece = Piece::read(&mut from, wire.speech).await?;
        connection.asked.store(false, Ordering::SeqCst);
        let begins = wire.speech == Speech::Turns || piece.kind == HEADERS;
        if begins && piece.stream == connection.doomed.load(Ordering::SeqCst) {
            if !connection.kept.swap(false, Ordering::SeqCst) {
                return Ok(());
            }
            connection.doomed.store(0, Ordering::SeqCst);
            wire.go_on.notified().await;
        }
        if begins && connection.late.swap(false, Ordering::SeqCst) {
            wire.landed.notify_one();
        }
        wire.until(&[Way::Open]).await;
        to.write_all(&piece.bytes).await?;
    }
}
