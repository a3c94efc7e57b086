//! `Follow`: whoever keeps a record of what a message is about, and has it moved as the message fares.

use std::fmt;

use crate::store::{BoxError, BoxFuture};

/// Keeps a record of what messages are about (a task), and moves it as they fare.
///
/// Messages are known by an [attribute](Self::attribute) that holds the record's id. Under a layer that
/// is followed that id is the message's key, so a second copy of the message does no harm. The order is:
/// [`wanted`](Self::wanted), claim, work, done, [`ended`](Self::ended), ack. A crash between the last
/// three heals, because the duplicate that is delivered then is told to `ended` too.
///
/// Every call is made at least once and may come late or twice: it must be idempotent, and must leave
/// alone an id that it does not know.
pub trait Follow: fmt::Debug + Send + Sync + 'static {
    /// The attribute that holds the id.
    fn attribute(&self) -> &str;

    /// Whether a text can be such an id. A message with another one is somebody else's: it has the key that
    /// the layer's rule says, and is not followed.
    fn is_id(&self, _: &str) -> bool {
        true
    }

    /// Asked before the claim: whether the work is still wanted. An id that is not known is. It only looks:
    /// what becomes of work that is skipped is told to [`ended`](Self::ended).
    ///
    /// # Errors
    /// Anything: nothing is claimed, and the delivery is answered 503.
    fn wanted<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Wanted, BoxError>>;

    /// Told after the end of the work is recorded, before the ack.
    ///
    /// # Errors
    /// Anything: a delivery whose end is recorded is answered 503, and its redelivery tells it again.
    fn ended<'a>(&'a self, id: &'a str, end: End) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Told before a dead letter is published again: its work is to run once more.
    ///
    /// # Errors
    /// Anything: nothing is published.
    fn redriven<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), BoxError>>;
}

/// Whether the work of a message is still wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// It is.
    Yes,
    /// It is not (cancelled): acked without a run.
    No {
        /// Why, in a word, for the log.
        why: &'static str,
    },
    /// It was to begin before now: acked without a run, unless it has begun.
    Late {
        /// Why, in a word, for the log.
        why: &'static str,
    },
}

/// How the work of a message ended for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It succeeded.
    Completed,
    /// It went to the dead-letter topic.
    DeadLettered,
    /// `at_most_once`: it failed or crashed after its mark, and will not run again.
    Lost,
    /// It was not wanted any more, and is skipped.
    Skipped,
}
