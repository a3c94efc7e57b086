//! The publishers: what Pub/Sub gets from one call, and what a service of this process gets pushed.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod in_process;
