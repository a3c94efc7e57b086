//! `InProcess`: a publisher that pushes straight into a service of this process.

mod push;
mod queue;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use self::push::Push;
use self::queue::Queue;
use super::{Message, PublishError, Publisher, limits};
use crate::store::{BoxError, BoxFuture};
use crate::task;
use crate::time::{Clock, system_clock};

/// A publisher that pushes straight into a service of this process, such as an axum `Router`: for tests,
/// a demo, and the first hour with submission. A handle: clones share what waits to be delivered.
///
/// [`publish`](Publisher::publish) takes what Pub/Sub takes, answers an id at once, and pushes in the
/// background: the wrapped body that Pub/Sub sends, to the path `/`, again after a growing pause until
/// it is acked. Messages of one ordering key and topic go one at a time, in the order of their publishes.
///
/// It is **not** a queue. What is not delivered when the process ends is gone, and so is a message that
/// no [attempt](Self::attempts) brought an ack (an error in the log names its id). Nothing leaves the
/// process: another instance gets no share. In production publish to Pub/Sub, by `CloudPubSub`.
///
/// ```
/// use axum::{Router, routing::post};
/// use pushonce::publish::{InProcess, Message, Publisher as _};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pushonce::publish::PublishError> {
/// let app: Router = Router::new().route("/", post(async |body: String| println!("{body}")));
/// let publisher = InProcess::new(app);
/// publisher.publish("projects/p/topics/t", &Message { data: "hello".into(), ..Message::default() }).await?;
/// publisher.idle().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InProcess {
    settings: Settings,
    queue: Arc<Queue>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone)]
struct Settings {
    path: String,
    topics: BTreeMap<String, String>,
    ack_deadline: Duration,
    attempts: u32,
    first_pause: Duration,
    longest_pause: Duration,
}

impl InProcess {
    /// A publisher that pushes into this service.
    pub fn new<S, R>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>, Error: Into<BoxError>, Future: Send>,
        S: Clone + Send + Sync + 'static,
        R: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let publisher = Self::unconnected();
        publisher.connect(service);
        publisher
    }

    /// A publisher whose service is still to be made: for a service that publishes itself, and so needs
    /// the publisher first. Messages wait for [`connect`](Self::connect).
    pub fn unconnected() -> Self {
        let settings = Settings {
            path: "/".to_owned(),
            topics: BTreeMap::new(),
            ack_deadline: Duration::from_secs(10),
            attempts: 20,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
        };
        Self { settings, queue: Arc::default(), clock: system_clock() }
    }

    /// Pushes into this service from now on, also what was published before. A service that holds the
    /// publisher in its turn is never dropped.
    pub fn connect<S, R>(&self, service: S)
    where
        S: Service<Request<Full<Bytes>>, Response = Response<R>, Error: Into<BoxError>, Future: Send>,
        S: Clone + Send + Sync + 'static,
        R: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        self.queue.connect(push::erased(service));
    }

    /// Where messages are pushed to. Default `/`.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.settings.path = path.into();
        self
    }

    /// Where the messages of that topic are pushed to, if not to [`path`](Self::path): such as the
    /// receiver of dead letters.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<String>, path: impl Into<String>) -> Self {
        self.settings.topics.insert(topic.into(), path.into());
        self
    }

    /// How long a push may take until it is hung up on, and sent again. Default 10 seconds, as Pub/Sub's.
    #[must_use]
    pub fn ack_deadline(mut self, deadline: Duration) -> Self {
        self.settings.ack_deadline = deadline;
        self
    }

    /// How often a message is pushed at most. Default 20, which is some two minutes of failures.
    #[must_use]
    pub fn attempts(mut self, most: u32) -> Self {
        self.settings.attempts = most;
        self
    }

    /// The pause after the first push that was not acked, and the longest: it doubles in between.
    /// Default 100 ms and 10 seconds.
    #[must_use]
    pub fn pause(mut self, first: Duration, longest: Duration) -> Self {
        (self.settings.first_pause, self.settings.longest_pause) = (first, longest);
        self
    }

    /// Ends when nothing waits to be delivered: all was acked or given up.
    pub async fn idle(&self) {
        self.queue.idle().await;
    }
}

impl Publisher for InProcess {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            limits::check(topic, message)?;
            if task::draining() {
                let what = "the process shuts down, and would not deliver it".to_owned();
                return Err(PublishError::Unavailable { what, source: None });
            }
            let path = self.settings.topics.get(topic).unwrap_or(&self.settings.path);
            let push = Push::new(topic, path, message, self.clock.wall()).map_err(|error| {
                let what = format!("{path:?} is no path to push to");
                PublishError::Refused { what, source: Some(error.into()) }
            })?;
            let id = push.id().clone();
            self.queue.clone().push(push, self.settings.clone());
            Ok(id)
        })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("settings", &self.settings).finish_non_exhaustive()
    }
}
