//! What is kept of a dead letter.

/// A dead letter, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterEntry {
    /// Its id in this store.
    pub id: String,
}

/// Who sent a message to the dead-letter topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Pub/Sub, after the subscription's attempts.
    Attempts,
    /// A handler, by `Failure::dead_letter`.
    Handler,
}
