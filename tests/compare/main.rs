//! What the comparison stands on: that the hand-written handler does what it says, and that the load counts right.
#![cfg(test)]

#[path = "../../benches/by_hand.rs"]
#[expect(dead_code, reason = "it is a program too")]
mod by_hand;
#[path = "../../benches/compare/load.rs"]
mod load;
#[path = "../support/report.rs"]
mod report;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use axum::{Json, Router, routing::post};
use serde_json::Value;
use sqlx::PgPool;

use crate::by_hand::Charge;
use crate::load::{Connection, Load, new_id};

/// Whatever is served, ends with the test.
async fn serve(app: Router) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async { axum::serve(listener, app).await });
    port
}

#[tokio::test]
async fn by_hand_a_message_is_charged_once_and_a_failure_is_not_recorded() {
    let pool = PgPool::connect(&std::env::var("PUSHONCE_TEST_POSTGRES").unwrap()).await.unwrap();
    by_hand::create_table(&pool).await.unwrap();
    let charged = Arc::new(AtomicUsize::new(0));
    let seen = charged.clone();
    let charge: Charge = Arc::new(move |message| {
        assert_eq!(message.data.len(), 1024);
        let is_first = seen.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move { if is_first { Err("the vendor is away".into()) } else { Ok(()) } })
    });
    let mut connection = Connection::open(serve(by_hand::router(pool.clone(), charge)).await).await;

    let id = new_id();
    let answers = [connection.push(id).await, connection.push(id).await, connection.push(id).await];

    assert_eq!(answers, [500, 200, 204]);
    assert_eq!(charged.load(Ordering::SeqCst), 2, "the duplicate was not charged");
    let done = "SELECT done_at IS NOT NULL FROM processed_messages WHERE message_id = $1";
    let is_done: bool = sqlx::query_scalar(done).bind(id.to_string()).fetch_one(&pool).await.unwrap();
    assert!(is_done);
    report::test("postgres", "by_hand_a_message_is_charged_once_and_a_failure_is_not_recorded");
}

/// Answers every fourth message otherwise, and remembers whose they were.
fn counting(ids: Arc<Mutex<Vec<String>>>) -> Router {
    let receive = move |Json(push): Json<Value>| async move {
        let mut ids = ids.lock().unwrap();
        ids.push(push["message"]["messageId"].as_str().unwrap().to_owned());
        match ids.len() % 4 {
            0 => (StatusCode::SERVICE_UNAVAILABLE, "later"),
            _ => (StatusCode::OK, ""),
        }
    };
    Router::new().route("/", post(receive))
}

#[tokio::test]
async fn the_load_sends_each_message_once_and_counts_what_was_refused() {
    for in_flight in [1, 16] {
        let ids = Arc::new(Mutex::new(Vec::new()));
        let port = serve(counting(ids.clone())).await;

        let loaded = Load { port, in_flight, messages: 400, time: Duration::from_secs(60) }.send().await;

        let ids = ids.lock().unwrap();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 400, "no id twice");
        assert_eq!((ids.len(), loaded.latencies.len(), loaded.refused), (400, 300, 100));
        assert!(loaded.latencies.is_sorted());
        assert_eq!(loaded.percentile(1.0), loaded.latencies[299]);
        assert_eq!(loaded.percentile(0.5), loaded.latencies[149]);
        assert!(loaded.took >= loaded.percentile(1.0) && loaded.rate() > 0.0);
    }
}

#[tokio::test]
async fn the_load_ends_when_its_time_is_over() {
    let port = serve(counting(Arc::default())).await;

    let loaded =
        Load { port, in_flight: 2, messages: u64::MAX, time: Duration::from_millis(50) }.send().await;

    assert!(!loaded.latencies.is_empty());
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_opened_again() {
    let closing = || async { ([("connection", "close")], "ok") };
    let mut connection = Connection::open(serve(Router::new().route("/", post(closing))).await).await;

    assert_eq!([connection.push(new_id()).await, connection.push(new_id()).await], [200, 200]);
}

#[test]
fn the_page_has_a_place_for_the_figures() {
    let page = include_str!("../../docs/benchmarks.md");
    let places =
        ["<!-- compare:begin -->", "<!-- compare:end -->"].map(|marker| page.split(marker).count() - 1);
    assert_eq!(places, [1, 1]);
}
