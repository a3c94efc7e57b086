//! What an operator does to a store: look at keys, reset them, and collect what has expired.
//!
//! [`inspect`] and [`reset`] work on every [`Store`](crate::Store), since they need no more of it than a
//! claim does. To list and to collect a store has to be a [`Maintain`], as all of this crate's are, and
//! so it has for [`uncertain`], the ledger of work that succeeded although nobody recorded it.

pub use crate::lease::{Force, Inspected, Reset, Status, inspect, reset};
pub use crate::lease::{How, Settled, Uncertain, UncertainPage, Why, uncertain};
pub use crate::store::{Filter, Found, Listing, Maintain, Page};
