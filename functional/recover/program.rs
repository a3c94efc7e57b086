//! The subjects that are written in Rust: this test program again, told by its environment which it is.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::Request;
use pushonce::store::Sql;
use pushonce::{Ack, DEFAULT_LEASE, Delivery, Failure, IdempotentLayer, Lease};
use rustix::process::{Signal, set_parent_process_death_signal};
use sqlx::{PgPool, Postgres};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::by_hand::{self, BoxError, Charge};
use crate::client;
use crate::subject::{GROUP, Subject};

/// What it says as soon as it listens.
pub(crate) const LISTENING: &str = "it listens on ";
/// The test that is this program, where it is told so.
const TEST: &str = "recovery::a_killed_holder_costs_its_renewed_lease_and_one_attempt";
const ROLE: &str = "PUSHONCE_TEST_RECOVER_ROLE";
/// The consumer of the layers, a part of each of their keys.
pub(crate) const CONSUMER: &str = "charge";

/// What starts it as that subject.
pub(crate) fn command(subject: Subject) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).env(ROLE, subject.name());
    command
}

/// Is the subject that the environment tells, until it is killed; `false` where it tells none.
pub(crate) fn played() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    // Else a test run that is interrupted would leave it behind: it is in a group of its own.
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(serve(&role)).unwrap();
    true
}

async fn serve(role: &str) -> Result<(), BoxError> {
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    let pool = PgPool::connect_lazy(&told("DATABASE_URL"))?;
    let supplier = Supplier(Arc::from(told("SUPPLIER_URL")));
    let lease = told("LEASE_MS").parse().map_or(DEFAULT_LEASE, Duration::from_millis);
    let listener = TcpListener::bind(client::local(0)).await?;
    // It was started as the leader of its group.
    println!("{LISTENING}{}\n{GROUP}{}", listener.local_addr()?.port(), std::process::id());

    if role == Subject::ByHand.name() {
        let charge: Charge = Arc::new(move |_| {
            let supplier = supplier.clone();
            Box::pin(async move { supplier.charge(None).await })
        });
        return Ok(axum::serve(listener, by_hand::router(pool, charge)).await?);
    }
    let keys = Arc::new(Sql::new(pool.clone()));
    let layer = IdempotentLayer::new(CONSUMER, keys.clone()).lease(lease);
    let layer = if role == Subject::Renewed.name() { layer.renew() } else { layer };
    let route = if role == Subject::OneTransaction.name() {
        post(move |lease, delivery| together(pool, keys, supplier, lease, delivery))
    } else {
        post(move |lease: Lease| async move {
            supplier.charge(Some(lease.effect_id("charge"))).await.map(|()| Ack).map_err(Failure::from)
        })
    };
    let serving = pushonce::serve(Router::new().route("/", route.layer(layer))).listener(listener);
    Ok(serving.until(std::future::pending()).await?)
}

/// The effect is a row, which is committed with the key.
async fn together(
    pool: PgPool,
    keys: Arc<Sql<Postgres>>,
    supplier: Supplier,
    lease: Lease,
    delivery: Delivery,
) -> Result<Ack, Failure> {
    supplier.post("/look-up", None).await?;
    let mut tx = pool.begin().await?;
    sqlx::query("INSERT INTO charges VALUES ($1)").bind(delivery.message_id()).execute(&mut *tx).await?;
    // Where the others have made their effect, this one stands in its transaction.
    supplier.post("/charge", None).await?;
    lease.commit(&keys, tx).await?;
    Ok(Ack)
}

/// The world outside: something is looked up there, then somebody is charged.
#[derive(Clone)]
struct Supplier(Arc<str>);

impl Supplier {
    async fn charge(&self, effect_id: Option<String>) -> Result<(), BoxError> {
        self.post("/look-up", None).await?;
        self.post("/charge", effect_id).await
    }

    async fn post(&self, path: &str, effect_id: Option<String>) -> Result<(), BoxError> {
        let at = self.0.strip_prefix("http://").unwrap_or(&self.0).parse()?;
        let mut request = Request::post(path);
        if let Some(id) = effect_id {
            request = request.header("idempotency-key", id);
        }
        let status = client::send(at, request.body(Bytes::new())?).await?.status();
        if status.is_success() { Ok(()) } else { Err(format!("the supplier answered {status}").into()) }
    }
}
