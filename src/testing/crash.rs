//! The crash window: a process dies after its effect and before its record, and the message comes again.

use axum_core::body::Body;
use http::{Request, Response};
use tower_service::Service;

use super::{Answer, Push, impossible};
use crate::key::Key;
use crate::lease::History;
use crate::store::record::{Record, State};
use crate::store::{BoxError, StoreError, Stored, chaos::Chaos};

/// What became of a message whose first holder died.
///
/// The first delivery has no answer: whoever would have given it was dead.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CrashReport {
    /// The key that the first delivery held and never recorded.
    pub key: Key,
    /// What the second delivery was answered, after the lease had lapsed.
    pub second: Answer,
    /// Whether the handler was run by the second delivery too. Not under `at_most_once`.
    pub ran_twice: bool,
    /// What the second run was told of the first; `None` if it was not recorded.
    pub history: Option<History>,
}

/// Delivers a push, lets its process die between its effect and its record, lets the lease lapse,
/// and delivers it again: the one repeat that no lease can exclude. Whether it does harm is up to
/// the handler's effect, so look at what the effect reached, after this, and count by key.
///
/// ```
/// use std::{collections::HashSet, sync::{Arc, Mutex}};
/// use axum::{Router, extract::State, routing::post};
/// use pushonce::{Ack, IdempotentLayer, Lease, store::{Memory, chaos::Chaos}};
/// use pushonce::testing::{Push, crash_window};
///
/// // The outside world, which drops what it has seen under the same key.
/// type Charges = Arc<Mutex<HashSet<String>>>;
///
/// async fn charge(State(charges): State<Charges>, lease: Lease) -> Ack {
///     charges.lock().unwrap().insert(lease.effect_id("charge"));
///     Ack
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (charges, chaos) = (Charges::default(), Chaos::new(Arc::new(Memory::new())));
/// let route = post(charge).layer(IdempotentLayer::new("charge", chaos.clone()));
/// let app = Router::new().route("/", route).with_state(charges.clone());
///
/// let report = crash_window(&app, &chaos, Push::empty()).await;
/// assert!(report.ran_twice);
/// assert_eq!(charges.lock().unwrap().len(), 1);
/// # }
/// ```
///
/// # What it simulates
///
/// The guard must work on `chaos`, over whatever store. The first delivery runs until its work has
/// succeeded and its completion is about to be sent. There its caller goes and its task ends: no
/// completion, no retry of it, no answer, no log line, no hook. Then to everybody who reads it the
/// claim is older by its lease, on any clock. Then the push is sent [`again`](Push::again).
///
/// It is still one process: what the handler keeps in memory, and tasks that it spawned, live on.
/// A crash *during* the handler is not simulated, and only your own handler knows where it would hurt.
///
/// # Panics
/// If there is no such window: the first delivery was answered, since its handler failed, was
/// skipped (take a fresh key), or is not guarded on `chaos`. Also if the store under `chaos` fails.
/// Nothing else may use `chaos` at the same time.
pub async fn crash_window<S, R>(service: &S, chaos: &Chaos, push: Push) -> CrashReport
where
    S: Service<Request<Body>, Response = Response<R>, Error: Into<BoxError>> + Clone,
    R: http_body::Body<Error: Into<BoxError>>,
{
    let trap = chaos.trap();
    let dying = tokio::select! {
        biased;
        dying = trap => dying.unwrap_or_else(|_| impossible("another crash was planned on the same store")),
        answer = push.send(service) => impossible(format_args!(
            "there is no crash window: the first delivery was answered {} ({}) before a key of this store was to be recorded",
            answer.status,
            answer.outcome.map_or("no outcome", |outcome| outcome.name()),
        )),
    };
    // The caller has gone by now: a process that dies answers nobody.
    let key = dying.key.clone();
    dying.strike();
    let before = standing(chaos.lapse(&key).await);
    let second = push.again().send(service).await;
    let after = standing(chaos.beneath(&key).await);
    CrashReport { ran_twice: ran_again(&before, &after), history: told(&before, &after), key, second }
}

fn standing(read: Result<Option<Stored>, StoreError>) -> Record {
    match read {
        Ok(Some(stored)) => stored.record,
        Ok(None) => impossible("the store has lost the claim"),
        Err(error) => impossible(format_args!("the store under chaos failed: {error}")),
    }
}

/// A second claim has a higher fence; one that was undone before its work began leaves the runs alone.
fn ran_again(before: &Record, after: &Record) -> bool {
    after.fence > before.fence && (after.state != State::Released || after.runs > before.runs + 1)
}

/// A recorded key keeps the history that its last run was told.
fn told(before: &Record, after: &Record) -> Option<History> {
    (after.state == State::Done && after.fence > before.fence).then(|| History::of(after))
}
