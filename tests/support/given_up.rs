//! Who takes the dead letters, and who wants nothing any more.

use std::sync::Arc;

use pushonce::idempotent::{End, Follow, Wanted};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxError, BoxFuture};

/// A topic that takes everything.
#[derive(Debug)]
pub(crate) struct Taken;

impl Publisher for Taken {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Ok("1".into()) })
    }
}

/// Wants nothing any more.
#[derive(Debug)]
pub(crate) struct Over;

impl Follow for Over {
    fn attribute(&self) -> &str {
        "task-id"
    }
    fn wanted<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Wanted, BoxError>> {
        Box::pin(async { Ok(Wanted::No { why: "cancelled" }) })
    }
    fn ended<'a>(&'a self, _: &'a str, _: End) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Ok(()) })
    }
    fn redriven<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Ok(()) })
    }
}
