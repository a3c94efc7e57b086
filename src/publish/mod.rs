//! The publisher port: one message to one topic, sent once, and an honest word on whether it arrived.

#[cfg(feature = "publish")]
mod cloud;
mod in_process;
mod limits;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

#[cfg(feature = "publish")]
pub use self::cloud::{CloudPubSub, CloudPubSubBuilder, InvalidPublisher};
pub use self::in_process::InProcess;
use crate::store::{BoxError, BoxFuture};

/// Publishes messages. One attempt for each call: a message that is sent again by itself is a second
/// message with a second id, so whoever calls decides about a retry.
pub trait Publisher: fmt::Debug + Send + Sync + 'static {
    /// Publishes to the topic (`projects/p/topics/t`), and answers the message's id once Pub/Sub has
    /// confirmed it.
    ///
    /// # Errors
    /// [`PublishError`], which says whether the message may be there all the same.
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>>;
}

impl<P: Publisher + ?Sized> Publisher for Arc<P> {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        (**self).publish(topic, message)
    }
}

/// A message to be published. `Debug` shows neither its data nor the values of its attributes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Any bytes; Pub/Sub takes up to 10 MB of all, and no message without data and attributes.
    pub data: Bytes,
    /// At most 100, with names of at most 256 bytes and values of at most 1024.
    pub attributes: BTreeMap<String, String>,
    /// Messages of one ordering key are delivered in order, where the subscription asks for that.
    pub ordering_key: Option<String>,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("data_len", &self.data.len())
            .field("attributes", &self.attributes.keys())
            .field("ordered", &self.ordering_key.is_some())
            .finish()
    }
}

/// A message that was not confirmed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// It was not published and never will be as it is: too large, no such topic, not permitted.
    /// Mend what the text says.
    #[error("not published: {what}")]
    Refused {
        /// What was refused.
        what: String,
        /// What the publisher said.
        #[source]
        source: Option<BoxError>,
    },
    /// It was not published; another try may succeed.
    #[error("not published for now: {what}")]
    Unavailable {
        /// What failed.
        what: String,
        /// What the publisher said.
        #[source]
        source: Option<BoxError>,
    },
    /// Nobody knows whether it was published. Publish it again only where its consumer drops a copy.
    #[error("nobody knows whether it was published: {what}")]
    Unanswered {
        /// What failed.
        what: String,
        /// What the publisher said.
        #[source]
        source: Option<BoxError>,
    },
}

impl PublishError {
    /// Whether the message may be there, or may come, all the same.
    pub fn may_have_published(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }

    /// Whether another try may succeed.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}
