//! The service under the demo, two instances of it, and the card service that it calls.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::{Router, routing::post};
use pushonce::{
    Ack, Consumer, Failure, IdempotentLayer, InvalidKey, Key, Lease, PubSub, Store, attribute, json_pointer,
};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::BoxError;

/// Short, so that the demo need not wait long for a dead instance. The default is 15 minutes.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
const CONSUMER: &str = "charges";
/// How long an order takes beyond its charge.
const WORK: Duration = Duration::from_millis(400);

#[derive(Deserialize)]
pub(crate) struct Order {
    po_id: String,
    amount: String,
}

/// The whole service: this, and a layer.
async fn charge(
    State(shop): State<Shop>,
    lease: Lease,
    PubSub(order): PubSub<Order>,
) -> Result<Ack, Failure> {
    shop.cards.charge(&lease.effect_id("charge"), &order)?;
    shop.pack().await;
    Ok(Ack)
}

fn app(store: &Arc<dyn Store>, shop: Shop) -> Router {
    let layer = IdempotentLayer::new(CONSUMER, store.clone())
        .key(attribute("po_id").or(json_pointer("/po_id")))
        .lease(LEASE);
    Router::new().route("/orders", post(charge).layer(layer)).with_state(shop)
}

/// The key of an order, as the layer makes it.
pub(crate) fn key(order: &str) -> Result<Key, InvalidKey> {
    Key::new(Consumer::new(CONSUMER)?, order)
}

#[derive(Clone)]
struct Shop {
    cards: Cards,
    hangs: Arc<AtomicBool>,
}

impl Shop {
    async fn pack(&self) {
        tokio::time::sleep(WORK).await;
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

/// One instance: a server on a runtime of its own.
pub(crate) struct Instance {
    name: &'static str,
    url: http::Uri,
    hangs: Arc<AtomicBool>,
    runtime: Option<Runtime>,
}

impl Instance {
    pub(crate) fn start(name: &'static str, store: &Arc<dyn Store>, cards: &Cards) -> Result<Self, BoxError> {
        let hangs = Arc::new(AtomicBool::new(false));
        let app = app(store, Shop { cards: cards.clone(), hangs: hangs.clone() });
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}/orders", listener.local_addr()?).parse()?;
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener)?;
            pushonce::serve(app).listener(listener).await?;
            io::Result::Ok(())
        });
        Ok(Self { name, url, hangs, runtime: Some(runtime) })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn url(&self) -> http::Uri {
        self.url.clone()
    }

    /// From now on its handler does not come to an end.
    pub(crate) fn hang(&self) {
        self.hangs.store(true, Ordering::SeqCst);
    }

    /// Ends all its tasks where they stand, and closes its sockets.
    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The card service: the outside world, which knows nothing of leases. It charges once per
/// idempotency key, as real ones do.
#[derive(Clone, Default)]
pub(crate) struct Cards {
    down: Arc<AtomicBool>,
    calls: Arc<watch::Sender<Vec<Call>>>,
}

struct Call {
    effect: String,
    order: String,
}

impl Cards {
    pub(crate) fn charge(&self, effect: &str, order: &Order) -> Result<(), BoxError> {
        if self.down.load(Ordering::SeqCst) {
            return Err("the card service is down".into());
        }
        if order.amount.starts_with('-') {
            return Err("the card service refuses the amount".into());
        }
        let call = Call { effect: effect.to_owned(), order: order.po_id.clone() };
        self.calls.send_modify(|calls| calls.push(call));
        Ok(())
    }

    pub(crate) fn down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Waits until it was called for this order.
    pub(crate) async fn charging(&self, order: &str) {
        let mut calls = self.calls.subscribe();
        // An error means that the sender is gone, which we hold.
        let _ = calls.wait_for(|calls| calls.iter().any(|call| call.order == order)).await;
    }

    /// How often it was called with an order that it takes.
    pub(crate) fn calls(&self) -> usize {
        self.calls.borrow().len()
    }

    /// How often each order was charged.
    pub(crate) fn charged(&self) -> Vec<(String, usize)> {
        let mut effects = BTreeMap::<_, BTreeSet<_>>::new();
        for call in self.calls.borrow().iter() {
            effects.entry(call.order.clone()).or_default().insert(call.effect.clone());
        }
        effects.into_iter().map(|(order, effects)| (order, effects.len())).collect()
    }

    /// How many calls it dropped, since it knew their key.
    pub(crate) fn repeats(&self) -> usize {
        self.calls() - self.charged().iter().map(|(_, times)| times).sum::<usize>()
    }
}
