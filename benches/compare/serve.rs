//! This program as one of the servers: a contender on a store, until its standard input is closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::Path;
use axum::routing::post;
use axum::{Json, Router};
use futures_util::future::join_all;
use pushonce::{IdempotentLayer, store};
use serde::Deserialize;
use sqlx::postgres::PgPoolOptions;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::by_hand::{self, Charge};
use crate::contender::Contender;
use crate::load::new_id;
use crate::subject::{self, Bare};

/// Serves the contender of that name on 127.0.0.1; `connections` are the most to a SQL server.
pub(crate) async fn serve(contender: &str, address: &str, port: u16, connections: u32) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    let ended = async {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    // Each by the server that its users would take.
    if contender == Contender::Pushonce.name() {
        let app = pushonce(address, connections);
        return pushonce::serve(app).listener(listener).until(ended).await.expect("a server");
    }
    let app = if contender == Contender::ByHand.name() {
        by_hand(address, connections)
    } else if contender == Contender::Axum.name() {
        Router::new().route("/", post(handle))
    } else if contender == Contender::Envelope.name() {
        Router::new().route("/", post(handle_envelope))
    } else {
        let store = if address.starts_with("postgres") { "postgres" } else { "datastore-emulator" };
        calls(subject::open(store).await.bare)
    };
    axum::serve(listener, app).with_graceful_shutdown(ended).await.expect("a server");
}

/// The same for whoever has a handler of the body.
async fn handle(body: Bytes) {
    assert!(!body.is_empty());
}

/// What no handler can go without that wants to know its message.
async fn handle_envelope(Json(envelope): Json<Envelope>) {
    assert!(!envelope.message.message_id.is_empty() && !envelope.message.data.is_empty());
}

#[derive(Deserialize)]
struct Envelope {
    message: Message,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    /// Not decoded, as in the others.
    data: String,
}

fn pushonce(address: &str, connections: u32) -> Router {
    let is_sql = address.starts_with("postgres");
    let address = if is_sql { format!("{address}&connections={connections}") } else { address.to_owned() };
    let store = store::connect(&address).expect("an address");
    Router::new().route("/", post(handle).layer(IdempotentLayer::new("compare", store)))
}

/// With the pool that our store has: sqlx's own asks the server before each use of a connection.
fn by_hand(address: &str, connections: u32) -> Router {
    let address = address.split('?').next().unwrap_or(address);
    let pool = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
    let charge: Charge = Arc::new(|message| {
        Box::pin(async move {
            assert!(!message.data.is_empty());
            Ok(())
        })
    });
    by_hand::router(pool.connect_lazy(address).expect("an address"), charge)
}

/// The two writes in a handler; and in a loop, of so many at once, for so many milliseconds.
fn calls(bare: Arc<dyn Bare>) -> Router {
    let looped = bare.clone();
    let handler = move |body: Bytes| {
        assert!(!body.is_empty());
        bare.two_writes(new_id())
    };
    let in_a_loop = async move |Path((in_flight, millis)): Path<(usize, u64)>| {
        let (began, time) = (Instant::now(), Duration::from_millis(millis));
        let workers = (0..in_flight).map(|_| {
            let bare = looped.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while began.elapsed() < time {
                    let sent = Instant::now();
                    bare.two_writes(new_id()).await;
                    latencies.push(sent.elapsed());
                }
                latencies
            })
        });
        let done = join_all(workers).await;
        let took = began.elapsed().as_micros();
        let latencies = done.into_iter().flat_map(|worker| worker.expect("the two writes"));
        let micros = latencies.map(|latency| latency.as_micros());
        std::iter::once(took).chain(micros).map(|micros| micros.to_string()).collect::<Vec<_>>().join(" ")
    };
    Router::new().route("/", post(handler)).route("/loop/{in_flight}/{millis}", post(in_a_loop))
}
