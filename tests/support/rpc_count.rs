//! A proxy that counts the requests on HTTP/2 connections without TLS, and loses answers on demand.
//!
//! It stands between a client and a real server and reads frame headers only, so what it counts is what
//! went over the wire, whatever the client believes.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PREFACE: usize = 24;
const FRAME_HEADER: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;

/// The proxy. It ends when dropped, and every connection with it.
#[derive(Debug)]
pub(crate) struct RpcCount {
    address: SocketAddr,
    wire: Arc<Wire>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct Wire {
    upstream: String,
    requests: AtomicUsize,
    connections: AtomicUsize,
    cut: Mutex<Option<Cut>>,
    passing: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    BeforeWrite,
    AfterWrite,
}

impl RpcCount {
    /// A proxy on a free loopback port, in front of `upstream` (`host:port`).
    pub(crate) async fn start(upstream: &str) -> io::Result<Self> {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await?, upstream)
    }

    /// A proxy on that listener.
    pub(crate) fn start_on(listener: TcpListener, upstream: &str) -> io::Result<Self> {
        let wire = Arc::new(Wire {
            upstream: upstream.to_owned(),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            cut: Mutex::new(None),
            passing: AtomicUsize::new(0),
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

    /// The requests since the last call, of all connections.
    pub(crate) fn take(&self) -> usize {
        self.wire.requests.swap(0, Ordering::SeqCst)
    }

    /// The connections that were ever made.
    pub(crate) fn connections(&self) -> usize {
        self.wire.connections.load(Ordering::SeqCst)
    }

    /// Forwards so many commits before the next cut is made.
    pub(crate) fn let_pass(&self, commits: usize) {
        self.wire.passing.store(commits, Ordering::SeqCst);
    }

    /// Drops the connection instead of forwarding the next commit: the write never happens.
    pub(crate) fn cut_before_next_write(&self) {
        self.wire.cut(Cut::BeforeWrite);
    }

    /// Forwards the next commit and drops the connection when its answer begins: the write has happened.
    pub(crate) fn cut_after_next_write(&self) {
        self.wire.cut(Cut::AfterWrite);
    }
}

impl Wire {
    /// Whether this commit is one of those that pass before a cut.
    fn passes(&self) -> bool {
        self.passing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    fn cut(&self, cut: Cut) {
        *self.cut.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    fn take_cut(&self) -> Option<Cut> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).take()
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

/// Carries one connection until one side ends it; both sockets are then dropped.
async fn carry(client: TcpStream, wire: Arc<Wire>) -> io::Result<()> {
    let server = TcpStream::connect(&wire.upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // The stream whose answer is to be lost; no request has the number zero.
    let doomed = AtomicU32::new(0);
    tokio::select! {
        ended = requests(from_client, to_server, &wire, &doomed) => ended,
        ended = answers(from_server, to_client, &doomed) => ended,
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wire: &Wire,
    doomed: &AtomicU32,
) -> io::Result<()> {
    let mut preface = [0; PREFACE];
    from.read_exact(&mut preface).await?;
    to.write_all(&preface).await?;
    // Of a client's streams each has a higher number than the one before (RFC 9113, 5.1.1).
    let (mut newest, mut undecided) = (0, 0);
    loop {
        let frame = Frame::read(&mut from).await?;
        if frame.kind == HEADERS && frame.stream > newest {
            newest = frame.stream;
            undecided = frame.stream;
            wire.requests.fetch_add(1, Ordering::SeqCst);
        }
        // The first data frame of a request tells what it is; requests of one connection come one after another.
        if frame.kind == DATA && frame.stream == undecided {
            undecided = 0;
            if is_commit(frame.payload()) && !wire.passes() {
                match wire.take_cut() {
                    Some(Cut::BeforeWrite) => return Ok(()),
                    Some(Cut::AfterWrite) => doomed.store(frame.stream, Ordering::SeqCst),
                    None => {}
                }
            }
        }
        to.write_all(&frame.bytes).await?;
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, doomed: &AtomicU32) -> io::Result<()> {
    loop {
        let frame = Frame::read(&mut from).await?;
        if frame.kind == HEADERS && frame.stream == doomed.load(Ordering::SeqCst) {
            return Ok(());
        }
        to.write_all(&frame.bytes).await?;
    }
}

struct Frame {
    kind: u8,
    stream: u32,
    bytes: Vec<u8>,
}

impl Frame {
    async fn read(from: &mut OwnedReadHalf) -> io::Result<Self> {
        let mut bytes = vec![0; FRAME_HEADER];
        from.read_exact(&mut bytes).await?;
        let length = usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
        let stream = u32::from_be_bytes([bytes[5] & 0x7f, bytes[6], bytes[7], bytes[8]]);
        let kind = bytes[3];
        bytes.resize(FRAME_HEADER + length, 0);
        from.read_exact(&mut bytes[FRAME_HEADER..]).await?;
        Ok(Self { kind, stream, bytes })
    }

    fn payload(&self) -> &[u8] {
        &self.bytes[FRAME_HEADER..]
    }
}

/// Whether a gRPC message is a Datastore commit. Its path is compressed and may be a reference, so the
/// message tells: a commit has its mode, a number in field 5, before its mutations, and a lookup has none.
fn is_commit(message: &[u8]) -> bool {
    let mut rest = message.get(5..).unwrap_or_default();
    while let Some((tag, after)) = varint(rest) {
        rest = match (tag >> 3, tag & 7) {
            (5, 0) => return true,
            (_, 2) => match varint(after).and_then(|(length, after)| after.get(length..)) {
                Some(after) => after,
                None => return false,
            },
            _ => return false,
        };
    }
    false
}

fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).filter(|end| *end < 5)?;
    let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    Some((value, &bytes[end + 1..]))
}
