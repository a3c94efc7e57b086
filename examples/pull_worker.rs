//! A worker that pulls: the verb `lock` around the work of each message of a streaming-pull subscription.
//!
//! Each message charges an order, which is a line in a file: once for each order (attribute `po_id`;
//! a message without it is known by its id), whatever is published twice, delivered again or killed in
//! between. A message is acked once its success is recorded, and so is its duplicate; everything else
//! is nacked and comes again. Give the subscription a retry policy: without one a nack comes back at once.
//!
//! | variable | default |
//! |---|---|
//! | `SUBSCRIPTION`: `projects/p/subscriptions/s` | must be set |
//! | `PUBSUB_EMULATOR_HOST`: `host:port` | Google, with the credentials of the environment |
//! | `PUSHONCE_STORE`: an address as `store::connect` takes it | `memory:`, which is forgotten at the end |
//! | `LEDGER`: the file of the charges | `charges.log` |
//!
//! At SIGTERM nothing more is taken, and what is in work has eight seconds to end and to be acked.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::Subscriber;
use google_cloud_pubsub::model::Message;
use google_cloud_pubsub::subscriber::handler::Handler;
use pushonce::{Lease, Store, lock, unless_done};
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{SignalKind, signal};

type BoxError = Box<dyn Error + Send + Sync>;

/// Cloud Run kills ten seconds after SIGTERM.
const DRAIN: Duration = Duration::from_secs(8);
const LAST_ACKS: Duration = Duration::from_secs(9);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt().with_ansi(false).init();
    let subscription = variable("SUBSCRIPTION").ok_or("`SUBSCRIPTION` is not set")?;
    let ledger = PathBuf::from(variable("LEDGER").unwrap_or_else(|| "charges.log".to_owned()));
    let store = pushonce::store::connect(variable("PUSHONCE_STORE").as_deref().unwrap_or("memory:"))?;

    // The library holds a message as long as it is in work, and extends its ack deadline meanwhile.
    let mut messages = subscriber().await?.subscribe(subscription).set_max_outstanding_messages(100).build();
    let taking = messages.shutdown_token();
    let mut term = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = term.recv() => break,
            next = messages.next() => match next.transpose()? {
                Some((message, handler)) => {
                    tokio::spawn(settle(store.clone(), ledger.clone(), message, handler));
                }
                None => break,
            },
        }
    }
    tracing::info!("stopping");
    // Tells Pub/Sub that this stream wants no more; else messages would still be sent to it.
    drop(messages);
    // The one takes no more and sends the last acks; the other ends the work and records it.
    let (drained, acked) =
        tokio::join!(pushonce::drain(DRAIN), tokio::time::timeout(LAST_ACKS, taking.shutdown()));
    tracing::info!(left = drained.left, acks_sent = acked.is_ok(), "stopped");
    Ok(())
}

/// Runs the work of a message unless it is done, and tells Pub/Sub what came of it.
async fn settle(store: Arc<dyn Store>, ledger: PathBuf, message: Message, handler: Handler) {
    let id = message.message_id.clone();
    let key = match message.attributes.get("po_id") {
        Some(order) => ("orders", order.clone()),
        None => ("messages", id.clone()),
    };
    // A copy that comes while the first is in work waits for it, rather than to come again and again.
    let guarded = lock(key, &store).wait(Duration::from_secs(5));
    let ran = guarded.run_with(move |lease| charge(lease, ledger, message)).await;
    match unless_done(ran) {
        Ok(Some(())) => tracing::info!(id, "charged"),
        Ok(None) => tracing::info!(id, "charged before: acked without a charge"),
        Err(error) => {
            tracing::warn!(id, error = &error as &dyn Error, "not charged, to be delivered again");
            return handler.nack();
        }
    }
    handler.ack();
}

/// The work. The effect id is the same on every rerun, so that a reader can tell a line that was repeated.
async fn charge(lease: Lease, ledger: PathBuf, message: Message) -> Result<(), BoxError> {
    tracing::info!(key = %lease.key(), "in work");
    let line = format!("{} {}\n", String::from_utf8_lossy(&message.data), lease.effect_id("charge"));
    let mut file = OpenOptions::new().create(true).append(true).open(ledger).await?;
    file.write_all(line.as_bytes()).await?;
    file.flush().await?;
    Ok(())
}

/// The library does not read `PUBSUB_EMULATOR_HOST` itself.
async fn subscriber() -> Result<Subscriber, BoxError> {
    let builder = Subscriber::builder();
    let builder = match variable("PUBSUB_EMULATOR_HOST") {
        Some(host) => builder
            .with_endpoint(format!("http://{host}"))
            .with_credentials(anonymous::Builder::new().build()),
        None => builder,
    };
    Ok(builder.build().await?)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}
