//! What people write by hand today: axum and sqlx, one insert-or-nothing and one update. Some forty lines, and they
//! look right; `docs/benchmarks.md` has what they cost and what they get wrong.
//!
//! `DATABASE_URL=postgres://.. cargo bench --all-features --bench by_hand`, then pushes at port 8080.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router, routing::post};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use sqlx::PgPool;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Deserialize)]
struct Push {
    message: Message,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) message_id: String,
    /// The payload, in base64.
    #[serde(default)]
    pub(crate) data: String,
}

/// The work of a message.
pub(crate) type Charge = Arc<dyn Fn(Message) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

pub(crate) async fn create_table(pool: &PgPool) -> sqlx::Result<()> {
    let table = "CREATE TABLE IF NOT EXISTS processed_messages \
        (message_id TEXT PRIMARY KEY, received_at TIMESTAMPTZ NOT NULL DEFAULT now(), done_at TIMESTAMPTZ)";
    sqlx::query(table).execute(pool).await.map(drop)
}

pub(crate) fn router(pool: PgPool, charge: Charge) -> Router {
    Router::new().route("/", post(receive)).with_state((pool, charge))
}

async fn receive(
    State((pool, charge)): State<(PgPool, Charge)>,
    Json(Push { message }): Json<Push>,
) -> Result<StatusCode, StatusCode> {
    let id = message.message_id.clone();
    let insert =
        "INSERT INTO processed_messages (message_id) VALUES ($1) ON CONFLICT (message_id) DO NOTHING";
    let inserted = sqlx::query(insert).bind(&id).execute(&pool).await.map_err(failed)?;
    if inserted.rows_affected() == 0 {
        return Ok(StatusCode::NO_CONTENT); // a duplicate
    }
    if let Err(error) = charge(message).await {
        let delete = "DELETE FROM processed_messages WHERE message_id = $1";
        sqlx::query(delete).bind(&id).execute(&pool).await.map_err(failed)?;
        return Err(failed(error)); // Pub/Sub sends it again
    }
    let update = "UPDATE processed_messages SET done_at = now() WHERE message_id = $1";
    sqlx::query(update).bind(&id).execute(&pool).await.map_err(failed)?;
    Ok(StatusCode::OK)
}

fn failed(error: impl std::fmt::Display) -> StatusCode {
    eprintln!("the message failed: {error}");
    StatusCode::INTERNAL_SERVER_ERROR
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    create_table(&pool).await?;
    let charge: Charge = Arc::new(|message| {
        Box::pin(async move {
            println!("charged for message {}: {}", message.message_id, message.data);
            Ok(())
        })
    });
    let listener = tokio::net::TcpListener::bind("0.0.0.0:8080").await?;
    Ok(axum::serve(listener, router(pool, charge)).await?)
}
