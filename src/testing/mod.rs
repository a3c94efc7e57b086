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

mod answer;
mod clock;
mod crash;
#[cfg(feature = "oidc")]
mod key_server;
mod push;
#[cfg(feature = "oidc")]
mod signing;

pub use self::answer::Answer;
pub use self::clock::{ManualClock, TokioClock};
pub use self::crash::{CrashReport, crash_window};
#[cfg(feature = "oidc")]
pub use self::key_server::KeyServer;
pub use self::push::Push;
#[cfg(feature = "oidc")]
pub use self::signing::Claims;

/// Ends a test that asked for what cannot be.
#[expect(clippy::panic, reason = "it ends a test, as an assertion does; documented where it may be called")]
fn impossible(why: impl std::fmt::Display) -> ! {
    panic!("{why}")
}
