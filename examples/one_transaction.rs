//! A service whose effect is a row in the database that keeps its keys: both are committed in one transaction.
//!
//! Each message is a payment, `{"order": "po-1", "cents": 1999}`, and becomes one row of the table
//! `payments`: once for each order, whatever is delivered twice, fails, or is killed in between. The
//! table has no unique column, and needs none.
//!
//! | variable | default |
//! |---|---|
//! | `DATABASE`: a file of SQLite | `payments.db` |
//! | `LEASE_SECONDS`: how long a crash may hold up an order | 15 minutes |
//! | `PORT` | 8080 |
//!
//! For PostgreSQL or MySQL say `Postgres` or `MySql` for `Sqlite`, and `BEGIN` for `BEGIN IMMEDIATE`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use pushonce::store::{Maintain as _, Sql};
use pushonce::{Ack, DEFAULT_LEASE, Failure, IdempotentLayer, Lease, PubSub, json_pointer};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool};

#[derive(serde::Deserialize)]
struct Payment {
    order: String,
    cents: i64,
}

/// The database: the connections for the handler's transactions, and the store of the keys in it.
#[derive(Clone)]
struct Database {
    pool: SqlitePool,
    keys: Arc<Sql<Sqlite>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let database = Database::open(&variable("DATABASE").unwrap_or_else(|| "payments.db".to_owned())).await?;
    let seconds = variable("LEASE_SECONDS").map(|text| text.parse()).transpose()?;
    let layer = IdempotentLayer::new("payments", database.keys.clone())
        .key(json_pointer("/order"))
        .lease(seconds.map_or(DEFAULT_LEASE, Duration::from_secs));
    let app = Router::new()
        .route("/", post(pay).layer(layer))
        .route("/healthz", get(|| async { "ok" }))
        .with_state(database);
    pushonce::serve(app).await?;
    Ok(())
}

/// The handler: one row for each order.
async fn pay(
    State(database): State<Database>,
    lease: Lease,
    PubSub(payment): PubSub<Payment>,
) -> Result<Ack, Failure> {
    // Write at once: a transaction that has read first may find that it cannot write any more.
    let mut tx = database.pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO payments (order_id, cents) VALUES (?, ?)")
        .bind(payment.order)
        .bind(payment.cents)
        .execute(&mut *tx)
        .await?;
    // The key is completed in the same transaction. Nothing may follow: it would not be tried again.
    lease.commit(&database.keys, tx).await?;
    Ok(Ack)
}

impl Database {
    async fn open(file: &str) -> Result<Self, Box<dyn Error>> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was acknowledged survives a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(4));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_lazy_with(options);
        let keys = Arc::new(Sql::new(pool.clone()));
        keys.create_table().await?;
        keys.check().await?;
        sqlx::query("CREATE TABLE IF NOT EXISTS payments (order_id TEXT NOT NULL, cents INTEGER NOT NULL)")
            .execute(&pool)
            .await?;
        Ok(Self { pool, keys })
    }
}

/// A variable; one that is blank is not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
}
