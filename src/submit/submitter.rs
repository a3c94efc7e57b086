//! `Submitter`: where submissions are recorded and published.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::{InvalidSubmission, Overload, Submission, Tasks, names};
use crate::publish::Publisher;
use crate::store::Store;
use crate::time::{Clock, system_clock};

/// Stores keep microseconds, and no store answers in less than this.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest time that anything is kept or awaited: a year.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Records submissions in a store and publishes them. A handle: clones share one.
#[derive(Clone)]
pub struct Submitter(pub(super) Arc<Settings>);

pub(super) type Hook = dyn Fn(Option<&str>) -> Option<Overload> + Send + Sync;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) store: Arc<dyn Store>,
    pub(super) publisher: Arc<dyn Publisher>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) topic: String,
    pub(super) queues: BTreeMap<String, String>,
    pub(super) creating_lease: Duration,
    pub(super) idempotency_ttl: Duration,
    pub(super) task_ttl: Duration,
    pub(super) publish_timeout: Duration,
    pub(super) backpressure: Option<Arc<Hook>>,
}

impl Submitter {
    /// A submitter that publishes to that topic (`projects/p/topics/t`).
    pub fn new(store: Arc<dyn Store>, publisher: Arc<dyn Publisher>, topic: impl Into<String>) -> Self {
        Self(Arc::new(Settings {
            store,
            publisher,
            clock: system_clock(),
            topic: topic.into(),
            queues: BTreeMap::new(),
            creating_lease: Duration::from_secs(30),
            idempotency_ttl: DAY,
            task_ttl: 7 * DAY,
            publish_timeout: Duration::from_secs(10),
            backpressure: None,
        }))
    }

    fn set(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(Arc::make_mut(&mut self.0));
        self
    }

    /// Publishes the tasks of that queue to a topic of its own. A queue without one uses the submitter's:
    /// it is a name, within which keys count.
    #[must_use]
    pub fn queue(self, name: impl Into<String>, topic: impl Into<String>) -> Self {
        self.set(|settings| {
            settings.queues.insert(name.into(), topic.into());
        })
    }

    /// How long a submission that is being created keeps others of its key out: after a crash the next
    /// one takes over, with the same task. Default 30 seconds. Make it longer than the store and the
    /// publisher take together; a submission that takes longer may see its message published twice,
    /// which its worker drops by the task's id.
    #[must_use]
    pub fn creating_lease(self, lease: Duration) -> Self {
        self.set(|settings| settings.creating_lease = lease)
    }

    /// How long a key names its task, unless its submission says otherwise. Default 24 hours.
    #[must_use]
    pub fn idempotency_ttl(self, ttl: Duration) -> Self {
        self.set(|settings| settings.idempotency_ttl = ttl)
    }

    /// How long the record of a task is kept at least. Default 7 days, as long as Pub/Sub keeps its message.
    #[must_use]
    pub fn task_ttl(self, ttl: Duration) -> Self {
        self.set(|settings| settings.task_ttl = ttl)
    }

    /// How long the publisher may take. Default 10 seconds.
    #[must_use]
    pub fn publish_timeout(self, limit: Duration) -> Self {
        self.set(|settings| settings.publish_timeout = limit)
    }

    /// Asked with the queue of each submission, before the store is. What it says counts for new tasks:
    /// a submission whose key is known is answered as if nothing were in the way.
    #[must_use]
    pub fn backpressure(
        self,
        hook: impl Fn(Option<&str>) -> Option<Overload> + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.backpressure = Some(Arc::new(hook)))
    }

    /// Gives ids and times by another clock, also to its [`tasks`](Self::tasks): for tests.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.set(|settings| settings.clock = clock)
    }

    /// Refuses what can never work: call it last, at start, so that no submission has to.
    ///
    /// # Errors
    /// [`InvalidSubmitter`]. Do not start; mend the program.
    pub fn checked(self) -> Result<Self, InvalidSubmitter> {
        self.0.checked()?;
        Ok(self)
    }

    /// A submission of a task of that type, whose input is this as JSON.
    pub fn submit(&self, task_type: impl Into<String>, input: &(impl Serialize + ?Sized)) -> Submission {
        let input = serde_json::to_string(input)
            .map_err(|error| InvalidSubmission::Input { what: error.to_string() });
        Submission::json(self, task_type.into(), input)
    }

    /// The same of an input that is JSON already. It is published as it is written.
    pub fn submit_json(&self, task_type: impl Into<String>, input: impl Into<String>) -> Submission {
        Submission::json(self, task_type.into(), Ok(input.into()))
    }

    /// The same of an input that is any bytes.
    pub fn submit_bytes(&self, task_type: impl Into<String>, input: impl Into<Bytes>) -> Submission {
        Submission::bytes(self, task_type.into(), input.into())
    }

    /// The tasks of this submitter's store.
    pub fn tasks(&self) -> Tasks {
        self.0.tasks()
    }
}

impl Settings {
    pub(super) fn checked(&self) -> Result<(), InvalidSubmitter> {
        let times = [
            ("creating_lease", self.creating_lease),
            ("idempotency_ttl", self.idempotency_ttl),
            ("task_ttl", self.task_ttl),
            ("publish_timeout", self.publish_timeout),
        ];
        let wrong = times.into_iter().find(|(_, value)| *value < SHORTEST || *value > LONGEST);
        if let Some((name, value)) = wrong {
            return Err(InvalidSubmitter::Time { name, value });
        }
        for name in self.queues.keys() {
            names::name("queue", name)
                .map_err(|source| InvalidSubmitter::Queue { name: name.clone(), source })?;
        }
        let blank = self.queues.values().chain([&self.topic]).any(|topic| topic.trim().is_empty());
        if blank { Err(InvalidSubmitter::Topic) } else { Ok(()) }
    }

    pub(super) fn tasks(&self) -> Tasks {
        Tasks::by(self.store.clone(), self.clock.clone())
    }
}

/// A submitter that can never work. Nothing was submitted; mend the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSubmitter {
    /// A time cannot be meant.
    #[error("`{name}` is {value:?}: expected at least a millisecond and at most a year")]
    Time {
        /// Which time.
        name: &'static str,
        /// What it is.
        value: Duration,
    },
    /// No submission may name such a queue.
    #[error("no submission can be to the queue `{name}`")]
    Queue {
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: InvalidSubmission,
    },
    /// A topic is blank. What else a topic must be is for the publisher to say.
    #[error("a topic is blank: expected one such as `projects/p/topics/t`")]
    Topic,
}

impl fmt::Debug for Submitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter")
            .field("store", &self.0.store)
            .field("publisher", &self.0.publisher)
            .field("topic", &self.0.topic)
            .field("queues", &self.0.queues)
            .finish_non_exhaustive()
    }
}
