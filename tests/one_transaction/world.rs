//! What the tests on the fake share: a layer over it, handlers that work in one transaction, and what came of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use pushonce::store::BoxError;
use pushonce::store::record::{Ended, State};
use pushonce::testing::{Push, TokioClock};
use pushonce::{Ack, Clock, Failure, Guarded, IdempotentLayer, IntoKey, Lease, Lock, Store, lock};
use tracing::Level;

use crate::fake::FakeSql;
use crate::log::Log;

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) struct World {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sql: Arc<FakeSql>,
    pub(crate) store: Arc<dyn Store>,
}

impl World {
    /// On tokio's clock, which the tests pause.
    pub(crate) fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let sql = FakeSql::new(clock.clone());
        Self { clock, store: sql.clone(), sql }
    }

    /// The layer of the consumer `orders`.
    pub(crate) fn layer(&self) -> IdempotentLayer {
        IdempotentLayer::new("orders", self.store.clone()).clock(self.clock.clone())
    }

    pub(crate) fn lock(&self, key: impl IntoKey) -> Guarded<Lock> {
        lock(key, &self.store).clock(self.clock.clone())
    }

    /// A route under the layer; its handler fails where the work does.
    pub(crate) fn app<F, W>(&self, layer: IdempotentLayer, work: F) -> Router
    where
        F: Fn(Arc<FakeSql>, Lease) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let sql = self.sql.clone();
        let handler = move |lease: Lease| {
            let work = work(sql.clone(), lease);
            async move { work.await.map(|()| Ack).map_err(Failure::from) }
        };
        Router::new().route("/", post(handler).layer(layer))
    }

    /// State and history of a key of the consumer `orders`.
    pub(crate) fn stands(&self, text: &str) -> Option<(State, Ended, u32)> {
        let record = self.sql.record(("orders", text))?;
        Some((record.state, record.ended, record.runs))
    }

    /// Waits, at most ten minutes of the test's time, until the key stands so.
    pub(crate) async fn until(&self, text: &str, state: State) {
        let there = async {
            while self.stands(text).map(|stands| stands.0) != Some(state) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(seconds(600), there).await.is_err() {
            panic!("{text} never became {state:?}: {:?}", self.stands(text));
        }
    }
}

pub(crate) const DONE: Option<(State, Ended, u32)> = Some((State::Done, Ended::Fresh, 0));
pub(crate) const FAILED: Option<(State, Ended, u32)> = Some((State::Released, Ended::Failed, 1));

pub(crate) const RAN: (u16, &str, Level) = (200, "ran", Level::INFO);
/// Committed, but the handler failed after that.
pub(crate) const RAN_LOUDLY: (u16, &str, Level) = (200, "ran", Level::ERROR);
pub(crate) const ROLLED_BACK: (u16, &str, Level) = (500, "failed", Level::WARN);
pub(crate) const UNAVAILABLE: (u16, &str, Level) = (503, "unavailable", Level::ERROR);
pub(crate) const DUPLICATE: (u16, &str, Level) = (204, "duplicate", Level::DEBUG);
pub(crate) const MISUSE: (u16, &str, Level) = (500, "misuse", Level::ERROR);

/// Sends the message and asks that answer, header and log line tell the same.
pub(crate) async fn push(app: &Router, id: &str) -> (u16, &'static str, Level) {
    let (log, _guard) = Log::capture();
    let answer = Push::empty().id(id).send(app).await;
    let outcome = answer.outcome.expect("the layer names its outcome").name();
    let line = log.outcome();
    assert_eq!((line.field("event"), line.field("status")), (outcome, answer.status.as_str()));
    // Shown where the test fails.
    println!("{id}: {} {outcome} {}", answer.status, line.field("error"));
    assert_eq!(answer.acked(), matches!(outcome, "ran" | "duplicate"), "{answer:?}");
    (answer.status.as_u16(), outcome, line.level)
}

/// One effect, committed with the key.
pub(crate) async fn effect(sql: Arc<FakeSql>, lease: Lease) -> Result<(), BoxError> {
    let mut tx = sql.begin();
    tx.insert(lease.key().text());
    Ok(lease.commit(&sql, tx).await?)
}

/// The same, by a handler that looks at no error.
pub(crate) async fn careless(sql: Arc<FakeSql>, lease: Lease) -> Result<(), BoxError> {
    let _ = effect(sql, lease).await;
    Ok(())
}

/// The same, by a handler that commits by itself.
pub(crate) async fn by_hand(sql: Arc<FakeSql>, lease: Lease) -> Result<(), BoxError> {
    let completion = lease.completion(&sql).await?;
    let mut tx = sql.begin();
    tx.insert(lease.key().text());
    completion.execute(&mut tx).await?;
    Ok(sql.commit_by_hand(tx).await?)
}

/// Counts runs.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    /// Counts one more, and tells how many there were before.
    pub(crate) fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}
