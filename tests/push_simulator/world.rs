//! What the tests share: a store on tokio's clock, the layer over it, and handlers that keep a diary.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use pushonce::store::{Memory, Record};
use pushonce::testing::{Ending, Push, PushSimulator, SimulationReport, TokioClock};
use pushonce::{Delivery, IdempotentLayer, IntoKey, Outcome, Store};

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The memory store on tokio's clock.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: Arc<TokioClock>,
    pub(crate) store: Arc<dyn Store>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        Self { store: Arc::new(Memory::with_clock(clock.clone())), clock }
    }

    /// The layer of the consumer `orders`.
    pub(crate) fn layer(&self) -> IdempotentLayer {
        IdempotentLayer::new("orders", self.store.clone()).clock(self.clock.clone())
    }

    pub(crate) async fn record(&self, text: &str) -> Option<Record> {
        let key = ("orders", text).into_key().unwrap();
        self.store.read(&key).await.unwrap().map(|stored| stored.record)
    }
}

/// A route under a layer.
pub(crate) fn app(route: MethodRouter, layer: IdempotentLayer) -> Router {
    Router::new().route("/", route.layer(layer))
}

/// What a handler has done, in its order.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// How often this was noted.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.read().iter().filter(|noted| *noted == what).count()
    }

    /// A handler that notes the message's id and succeeds after `work`.
    pub(crate) fn noting(&self, work: Duration) -> MethodRouter {
        let diary = self.clone();
        post(async move |delivery: Delivery| {
            diary.note(delivery.message_id().unwrap_or("none"));
            tokio::time::sleep(work).await;
        })
    }
}

/// A handler that answers these in turn, the last one for ever, at no cost of time.
pub(crate) fn answering(statuses: &[u16]) -> MethodRouter {
    let (runs, statuses) = (AtomicU32::new(0), statuses.to_vec());
    let runs = Arc::new(runs);
    post(async move || {
        let at = (runs.fetch_add(1, Ordering::SeqCst) as usize).min(statuses.len() - 1);
        StatusCode::from_u16(statuses[at]).unwrap()
    })
}

/// A bare service that answers these in turn, without a layer.
pub(crate) fn bare(statuses: &[u16]) -> PushSimulator<Router> {
    PushSimulator::new(Router::new().route("/", answering(statuses)))
}

/// A message with that id and an order's number.
pub(crate) fn order(id: &str, po: &str) -> Push {
    Push::empty().id(id).attribute("po_id", po)
}

/// When a message was sent.
pub(crate) fn sent(report: &SimulationReport, id: &str) -> Vec<Duration> {
    report.of(id).map(|attempt| attempt.sent).collect()
}

/// How the deliveries of a message ended.
pub(crate) fn endings(report: &SimulationReport, id: &str) -> Vec<Ending> {
    report.of(id).map(|attempt| attempt.ending.clone()).collect()
}

/// What the layer said of each delivery of a message; `None` where no answer was read.
pub(crate) fn outcomes(report: &SimulationReport, id: &str) -> Vec<Option<Outcome>> {
    report.of(id).map(|attempt| attempt.answer.as_ref().and_then(|answer| answer.outcome)).collect()
}
