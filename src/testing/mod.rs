//! What a user needs to test a handler without Google (feature `testing`).
//!
//! ```
//! use std::sync::Arc;
//! use axum::{Router, routing::post};
//! use pushonce::{Ack, IdempotentLayer, Outcome, PubSub, Store, store::Memory, testing::Push};
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let handler = |PubSub(order): PubSub<Value>| async move { assert_eq!(order["po_id"], "1"); Ack };
//! let app = Router::new().route("/", post(handler).layer(IdempotentLayer::new("orders", store)));
//!
//! let push = Push::json(&json!({ "po_id": "1" })).id("m-1").attempt(1);
//! assert_eq!(push.send(&app).await.outcome, Some(Outcome::Ran));
//! assert_eq!(push.again().send(&app).await.outcome, Some(Outcome::Duplicate));
//! # }
//! ```
//!
//! [`Push`] is one delivery, in every shape. [`ManualClock`] and [`TokioClock`] let leases and ttls
//! pass. [`crash_window`] shows whether what a handler does bears the one repeat that no lease can
//! exclude. [`Chaos`](crate::store::chaos::Chaos) makes every other fault of a store. `KeyServer` (with
//! the feature `oidc`) signs the tokens of pushes.
//!
//! # A whole subscription
//!
//! [`PushSimulator`] is what stands before the service: it backs off, counts attempts, hangs up at the
//! ack deadline, keeps order, forwards dead letters, and makes the faults of the way there and back. It
//! waits by tokio's clock, so that in a test with paused time a week of retention passes at once.
//!
//! ```
//! # use std::sync::Arc;
//! # use axum::{Router, routing::post};
//! # use pushonce::{Ack, IdempotentLayer, store::Memory};
//! use pushonce::sizing::Sizing;
//! use pushonce::testing::{Push, PushFault, PushSimulator, TokioClock};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! // In a test: #[tokio::test(start_paused = true)]
//! let clock = Arc::new(TokioClock::new());
//! let layer = IdempotentLayer::new("orders", Arc::new(Memory::with_clock(clock.clone()))).clock(clock);
//! let app: Router = Router::new().route("/", post(async || Ack).layer(layer));
//!
//! // The subscription that the Terraform module deploys, on a bad day.
//! let mut simulator = PushSimulator::new(app)
//!     .sizing(&Sizing::default())
//!     .fault_rate(PushFault::LostAnswer, 0.3)
//!     .fault_rate(PushFault::Twin, 0.3)
//!     .seed(7);
//! for order in 0..100 {
//!     simulator.publish(Push::json(&order));
//! }
//! let report = simulator.run().await;
//! // Printed, the report shows every delivery, its answer, and what became of each message.
//! assert!(report.all_acked(), "{report}");
//! # }
//! ```

mod answer;
mod clock;
mod crash;
#[cfg(feature = "oidc")]
mod key_server;
mod push;
#[cfg(feature = "oidc")]
mod signing;
mod simulator;
mod spelling;

pub use self::answer::Answer;
pub use self::clock::{ManualClock, TokioClock};
pub use self::crash::{CrashReport, crash_window};
#[cfg(feature = "oidc")]
pub use self::key_server::KeyServer;
pub use self::push::Push;
#[cfg(feature = "oidc")]
pub use self::signing::Claims;
pub use self::simulator::{Attempt, DeadLetter, Ending, PushFault, PushSimulator, SimulationReport};
pub use self::spelling::Spelling;

/// Ends a test that asked for what cannot be.
#[expect(clippy::panic, reason = "it ends a test, as an assertion does; documented where it may be called")]
fn impossible(why: impl std::fmt::Display) -> ! {
    panic!("{why}")
}
