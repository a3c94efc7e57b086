//! The named points at which a process is killed, and what makes it stand still there.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::{Key, Store};

/// Where the records of keys and of tasks are kept.
pub(crate) const KEYS: &str = "pushonce-idempotency";
pub(crate) const TASKS: &str = "pushonce-tasks";

/// Between two steps of a submission, or of the end of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The key's record is written, the task's is not.
    AfterKeyRecord,
    /// The task's record is written, its message is not published.
    AfterTaskRecord,
    /// The message is published, the key's record is not moved to processing.
    AfterPublish,
    /// The work is recorded as done, the task's record is not moved.
    AfterDone,
    /// The task's record is moved, its key's is not.
    BetweenMoves,
}

impl Point {
    pub(crate) const ALL: [Self; 5] = [
        Self::AfterKeyRecord,
        Self::AfterTaskRecord,
        Self::AfterPublish,
        Self::AfterDone,
        Self::BetweenMoves,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AfterKeyRecord => "after-key-record",
            Self::AfterTaskRecord => "after-task-record",
            Self::AfterPublish => "after-publish",
            Self::AfterDone => "after-done",
            Self::BetweenMoves => "between-moves",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name)
    }

    /// Whether it is a submission that dies there; otherwise it is the worker.
    pub(crate) const fn is_of_submission(self) -> bool {
        matches!(self, Self::AfterKeyRecord | Self::AfterTaskRecord | Self::AfterPublish)
    }

    /// What the process says when it stands there.
    pub(crate) fn announcement(self) -> String {
        format!("it stands at {}", self.name())
    }

    /// The space of records of which a write that is acknowledged is the point.
    const fn after(self) -> Option<&'static str> {
        match self {
            Self::AfterKeyRecord => Some(KEYS),
            Self::AfterTaskRecord => Some(TASKS),
            Self::AfterPublish | Self::AfterDone | Self::BetweenMoves => None,
        }
    }

    /// The space of records of which a write that is not sent yet is the point.
    const fn before(self) -> Option<&'static str> {
        match self {
            Self::AfterDone => Some(TASKS),
            Self::BetweenMoves => Some(KEYS),
            Self::AfterKeyRecord | Self::AfterTaskRecord | Self::AfterPublish => None,
        }
    }

    /// Says so, and lets this process do nothing any more. Its runtime has one thread, which is this one:
    /// neither a time limit nor anything in the background goes on.
    fn stand_still(self) -> ! {
        let mut out = std::io::stdout();
        out.write_all(format!("{}\n", self.announcement()).as_bytes()).unwrap();
        out.flush().unwrap();
        loop {
            std::thread::park();
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A store or a publisher that passes everything on, up to its point.
#[derive(Debug)]
pub(crate) struct UpTo<T>(pub(crate) Option<Point>, pub(crate) T);

impl Store for UpTo<Arc<dyn Store>> {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.1.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let space = Some(key.consumer().as_str());
        Box::pin(async move {
            if let Some(point) = self.0.filter(|point| point.before() == space) {
                point.stand_still();
            }
            let swapped = self.1.swap(key, seen, next).await;
            if let Some(point) = self.0.filter(|point| point.after() == space)
                && matches!(swapped, Ok(Swap::Written(_)))
            {
                point.stand_still();
            }
            swapped
        })
    }
}

impl Publisher for UpTo<Arc<dyn Publisher>> {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let published = self.1.publish(topic, message).await;
            match self.0 {
                Some(point @ Point::AfterPublish) if published.is_ok() => point.stand_still(),
                _ => published,
            }
        })
    }
}
