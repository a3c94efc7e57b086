//! The service that one deploys: orders and their status updates, pushed by Pub/Sub.
//!
//! | route | what is done once | what runs one at a time |
//! |---|---|---|
//! | `POST /` | each message | |
//! | `POST /orders` | each order: attribute `po_id`, or `/po_id` in the JSON data | |
//! | `POST /status` | each message | the messages of one order |
//! | `GET /healthz` | | |
//!
//! The effect is a POST to `SUPPLIER_URL`, if that is set, with the effect id as `idempotency-key`: a
//! supplier that knows the key drops the repeat that no lease can exclude. Environment: `PORT`,
//! `PUSHONCE_STORE` (see `store::connect`), `LEASE_SECONDS`, `TTL_SECONDS`, `SUPPLIER_URL`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Router, body::Body};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use pushonce::store::{self, Memory, StoreError};
use pushonce::{Ack, Delivery, Failure, IdempotentLayer, Lease, Store, attribute, json_pointer};

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt().init();
    let store = store().await?;
    let lease = seconds("LEASE_SECONDS", pushonce::DEFAULT_LEASE)?;
    let ttl = seconds("TTL_SECONDS", pushonce::DEFAULT_TTL)?;
    let layer = |consumer| IdempotentLayer::new(consumer, store.clone()).lease(lease).ttl(ttl);

    let order = || attribute("po_id").or(json_pointer("/po_id"));
    let app = Router::new()
        .route("/", post(deliver).layer(layer("messages")))
        .route("/orders", post(deliver).layer(layer("orders").key(order())))
        .route("/status", post(deliver).layer(layer("status").serialize(order())))
        .route("/healthz", get(|| async { "ok" }))
        .with_state(Supplier::from_env()?);
    pushonce::serve(app).await?;
    Ok(())
}

/// The handler of all routes: one effect for one delivery.
async fn deliver(State(supplier): State<Supplier>, lease: Lease, delivery: Delivery) -> Result<Ack, Failure> {
    supplier.send(&lease, &delivery).await?;
    Ok(Ack)
}

/// The outside world.
#[derive(Clone)]
struct Supplier {
    client: Client<HttpConnector, Body>,
    url: Option<http::Uri>,
}

impl Supplier {
    fn from_env() -> Result<Self, BoxError> {
        let url = match std::env::var("SUPPLIER_URL").unwrap_or_default().trim() {
            "" => None,
            url => Some(
                url.parse()
                    .map_err(|_| format!("`SUPPLIER_URL` is {url:?}: expected http://host:port/path"))?,
            ),
        };
        Ok(Self { client: Client::builder(TokioExecutor::new()).build_http(), url })
    }

    async fn send(&self, lease: &Lease, delivery: &Delivery) -> Result<(), BoxError> {
        let effect = lease.effect_id("supply");
        let Some(url) = &self.url else {
            tracing::info!(key = %lease.key(), effect, "no SUPPLIER_URL: nothing is sent");
            return Ok(());
        };
        let request = http::Request::post(url)
            .header("idempotency-key", effect)
            // A supplier that remembers the highest fence can refuse a holder that was replaced.
            .header("pushonce-fence", lease.fence())
            .header("pushonce-history", format!("{:?}", lease.history()))
            .body(Body::from(delivery.data()?))?;
        let status = self.client.request(request).await?.status();
        if !status.is_success() {
            return Err(format!("the supplier answered {status}").into());
        }
        Ok(())
    }
}

/// The store of `PUSHONCE_STORE`.
async fn store() -> Result<Arc<dyn Store>, BoxError> {
    let url = std::env::var("PUSHONCE_STORE").unwrap_or_default();
    if url.is_empty() {
        if std::env::var_os("K_SERVICE").is_some() {
            return Err("`PUSHONCE_STORE` is not set: an instance's memory is no store on Cloud Run".into());
        }
        tracing::warn!("`PUSHONCE_STORE` is not set: every key is forgotten when this process ends");
        return Ok(Arc::new(Memory::new()));
    }
    let store = store::connect(&url)?;
    // A fault that will not pass should stop the start; an outage should not.
    match store.read(&pushonce::Key::new(pushonce::Consumer::default(), "start-up check")?).await {
        Err(error @ StoreError::Unavailable { .. }) => tracing::warn!(%error, "starting without the store"),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    Ok(store)
}

fn seconds(name: &str, default: Duration) -> Result<Duration, BoxError> {
    match std::env::var(name) {
        Err(_) => Ok(default),
        Ok(text) => Ok(Duration::from_secs(
            text.trim().parse().map_err(|_| format!("`{name}` is {text:?}: expected whole seconds"))?,
        )),
    }
}
