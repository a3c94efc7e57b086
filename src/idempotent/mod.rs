//! `IdempotentLayer`: one recorded success per key for the pushes of a route.
//!
//! ```
//! use std::sync::Arc;
//! use axum::{Router, routing::post};
//! use pushonce::{Ack, Failure, IdempotentLayer, PubSub, Store, json_pointer, store::Memory};
//!
//! # #[derive(serde::Deserialize)] struct Order { id: String }
//! async fn charge(PubSub(order): PubSub<Order>) -> Result<Ack, Failure> {
//!     println!("charging {}", order.id);
//!     Ok(Ack)
//! }
//!
//! let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let layer = IdempotentLayer::new("charge", store).key(json_pointer("/id"));
//! let app: Router = Router::new().route("/charge", post(charge).layer(layer));
//! # let _ = app;
//! ```
//!
//! # What it does with a request
//!
//! A request that is not a POST passes through untouched. A POST is read (at most
//! [`body_limit`](IdempotentLayer::body_limit) bytes, within
//! [`body_timeout`](IdempotentLayer::body_timeout)), decoded once into a
//! [`Delivery`](crate::Delivery), and its key is found. Then the key is claimed, the handler runs with
//! the same body (and `content-type: application/json` where the push has none, as axum's `Json`
//! asks for one) under a [`Lease`](crate::Lease), its answer is read to the end, and the key is
//! completed or released *before* the answer goes out. All of that outlives its caller: a
//! caller that hangs up stops nothing. The handler then goes on in another task, so it must not need
//! task-locals that a middleware around the layer has set.
//!
//! Work that a handler spawns and does not await is not guarded. Work inside a streamed body is: the
//! body is read, up to [`response_limit`](IdempotentLayer::response_limit), before the key is completed.
//!
//! # Dead letters
//!
//! A handler that finds a message which can never succeed returns
//! [`Failure::dead_letter`](crate::Failure::dead_letter), or any error with a
//! [`DeadLetter`](crate::DeadLetter) in its chain. With
//! [`dead_letters`](IdempotentLayer::dead_letters) the message then goes to that topic while its claim
//! stands, its key is done as rejected, and it is acked. `docs/failures.md` has what happens when any of
//! that fails.
//!
//! # Messages that somebody follows
//!
//! With [`follow`](IdempotentLayer::follow) a record that messages are about, such as a task's, moves as
//! they fare: see [`Follow`].
//!
//! # What is logged
//!
//! One line for each delivery, through [`tracing`], and every line that is written while it is worked
//! on, the handler's own too, inside of a span `delivery` with consumer, message id, key and trace:
//! `docs/telemetry.md` has the fields. [`key_in_logs`](IdempotentLayer::key_in_logs) keeps keys out.
//!
//! # What is answered
//!
//! What each [`Outcome`](crate::Outcome) answers is in the README's table; the header
//! `pushonce-outcome` names it. A handler's success is always answered 200, whatever 2xx it
//! was, since Pub/Sub acks only some of them.

mod answer;
mod body;
mod config;
mod follow;
mod followed;
mod handler;
mod judged;
mod keys;
mod layer;
mod rejected;
mod report;
mod service;
mod span;

pub use self::config::{InvalidLayer, PayloadCheck};
pub use self::follow::{End, Follow, Wanted};
pub use self::layer::IdempotentLayer;
pub use self::report::Report;
pub use self::service::{IdempotentService, ResponseFuture};
