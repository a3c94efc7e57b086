//! The service that one deploys: orders and their status updates, pushed by Pub/Sub.
//!
//! | route | what is done once | what runs one at a time |
//! |---|---|---|
//! | `POST /` | each message | |
//! | `POST /orders` | each order: attribute `po_id`, or `/po_id` in the JSON data | |
//! | `POST /status` | each message | the messages of one order |
//! | `GET /healthz`, and `GET /health` from outside of Cloud Run, which keeps the first to itself | | |
//! | `GET /metrics`, where they are on | | |
//!
//! The effect is a POST to `SUPPLIER_URL`, if that is set, with the effect id as `idempotency-key`: a
//! supplier that knows the key drops the repeat that no lease can exclude.
//!
//! | variable | default |
//! |---|---|
//! | `PUSHONCE_STORE`: an address as `store::connect` takes it | `memory:`, with a warning; refused on Cloud Run |
//! | `SUPPLIER_URL`: `http://host:port/path` | nothing is sent |
//! | `LEASE_SECONDS`, `TTL_SECONDS`, and the times of the deployment as `Sizing::from_env` reads them | 15 minutes, 7 days, what the Terraform module deploys |
//! | `PUSHONCE_SIZING`: `warn` starts also where these times do not fit together | they are refused |
//! | `PUSH_AUTH`: how the push token is checked, `verify`, `platform` or `none` | `none`; on Cloud Run it must be set |
//! | `PUSH_AUDIENCE`, `PUSH_SERVICE_ACCOUNT`: the accepted audiences and the expected callers' e-mails, comma-separated | needed by `verify` and `platform` |
//! | `PUSH_KEYS_URL`: the key server that `verify` asks, for tests | Google's |
//! | `PUSHONCE_METRICS`: `prometheus` | no metrics |
//! | `PORT` | 8080 |
//! | `RUST_LOG`, `GOOGLE_CLOUD_PROJECT` | `info`; traces are logged without a project |
//!
//! A variable that cannot be meant ends the start with one line and code 1. `orders healthcheck` asks
//! `GET /healthz` of the service that runs on `PORT`, and ends with code 0 or 1.

mod auth;
mod health;
mod metrics;
mod settings;
mod store;
mod supplier;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use pushonce::sizing::Sizing;
use pushonce::{Ack, Delivery, Failure, IdempotentLayer, Lease, Store, attribute, json_pointer};

use self::auth::Auth;
use self::settings::chain;
use self::supplier::Supplier;

type BoxError = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    health::asked().unwrap_or_else(serve)
}

#[tokio::main]
async fn serve() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one line: what Cloud Run shows of a container that did not start.
            eprintln!("orders: not started: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    pushonce::telemetry::init()?;
    let sizing = Sizing::from_env()?.enforce()?;
    let supplier = Supplier::from_env()?;
    let metrics = metrics::from_env()?;
    let operated = store::from_env()?;
    let operated = if metrics.is_some() { metrics::metered(operated) } else { operated };
    let store: Arc<dyn Store> = operated.clone();
    let layer = |consumer| IdempotentLayer::new(consumer, store.clone()).lease(sizing.lease).ttl(sizing.ttl);
    // A router panics on a layer that cannot work; asked first, it says why. All three have these settings.
    layer("messages").check()?;
    let auth = Auth::from_env()?;
    store::reach(&*operated).await?;

    let order = || attribute("po_id").or(json_pointer("/po_id"));
    let pushed = Router::new()
        .route("/", post(deliver).layer(layer("messages")))
        .route("/orders", post(deliver).layer(layer("orders").key(order())))
        .route("/status", post(deliver).layer(layer("status").serialize(order())));
    let health = || get(|| async { "ok" });
    let app = auth
        .before(pushed)
        .route("/healthz", health())
        .route("/health", health())
        .with_state(supplier)
        .merge(metrics.unwrap_or_default());
    pushonce::serve(app).await?;
    Ok(())
}

/// The handler of all routes: one effect for one delivery.
async fn deliver(State(supplier): State<Supplier>, lease: Lease, delivery: Delivery) -> Result<Ack, Failure> {
    supplier.send(&lease, &delivery).await?;
    Ok(Ack)
}
