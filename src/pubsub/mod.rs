//! One push, read: every shape that a delivery arrives in, and the rules that find its key.
//!
//! Pub/Sub wraps a message into JSON, or sends its data bare with the rest as headers; Eventarc puts
//! either into a CloudEvent. [`Delivery::decode`] tells them apart and reads each into the same
//! [`Delivery`]. A [`KeyRule`] then says what is done once: the message, or something in it.
//!
//! ```
//! use bytes::Bytes;
//! use http::HeaderMap;
//! use pushonce::pubsub::{Delivery, attribute, json_pointer, message_id};
//!
//! let body = r#"{"message":{"messageId":"7","data":"eyJwbyI6MTJ9","attributes":{"region":"eu"}}}"#;
//! let delivery = Delivery::decode(&HeaderMap::new(), Bytes::from_static(body.as_bytes()))?;
//!
//! assert_eq!(message_id().resolve(&delivery)?.as_deref(), Some("7"));
//! assert_eq!(json_pointer("/po").resolve(&delivery)?.as_deref(), Some("12"));
//! // A part that is missing is no key at all: nothing that merely shares the rest is taken for the same.
//! assert_eq!(json_pointer("/po").and(attribute("country")).resolve(&delivery)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod cloud_event;
pub(crate) mod dead_letter;
mod delivery;
pub(crate) mod extract;
mod json;
mod key_rule;
pub(crate) mod outcome;
mod payload;
mod pointer;
mod refused;
mod trace;
mod unwrapped;
mod wrapped;

pub use self::cloud_event::CloudEvent;
pub use self::delivery::{Delivery, Shape};
pub use self::extract::{Ack, Failure, NotExtracted, PubSub};
pub use self::key_rule::{KeyRule, KeyRuleError, attribute, json_pointer, key_fn, message_id};
pub use self::outcome::{Outcome, Verdict, outcome_of};
pub use self::refused::{BadData, Refused};
pub use self::trace::Trace;
