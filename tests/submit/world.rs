//! What the tests submit with: a publisher that counts and fails as it is told, and a store that is watched.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::submit::{Submission, SubmitError, Submitted, Submitter, TaskId};
use pushonce::{Key, Store};
use serde_json::json;
use tokio::sync::Notify;

/// For what must come about, on a machine that may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// What becomes of the next publish.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Refuse,
    Unavailable,
    /// Published, and nobody knows.
    Unanswered,
    Panic,
    /// Published, and never answered.
    Hang,
}

/// A publisher that keeps what it was given.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) messages: Mutex<Vec<(String, Message)>>,
    faults: Mutex<VecDeque<Fault>>,
    /// Told when a publish has begun to hang.
    pub(crate) hangs: Arc<Notify>,
}

impl Counted {
    pub(crate) fn next(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    /// The tasks whose messages were published, in order.
    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        let messages = self.messages.lock().unwrap();
        messages.iter().map(|(_, message)| message.attributes["task-id"].parse().unwrap()).collect()
    }
}

impl Publisher for Counted {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let what = || "planned".to_owned();
            let fault = self.faults.lock().unwrap().pop_front();
            match fault {
                Some(Fault::Refuse) => return Err(PublishError::Refused { what: what(), source: None }),
                Some(Fault::Unavailable) => {
                    return Err(PublishError::Unavailable { what: what(), source: None });
                }
                Some(Fault::Panic) => panic!("planned"),
                _ => {}
            }
            let number = {
                let mut messages = self.messages.lock().unwrap();
                messages.push((topic.to_owned(), message.clone()));
                messages.len()
            };
            match fault {
                Some(Fault::Unanswered) => Err(PublishError::Unanswered { what: what(), source: None }),
                Some(Fault::Hang) => {
                    self.hangs.notify_one();
                    pending().await
                }
                _ => Ok(number.to_string().into()),
            }
        })
    }
}

/// A store that remembers which keys it was asked for, and holds a call up if it is told to.
#[derive(Debug)]
pub(crate) struct Watched {
    inner: Arc<dyn Store>,
    keys: Mutex<Vec<Key>>,
    /// After how many more writes everything hangs, as for a process that is gone.
    pub(crate) left: Mutex<Option<usize>>,
    pub(crate) held: Arc<Notify>,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, keys: Mutex::default(), left: Mutex::new(None), held: Arc::default() })
    }

    /// The only key of that space that was asked for.
    pub(crate) fn key(&self, space: &str) -> Key {
        let keys = self.keys.lock().unwrap();
        let mut of: Vec<_> = keys.iter().filter(|key| key.consumer().as_str() == space).collect();
        of.dedup();
        let [key] = of[..] else { panic!("not one key of {space}: {of:?}") };
        key.clone()
    }

    pub(crate) fn spaces(&self) -> Vec<String> {
        self.keys.lock().unwrap().iter().map(|key| key.consumer().to_string()).collect()
    }

    fn saw(&self, key: &Key) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).push(key.clone());
    }
}

impl Store for Watched {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.saw(key);
        self.inner.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        self.saw(key);
        Box::pin(async move {
            let held = match &mut *self.left.lock().unwrap() {
                Some(0) => true,
                Some(left) => {
                    *left -= 1;
                    false
                }
                None => false,
            };
            if held {
                self.held.notify_one();
                return pending().await;
            }
            self.inner.swap(key, seen, next).await
        })
    }
}

/// A producer of its own connections.
pub(crate) struct World {
    pub(crate) store: Arc<Watched>,
    pub(crate) publisher: Arc<Counted>,
    pub(crate) submitter: Submitter,
}

impl World {
    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        let (store, publisher) = (Watched::new(store), Arc::new(Counted::default()));
        let submitter = Submitter::new(store.clone(), publisher.clone(), "tasks").checked().unwrap();
        Self { store, publisher, submitter }
    }

    /// Another setting of its submitter.
    pub(crate) fn with(self, set: impl FnOnce(Submitter) -> Submitter) -> Self {
        Self { submitter: set(self.submitter).checked().unwrap(), ..self }
    }

    /// The submission that most tests make.
    pub(crate) fn charge(&self, key: &str) -> Submission {
        self.submitter.submit("charge", &json!({ "order": 1, "amount": 12 })).idempotency_key(key)
    }

    /// The same key with another input.
    pub(crate) fn other(&self, key: &str) -> Submission {
        self.submitter.submit("charge", &json!({ "order": 2, "amount": 12 })).idempotency_key(key)
    }

    pub(crate) async fn submitted(&self, key: &str) -> TaskId {
        let submitted = self.charge(key).send().await.unwrap();
        assert!(!submitted.duplicate);
        submitted.task.task_id
    }
}

pub(crate) type Answer = Result<Submitted, SubmitError>;

pub(crate) fn is_conflict(answer: &Answer) -> bool {
    matches!(answer, Err(SubmitError::Conflict))
}

/// The task that is in progress, by the error.
pub(crate) fn in_progress(answer: &Answer) -> Option<TaskId> {
    match answer {
        Err(SubmitError::InProgress { task_id, .. }) => Some(*task_id),
        _ => None,
    }
}

/// The finished task that is replayed.
pub(crate) fn replayed(answer: &Answer) -> Option<TaskId> {
    answer.as_ref().ok().filter(|submitted| submitted.duplicate).map(|submitted| submitted.task.task_id)
}

/// Waits until the condition brings something.
pub(crate) async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let comes = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, comes).await.unwrap_or_else(|_| panic!("waited in vain until {what}"))
}
