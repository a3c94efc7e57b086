//! The contenders of a store under load, in rounds in which they take turns.

use std::time::Duration;

use crate::contender::{Contender, Store, Workers};
use crate::entry::Entry;
use crate::load::{Connection, Load, Loaded};
use crate::process::Server;

pub(crate) const IN_FLIGHT: [usize; 3] = [1, 16, 64];

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Turns of each contender.
    pub(crate) rounds: usize,
    /// Of a turn.
    pub(crate) window: Duration,
    /// How often a server is started to see how long that takes.
    pub(crate) starts: usize,
    /// After so many messages memory is read.
    pub(crate) messages: u64,
}

impl Plan {
    /// The whole of it at 1, which is a quarter of an hour, and as much less of everything below.
    pub(crate) fn of(scale: f64) -> Self {
        let rounds = (7.0 * scale).round() as usize;
        let messages = (2_000.0 * scale) as u64;
        Self {
            rounds: rounds.max(2),
            window: Duration::from_secs(2).mul_f64(scale).max(Duration::from_millis(40)),
            starts: ((3.0 * scale).round() as usize).max(1),
            messages: messages.max(20),
        }
    }
}

/// One turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) store: Store,
    pub(crate) contender: Contender,
    pub(crate) in_flight: usize,
    /// Messages a second.
    pub(crate) rate: f64,
    /// p50, p95, p99.
    pub(crate) latency: [Duration; 3],
    /// The server's CPU time for each message.
    pub(crate) cpu: Duration,
    /// Not answered 200.
    pub(crate) refused: u64,
}

/// How fast the peer is with each of the settings tried, the fastest first.
pub(crate) async fn workers(store: Store, plan: Plan) -> Vec<(Workers, f64)> {
    let mut rates = Vec::new();
    for workers in Workers::tried(store) {
        forget(store).await;
        let server = Entry::new(Contender::Peer, store, workers).start().await;
        let load = Load { port: server.port, in_flight: 16, messages: u64::MAX, time: plan.window };
        load.send().await;
        rates.push((workers, load.send().await.rate()));
    }
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    rates
}

/// The contenders of a store in turns, with so many in flight, on servers that are new.
pub(crate) async fn turns(store: Store, in_flight: usize, workers: Workers, plan: Plan) -> Vec<Turn> {
    forget(store).await;
    let mut servers = Vec::new();
    for contender in store.contenders() {
        let server = Entry::new(*contender, store, workers).start().await;
        turn(*contender, &server, in_flight, plan.window / 4).await;
        servers.push((*contender, server));
    }
    let mut turns = Vec::new();
    for _ in 0..plan.rounds {
        for (contender, server) in &servers {
            let before = server.cpu();
            let loaded = turn(*contender, server, in_flight, plan.window).await;
            let messages = u32::try_from(loaded.latencies.len()).expect("not so many").max(1);
            turns.push(Turn {
                store,
                contender: *contender,
                in_flight,
                rate: loaded.rate(),
                latency: [0.5, 0.95, 0.99].map(|part| loaded.percentile(part)),
                cpu: (server.cpu() - before) / messages,
                refused: loaded.refused,
            });
        }
    }
    turns
}

async fn turn(contender: Contender, server: &Server, in_flight: usize, time: Duration) -> Loaded {
    if contender != Contender::Loop {
        return Load { port: server.port, in_flight, messages: u64::MAX, time }.send().await;
    }
    let path = format!("/loop/{in_flight}/{}", time.as_millis());
    let (_, answer) = Connection::open(server.port).await.post(&path, "{}").await;
    let mut micros = answer.split(' ').map(|micros| Duration::from_micros(micros.parse().expect("a number")));
    let took = micros.next().expect("how long it took");
    let mut latencies: Vec<Duration> = micros.collect();
    latencies.sort_unstable();
    Loaded { latencies, refused: 0, took }
}

/// An emulator keeps all in memory, and would be slower with each turn.
pub(crate) async fn forget(store: Store) {
    if store == Store::Datastore {
        let host = store.host().expect("a server");
        let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
        let (status, _) = Connection::open(port).await.post("/reset", "").await;
        assert_eq!(status, 200, "the emulator does not forget");
    }
}

pub(crate) fn median<T: PartialOrd + Copy>(mut sample: Vec<T>) -> T {
    sample.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    sample[sample.len() / 2]
}
