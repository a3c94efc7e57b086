//! The verbs on the memory store, behind a store that makes faults, on paused time.

mod at_most_once;
mod callers;
mod cancelling;
mod completions;
mod errors;
mod misuse;
mod mutex;
mod once;
mod panics;
mod renewal;
mod waiting;
mod world;
