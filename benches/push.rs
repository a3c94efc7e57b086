//! What the layer costs: a handler that reads its body as `Bytes`, bare axum against the layer on `Memory`.
//!
//! One run, two server processes that take turns, the load from this process. Printed: requests per
//! second and server CPU per request, as ratios of bare axum (at least 0.80 at 1 KiB), and how many
//! copies of a 10 MB body are held at the peak (at most 3). Judged by a reader: the machine is shared.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::{Router, routing::post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushonce::store::Memory;
use pushonce::{IdempotentLayer, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ROUNDS: usize = 5;
const CONNECTIONS: usize = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match arguments.iter().position(|argument| argument == "--serve") {
        Some(at) => runtime.block_on(serve(&arguments[at + 1])),
        None => runtime.block_on(compare()),
    }
}

/// One server process: prints its port, then serves until its standard input is closed.
async fn serve(kind: &str) {
    let route = post(|body: Bytes| async move { assert!(!body.is_empty()) });
    let route = match kind {
        "bare" => route.layer(DefaultBodyLimit::disable()),
        _ => {
            let store: Arc<dyn Store> = Arc::new(Memory::new());
            route.layer(IdempotentLayer::new("bench", store))
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let ended = async {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    let app = Router::new().route("/", route);
    pushonce::serve(app).listener(listener).until(ended).await.unwrap();
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(kind: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--serve", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    /// User and system time so far, in clock ticks of 10 ms.
    fn cpu(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The name in brackets may hold anything; the numbers follow it.
        let after = stat.rsplit_once(')').unwrap().1;
        after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// The peak of its resident memory, in bytes.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

async fn compare() {
    for (name, size, count) in [("1 KiB", 1024, 40_000), ("1 MiB", 1024 * 1024, 400)] {
        let (bare, layer) = (Server::start("bare"), Server::start("layer"));
        let data = STANDARD.encode(vec![b'z'; size * 3 / 4]);
        // One round that is not counted.
        for server in [&bare, &layer] {
            load(server.port, &data, count / 10).await;
        }
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (bare_rate, bare_cost) = measured(&bare, &data, count).await;
            let (layer_rate, layer_cost) = measured(&layer, &data, count).await;
            println!(
                "{name}: bare {bare_rate:9.0}/s {bare_cost:8.1} us CPU each   layer {layer_rate:9.0}/s {layer_cost:8.1} us CPU each"
            );
            rates.push(layer_rate / bare_rate);
            costs.push(bare_cost / layer_cost);
        }
        println!(
            "{name}: of bare axum, median of {ROUNDS} rounds: requests per second {:.2}, requests per CPU second {:.2}",
            median(&mut rates),
            median(&mut costs)
        );
    }
    let server = Server::start("layer");
    load(server.port, &STANDARD.encode([0; 768]), 100).await;
    let (before, body) = (server.peak(), STANDARD.encode(vec![0; 10_000_000]));
    load_over(server.port, &body, 1, 1).await;
    let copies = server.peak().saturating_sub(before) as f64 / body.len() as f64;
    println!("10 MB message that nobody decodes: {copies:.2} copies of its body at the peak (limit 3)");
    assert!(copies <= 3.0, "{copies:.2} copies of a body at the peak");
}

async fn measured(server: &Server, data: &str, count: u64) -> (f64, f64) {
    let (cpu, began) = (server.cpu(), Instant::now());
    load(server.port, data, count).await;
    let seconds = began.elapsed().as_secs_f64();
    (count as f64 / seconds, (server.cpu() - cpu) as f64 * 10_000.0 / count as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn load(port: u16, data: &str, count: u64) {
    load_over(port, data, count, CONNECTIONS).await;
}

/// Sends `count` pushes, each with an id of its own, over a few connections.
async fn load_over(port: u16, data: &str, count: u64, connections: usize) {
    static IDS: AtomicU64 = AtomicU64::new(1);
    let left = Arc::new(AtomicU64::new(count));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (left, data) = (left.clone(), data.to_owned());
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut answer = [0; 4096];
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let id = IDS.fetch_add(1, Ordering::Relaxed);
                let body = format!(
                    r#"{{"message":{{"data":"{data}","messageId":"{id}","message_id":"{id}","publishTime":"2026-01-04T00:00:00.1Z","publish_time":"2026-01-04T00:00:00.1Z"}},"subscription":"projects/p/subscriptions/s"}}"#
                );
                let head = format!(
                    "POST / HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(body.as_bytes()).await.unwrap();
                let read = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut answer)).await.unwrap().unwrap();
                assert!(answer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..read]));
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
