//! The key spaces of submission, and what their keys are called where a store keeps objects.

use sha2::{Digest as _, Sha256};

use super::{Consumer, hex};

/// A key space of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Idempotency keys. A text is scope and key, [joined](super::join).
    Idempotency,
    /// Tasks. A text is a task's id.
    Tasks,
}

impl Space {
    /// The space that is the consumer of that name.
    #[cfg(any(feature = "bucket-s3", feature = "bucket-gcs"))]
    pub(crate) fn of(consumer: &str) -> Option<Self> {
        [Self::Idempotency, Self::Tasks].into_iter().find(|space| space.consumer().as_str() == consumer)
    }

    /// Its name, and the folder of its objects.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idempotency => "idempotency",
            Self::Tasks => "tasks",
        }
    }

    pub(crate) fn consumer(self) -> Consumer {
        Consumer::reserved(self.name())
    }
}

/// The hash that names the object of an idempotency key: the SHA-256 of its text, in hex.
pub(crate) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// The object of a task, below the prefix of the store: `tasks/{shard}/{id}.json`.
pub(crate) fn task(id: &str) -> String {
    // The last digit is random; the first ones are the time, and would make one hot range.
    let shard = id.chars().next_back().unwrap_or('0');
    format!("{}/{shard}/{id}.json", Space::Tasks.name())
}
