//! `CloudPubSub`: the publisher to Google Cloud Pub/Sub, through Google's own library.

use std::sync::Arc;

use super::{Message, PublishError, Publisher};
use crate::store::BoxFuture;

/// The publisher to Google Cloud Pub/Sub.
#[derive(Debug)]
pub struct CloudPubSub(());

/// Sets up a [`CloudPubSub`].
#[derive(Debug)]
pub struct CloudPubSubBuilder(());

/// A publisher that cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPublisher {}

impl Publisher for CloudPubSub {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Err(PublishError::Unavailable { what: "to be built".into(), source: None }) })
    }
}
