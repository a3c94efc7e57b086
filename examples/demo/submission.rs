//! The scene of the producer: one task for one idempotency key, from its submission to its effect.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing::post};
use http::Uri;
use pushonce::publish::{InProcess, Publisher};
use pushonce::submit::{Submitter, routes};
use pushonce::{Ack, Failure, IdempotentLayer, Lease, PubSub, Store};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::BoxError;
use crate::page::Page;
use crate::push::{Answer, Sender};
use crate::shop::{Cards, LEASE, Order};

const TOPIC: &str = "projects/demo/topics/tasks";
const ORDER: &str =
    r#"{"idempotency_key": "charge-PO-2001", "input": {"po_id": "PO-2001", "amount": "12.50"}}"#;
/// The same, as a client may write it that keeps no order.
const RETRY: &str =
    r#"{"input": {"amount": "12.50", "po_id": "PO-2001"}, "idempotency_key": "charge-PO-2001"}"#;
const OTHER: &str =
    r#"{"idempotency_key": "charge-PO-2001", "input": {"po_id": "PO-2001", "amount": "99.00"}}"#;

/// The worker of the tasks. It is held in mid-work until the scene lets it go on.
#[derive(Clone, Default)]
struct Worker {
    cards: Cards,
    go_on: Arc<Notify>,
}

async fn charge(
    State(worker): State<Worker>,
    lease: Lease,
    PubSub(order): PubSub<Order>,
) -> Result<Ack, Failure> {
    worker.cards.charge(&lease.effect_id("charge"), &order)?;
    worker.go_on.notified().await;
    Ok(Ack)
}

/// Plays it. The submit routes and the worker are one service; the publisher pushes straight into it.
pub(crate) async fn scene(page: &mut Page, sender: &Sender, store: &Arc<dyn Store>) -> Result<(), BoxError> {
    page.heading("The producer's side: an order is submitted as a task with an idempotency key, over HTTP");
    let worker = Worker::default();
    let publisher = InProcess::unconnected().path("/worker");
    let submitter = Submitter::new(store.clone(), Arc::new(publisher.clone()) as Arc<dyn Publisher>, TOPIC);
    let layer = IdempotentLayer::new("task-charges", store.clone()).follow(submitter.tasks());
    let app = Router::new()
        .route("/worker", post(charge).layer(layer))
        .with_state(worker.clone())
        .merge(routes(submitter).router());
    publisher.connect(app.clone());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let to: Uri = format!("http://{}/tasks/charge", listener.local_addr()?).parse()?;
    tokio::spawn(async move { pushonce::serve(app).listener(listener).until(std::future::pending()).await });

    let submit = |body: &'static str| sender.send(to.clone(), body.into());
    let first = submit(ORDER).await;
    let task = told(&first, "task_id");
    page.submission("PO-2001 of 12.50, a new key", &first, is(&first, 202, &task));
    // If the charge does not come, the answers tell.
    let _ = tokio::time::timeout(LEASE, worker.cards.charging("PO-2001")).await;
    let running = submit(RETRY).await;
    page.submission("the same once more, while it runs", &running, is(&running, 409, &task));
    let other = submit(OTHER).await;
    page.submission("the same key, but of 99.00", &other, is(&other, 422, ""));
    worker.go_on.notify_one();
    let _ = tokio::time::timeout(LEASE, publisher.idle()).await;
    let over = submit(RETRY).await;
    page.submission("12.50 once more, after its end", &over, is(&over, 200, &task));
    let other = submit(OTHER).await;
    page.submission("and of 99.00 once more", &other, is(&other, 422, ""));

    let charged = (worker.cards.calls(), worker.cards.charged());
    let once = charged == (1, vec![("PO-2001".to_owned(), 1)]);
    page.promise(once, &format!("five submissions of one key are one charge: {charged:?}"));
    Ok(())
}

/// Whether it has that status, and is about that task.
fn is(answer: &Answer, status: u16, task: &str) -> bool {
    answer.status().is_some_and(|told| told == status) && told(answer, "task_id") == task
}

/// What the answer's JSON says there; blank if it says nothing.
pub(crate) fn told(answer: &Answer, member: &str) -> String {
    let json: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    json[member].as_str().unwrap_or_default().to_owned()
}
