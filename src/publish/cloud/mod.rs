//! `CloudPubSub`: the publisher to Google Cloud Pub/Sub, through Google's own library.

mod meaning;

use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use google_cloud_auth::credentials::{self, Credentials, anonymous};
use google_cloud_gax::client_builder::Error as BuilderError;
use google_cloud_gax::retry_policy::{NeverRetry, RetryPolicyExt as _};
use google_cloud_pubsub::client::BasePublisher;
use google_cloud_pubsub::model;
use http::uri::Authority;
use tokio::sync::OnceCell;

use self::meaning::{meant, not_connected};
use super::{Message, PublishError, Publisher, limits};
use crate::store::{BoxError, BoxFuture, tls};

/// Names the emulator's `host:port`. Google's library does not read it; we do.
const EMULATOR: &str = "PUBSUB_EMULATOR_HOST";

/// The publisher to Google Cloud Pub/Sub. A handle: clones share its connection.
///
/// One call is one request with one message, sent at once: the library's own retries, hedging and
/// batching are off, because each of them can make two messages of one, or keep a message back.
///
/// Once a message is with the library it goes out, whatever becomes of the caller: dropping the future
/// (a timeout around it does) takes nothing back, and leaves unknown whether it was published. So does
/// this publisher's own [`timeout`](CloudPubSubBuilder::timeout), which says so:
/// [`PublishError::Unanswered`].
///
/// A failure holds nothing up: the next message of the same ordering key is sent. Whoever needs an order
/// without gaps publishes the failed one again first.
///
/// ```no_run
/// use pushonce::publish::{CloudPubSub, Message, Publisher as _};
///
/// # async fn published() -> Result<(), Box<dyn std::error::Error>> {
/// let publisher = CloudPubSub::from_env()?;
/// let message = Message { data: "hello".into(), ..Message::default() };
/// let id = publisher.publish("projects/p/topics/t", &message).await?;
/// # let _ = id; Ok(()) }
/// ```
#[derive(Clone)]
pub struct CloudPubSub(Arc<Shared>);

struct Shared {
    emulator: Option<Authority>,
    credentials: Credentials,
    timeout: Duration,
    client: OnceCell<BasePublisher>,
}

impl CloudPubSub {
    /// A publisher to Google with the credentials of the environment (Application Default Credentials:
    /// on Cloud Run the service's own account), unless an [emulator](CloudPubSubBuilder::emulator) is named.
    pub fn builder() -> CloudPubSubBuilder {
        CloudPubSubBuilder { emulator: None, timeout: Duration::from_secs(30) }
    }

    /// The same; to the emulator that `PUBSUB_EMULATOR_HOST` (`host:port`) names, where it is set.
    ///
    /// # Errors
    /// [`InvalidPublisher`]: mend the configuration.
    pub fn from_env() -> Result<Self, InvalidPublisher> {
        let builder = Self::builder();
        match env::var(EMULATOR) {
            Ok(host) if !host.trim().is_empty() => builder.emulator(host.trim()).build(),
            _ => builder.build(),
        }
    }

    async fn send(&self, topic: &str, message: &Message) -> Result<Arc<str>, PublishError> {
        let client = self.0.client.get_or_try_init(|| self.0.connect()).await.map_err(not_connected)?;
        // A publisher of the library keeps a task for each ordering key for as long as it lives, and holds
        // a key back for good once a message of it has failed. One for each message does neither; the
        // connection is the client's.
        let publisher = client.publisher(topic).set_message_count_threshold(1).build();
        let id = publisher.publish(as_sent(message)).await.map_err(meant)?;
        Ok(id.into())
    }
}

impl Shared {
    /// Makes the client, which dials at its first request.
    async fn connect(&self) -> Result<BasePublisher, BuilderError> {
        tls::install();
        let builder = BasePublisher::builder()
            .with_credentials(self.credentials.clone())
            .with_retry_policy(NeverRetry.with_time_limit(self.timeout));
        match &self.emulator {
            Some(host) => builder.with_endpoint(format!("http://{host}")).build().await,
            None => builder.build().await,
        }
    }
}

fn as_sent(message: &Message) -> model::Message {
    let sent =
        model::Message::new().set_data(message.data.clone()).set_attributes(message.attributes.clone());
    match &message.ordering_key {
        Some(key) => sent.set_ordering_key(key),
        None => sent,
    }
}

impl Publisher for CloudPubSub {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            limits::check(topic, message)?;
            // The library's own limit does not count the time until it has a token.
            match tokio::time::timeout(self.0.timeout, self.send(topic, message)).await {
                Ok(sent) => sent,
                Err(elapsed) => {
                    let what = format!("{topic} did not answer within {:?}", self.0.timeout);
                    Err(PublishError::Unanswered { what, source: Some(elapsed.into()) })
                }
            }
        })
    }
}

impl fmt::Debug for CloudPubSub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudPubSub")
            .field("emulator", &self.0.emulator)
            .field("timeout", &self.0.timeout)
            .finish_non_exhaustive()
    }
}

/// Sets up a [`CloudPubSub`]. Made by [`CloudPubSub::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct CloudPubSubBuilder {
    emulator: Option<String>,
    timeout: Duration,
}

impl CloudPubSubBuilder {
    /// Publishes to the emulator at `host:port`, in clear and without credentials.
    pub fn emulator(mut self, host: impl Into<String>) -> Self {
        self.emulator = Some(host.into());
        self
    }

    /// How long a publish may take, with the connection and the token that the first one needs. Default
    /// 30 seconds. The same limit goes to Pub/Sub as the deadline of the request.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Makes the publisher. Nothing is dialled before the first message, so that a process starts without
    /// a network; call it inside of a tokio runtime.
    ///
    /// # Errors
    /// [`InvalidPublisher`]: mend the configuration.
    pub fn build(self) -> Result<CloudPubSub, InvalidPublisher> {
        if self.timeout.is_zero() {
            return Err(InvalidPublisher::Timeout);
        }
        let emulator = self.emulator.map(|host| match host.parse::<Authority>() {
            Ok(authority) if authority.port_u16().is_some() && !authority.as_str().contains('@') => {
                Ok(authority)
            }
            _ => Err(InvalidPublisher::Emulator { host }),
        });
        let emulator = emulator.transpose()?;
        let credentials = match &emulator {
            Some(_) => anonymous::Builder::new().build(),
            None => credentials::Builder::default()
                .build()
                .map_err(|error| InvalidPublisher::Credentials { source: error.into() })?,
        };
        let client = OnceCell::new();
        Ok(CloudPubSub(Arc::new(Shared { emulator, credentials, timeout: self.timeout, client })))
    }
}

/// A publisher that cannot be built. Mend the configuration that the text names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPublisher {
    /// The emulator's address is none.
    #[error("the Pub/Sub emulator is to be at {host:?}: expected host:port, such as localhost:8085")]
    Emulator {
        /// What was given.
        host: String,
    },
    /// The environment has credentials that cannot be read.
    #[error("the credentials of the environment (Application Default Credentials) cannot be used")]
    Credentials {
        /// What Google's library said.
        #[source]
        source: BoxError,
    },
    /// A publish may take no time at all.
    #[error("the timeout of the publisher is zero")]
    Timeout,
}
