//! `Redrive`: a dead letter that is sent again, once.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::turn::alone;
use super::{DeadLetterEntry, DeadLetterState, DeadLetters, RedriveError, Republished, kept};
use crate::idempotent::{End, Follow};
use crate::key::Key;
use crate::lease::{Amend, First, Freed, Place};
use crate::publish::{Message, PublishError, Publisher};
use crate::pubsub::dead_letter::REDRIVEN_FROM;
use crate::time::{micros, within};

/// The most that one publish may take. After that nobody knows.
const PUBLISH: Duration = Duration::from_secs(60);
/// The most attributes that Pub/Sub lets a message have.
const ATTRIBUTES: usize = 100;

/// A redrive that is being set up. Nothing happens before [`to`](Self::to).
///
/// In this order: the rejected key is reset, or the message would be skipped as a duplicate; the task is
/// set to processing; the message is published, with its data, ordering key and own attributes, and
/// `pushonce-redriven-from` beside them; the entry is marked. Whoever crashes in between, or does not know
/// how a step ended, redrives again. One at a time for each dead letter, whoever asks.
#[derive(Debug)]
#[must_use = "nothing happens before `to`"]
pub struct Redrive {
    letters: DeadLetters,
    id: String,
    follow: Option<Arc<dyn Follow>>,
    dry_run: bool,
}

/// What came of a redrive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redriven {
    /// It was published, by this call.
    Published(Republished),
    /// It was published by an earlier one; this call has changed nothing.
    Before(Republished),
    /// It would be published: a dry run, which has changed nothing.
    WouldPublish {
        /// To which topic.
        topic: String,
        /// The rejected key that would be reset; `None` where there is none to reset.
        key: Option<Key>,
        /// The id of the task that would be set to processing; `None` where it names none, or nobody
        /// [follows](Redrive::follow).
        task: Option<String>,
        /// How long its data is, in bytes.
        bytes: u64,
    },
}

impl Redrive {
    pub(super) fn new(letters: &DeadLetters, id: String) -> Self {
        Self { letters: letters.clone(), id, follow: None, dry_run: false }
    }

    /// Who keeps the record of what the message is about (its task), and sets it to run once more.
    pub fn follow(mut self, follow: impl Follow) -> Self {
        self.follow = Some(Arc::new(follow));
        self
    }

    /// Only says what would happen.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Publishes it to that topic: the one that the message came from, or any other.
    ///
    /// # Errors
    /// [`RedriveError`]; each variant says whether something was published, and what to do.
    pub async fn to(self, publisher: &Arc<dyn Publisher>, topic: &str) -> Result<Redriven, RedriveError> {
        let Self { letters, id, follow, dry_run } = self;
        let (store, clock) = (letters.plain(), letters.clock.clone());
        let Some(place) = kept::place(&store, &clock, &id) else { return Err(RedriveError::Unknown { id }) };
        let (publisher, topic) = (publisher.clone(), topic.to_owned());
        let work = Work { place, follow, publisher, topic, dry_run };
        if dry_run {
            // Its turn would be written down.
            return work.run().await;
        }
        alone(&store, &clock, &id, work.run()).await?
    }
}

/// A redrive whose turn it is.
struct Work {
    place: Place,
    follow: Option<Arc<dyn Follow>>,
    publisher: Arc<dyn Publisher>,
    topic: String,
    dry_run: bool,
}

impl Work {
    async fn run(self) -> Result<Redriven, RedriveError> {
        let entry = self.entry().await?;
        if let Some(before) = entry.redriven {
            return Ok(Redriven::Before(before));
        }
        let key = self.free(&entry).await?;
        let task = self.task(&entry);
        if self.dry_run {
            let task = task.map(|(_, task)| task.to_owned());
            return Ok(Redriven::WouldPublish { topic: self.topic, key, task, bytes: entry.data_len });
        }
        if let Some((follow, task)) = task {
            follow.redriven(task).await.map_err(RedriveError::Follow)?;
        }
        let message_id = match self.publish(&entry).await {
            Ok(message_id) => message_id,
            Err(error) if error.may_have_published() => return Err(RedriveError::Unanswered(error)),
            Err(publish) => return Err(set_back(task, publish).await),
        };
        self.mark(message_id).await
    }

    /// The entry, if it is to be published or was before.
    async fn entry(&self) -> Result<DeadLetterEntry, RedriveError> {
        let looked = self.place.amend(First::Unread, |standing, _| {
            Ok(Amend::Leave(kept::found(standing)?.map(|(_, entry)| entry)))
        });
        let id = self.place.key.text().to_owned();
        match looked.await?.value {
            None => Err(RedriveError::Unknown { id }),
            Some(entry) if entry.state == DeadLetterState::Discarded => Err(RedriveError::Discarded { id }),
            Some(entry) if !entry.is_whole() => Err(RedriveError::TooLarge { id, bytes: entry.data_len }),
            Some(entry) => Ok(entry),
        }
    }

    /// Resets the rejected key, or says which it would.
    async fn free(&self, entry: &DeadLetterEntry) -> Result<Option<Key>, RedriveError> {
        let Some(key) = entry.named_key() else { return Ok(None) };
        let place = Place { key: key.clone(), ..self.place.clone() };
        match place.free_rejected(!self.dry_run).await? {
            Freed::Reset => Ok(Some(key)),
            Freed::Free => Ok(None),
            Freed::Held { left } => Err(RedriveError::Held { key, left }),
            Freed::Done { message } => {
                Err(RedriveError::Done { key, message: message.as_deref().map(str::to_owned) })
            }
        }
    }

    fn task<'a>(&'a self, entry: &'a DeadLetterEntry) -> Option<(&'a dyn Follow, &'a str)> {
        let follow = self.follow.as_deref()?;
        let id = entry.attributes.get(follow.attribute()).filter(|id| !id.trim().is_empty())?;
        Some((follow, id))
    }

    async fn publish(&self, entry: &DeadLetterEntry) -> Result<Arc<str>, PublishError> {
        let message = message(entry);
        let published = within(PUBLISH, pin!(self.publisher.publish(&self.topic, &message))).await;
        let what = || format!("no answer within {PUBLISH:?}");
        published.unwrap_or_else(|| Err(PublishError::Unanswered { what: what(), source: None }))
    }

    /// Writes down that it was published.
    async fn mark(self, message_id: Arc<str>) -> Result<Redriven, RedriveError> {
        let (message_id, at) = (message_id.to_string(), kept::time(micros(self.place.clock.wall())));
        let republished = Republished { message_id: message_id.clone(), topic: self.topic, at };
        let marked = self.place.amend(First::Unread, |standing, stamp| {
            // Collected meanwhile: nobody can redrive it again.
            let Some((stored, entry)) = kept::found(standing)? else { return Ok(Amend::Leave(())) };
            let redriven = Some(republished.clone());
            let entry = DeadLetterEntry { state: DeadLetterState::Redriven, redriven, ..entry };
            Ok(Amend::Write(kept::rewritten(stored, &entry, stamp)?, ()))
        });
        match marked.await {
            Ok(_) => Ok(Redriven::Published(republished)),
            Err(source) => Err(RedriveError::NotMarked { message_id, source }),
        }
    }
}

/// The task of a message that was surely not published is failed again.
async fn set_back(task: Option<(&dyn Follow, &str)>, publish: PublishError) -> RedriveError {
    let Some((follow, task)) = task else { return RedriveError::NotPublished(publish) };
    match follow.ended(task, End::DeadLettered).await {
        Ok(()) => RedriveError::NotPublished(publish),
        Err(follow) => RedriveError::NotSetBack { publish, follow },
    }
}

/// The message as its handler is to see it again.
fn message(entry: &DeadLetterEntry) -> Message {
    let mut attributes = entry.attributes.clone();
    let from = entry.source_message_id.as_ref().unwrap_or(&entry.id);
    // Pub/Sub would refuse one more.
    if attributes.len() < ATTRIBUTES || attributes.contains_key(REDRIVEN_FROM) {
        attributes.insert(REDRIVEN_FROM.to_owned(), from.clone());
    }
    let data = entry.data.clone().unwrap_or_default();
    Message { data, attributes, ordering_key: entry.ordering_key.clone() }
}
