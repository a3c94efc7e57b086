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
//! supplier that knows the key drops the repeat that no lease can exclude.
//!
//! | variable | default |
//! |---|---|
//! | `PUSHONCE_STORE`: an address as `store::connect` takes it | `memory:`, with a warning; refused on Cloud Run |
//! | `SUPPLIER_URL`: `http://host:port/path` | nothing is sent |
//! | `LEASE_SECONDS`, `TTL_SECONDS` | 15 minutes, 7 days |
//! | `PORT` | 8080 |
//!
//! A variable that cannot be meant ends the start with one line and code 1.

use std::env::VarError;
use std::error::Error;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Router, body::Body};
use http::uri::Scheme;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use pushonce::store::{self, Maintain, Memory};
use pushonce::{Ack, Delivery, Failure, IdempotentLayer, Lease, Store, attribute, json_pointer};

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_ansi(std::io::stdout().is_terminal()).init();
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
    let lease = seconds("LEASE_SECONDS", pushonce::DEFAULT_LEASE)?;
    let ttl = seconds("TTL_SECONDS", pushonce::DEFAULT_TTL)?;
    let supplier = Supplier::from_env()?;
    let operated = store()?;
    let store: Arc<dyn Store> = operated.clone();
    let layer = |consumer| IdempotentLayer::new(consumer, store.clone()).lease(lease).ttl(ttl);
    // A router panics on a layer that cannot work; asked first, it says why. All three have these settings.
    layer("messages").check()?;
    reach(&*operated).await?;

    let order = || attribute("po_id").or(json_pointer("/po_id"));
    let app = Router::new()
        .route("/", post(deliver).layer(layer("messages")))
        .route("/orders", post(deliver).layer(layer("orders").key(order())))
        .route("/status", post(deliver).layer(layer("status").serialize(order())))
        .route("/healthz", get(|| async { "ok" }))
        .with_state(supplier);
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
        let parsed = |url: String| {
            let parsed = url.parse::<http::Uri>().ok().filter(|url| url.scheme() == Some(&Scheme::HTTP));
            // Not repeated: a URL may hold a password.
            parsed.ok_or(
                "`SUPPLIER_URL` is no URL: expected http://host:port/path (this example speaks no TLS)",
            )
        };
        let url = variable("SUPPLIER_URL")?.map(parsed).transpose()?;
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

/// The store of `PUSHONCE_STORE`; nothing is dialled.
fn store() -> Result<Arc<dyn Maintain>, BoxError> {
    let url = variable("PUSHONCE_STORE")?;
    if let Some(url) = url {
        return Ok(store::open(&url).map_err(|error| format!("`PUSHONCE_STORE`: {}", chain(&error)))?);
    }
    if std::env::var_os("K_SERVICE").is_some() {
        return Err("`PUSHONCE_STORE` is not set: on Cloud Run an instance's memory is no store, since others do not see it".into());
    }
    tracing::warn!("`PUSHONCE_STORE` is not set: every key is forgotten when this process ends");
    Ok(Arc::new(Memory::new()))
}

/// Asks the store once: a fault that will not pass should stop the start, an outage should not.
async fn reach(store: &dyn Maintain) -> Result<(), BoxError> {
    match store.check().await {
        Ok(()) => Ok(()),
        Err(error) if error.is_transient() => {
            tracing::warn!(
                error = chain(&error),
                "starting without the store; pushes are answered 503 until it is there"
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn seconds(name: &str, default: Duration) -> Result<Duration, BoxError> {
    let Some(text) = variable(name)? else { return Ok(default) };
    let seconds = text.parse().map_err(|_| format!("`{name}` is {text:?}: expected whole seconds"))?;
    Ok(Duration::from_secs(seconds))
}

/// A variable without the blanks around it; one that is blank is not set.
fn variable(name: &str) -> Result<Option<String>, BoxError> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("`{name}` is not UTF-8").into()),
    }
}

/// An error with its sources, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
