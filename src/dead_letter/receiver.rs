//! `Receiver`: keeps the dead letters that a subscription delivers, and has their tasks failed.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::turn::alone;
use super::{DeadLetterEntry, DeadLetterState, NotKept, kept, received};
use crate::idempotent::{End, Follow};
use crate::lease::{First, Place};
use crate::pubsub::Delivery;
use crate::store::{Store, Stored};
use crate::time::{Clock, micros, system_clock};

/// Keeps the dead letters that a dead-letter subscription delivers: by [`router`](Self::router), or one by
/// one by [`keep`](Self::keep) where something else reads the subscription.
///
/// An entry has room for about 44 KiB of data and attributes. A message that does not fit is listed without
/// its data and never acked, so that Pub/Sub keeps it.
#[derive(Debug, Clone)]
#[must_use = "nothing is received before `router` or `keep`"]
pub struct Receiver {
    store: Arc<dyn Store>,
    follow: Option<Arc<dyn Follow>>,
    clock: Arc<dyn Clock>,
}

/// What became of a dead letter that was received. Ack it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It is kept, by this call.
    Kept(DeadLetterEntry),
    /// It was kept before, and is as it is here; this copy has changed nothing.
    Copy(DeadLetterEntry),
}

/// A receiver that keeps dead letters in that store.
pub fn receiver(store: Arc<dyn Store>) -> Receiver {
    Receiver { store, follow: None, clock: system_clock() }
}

impl Receiver {
    /// Who keeps the record of what a message is about (its task), and is told that it went wrong. The id
    /// is in [`attribute`](Follow::attribute).
    pub fn follow(mut self, follow: impl Follow) -> Self {
        self.follow = Some(Arc::new(follow));
        self
    }

    /// Counts by another clock: for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Keeps a dead letter, and has its task failed. A copy changes nothing: least of all does it fail a
    /// task whose message was redriven meanwhile.
    ///
    /// # Errors
    /// [`NotKept`]. Do not ack the dead letter.
    pub async fn keep(&self, delivery: &Delivery) -> Result<Received, NotKept> {
        let entry = received::entry(delivery, kept::time(micros(self.clock.wall())))?;
        let Some(place) = kept::place(&self.store, &self.clock, &entry.id) else {
            return Err(NotKept::Unnamed);
        };
        let id = entry.id.clone();
        let published = delivery.publish_time();
        let received = match self.task(delivery) {
            None => keep(&place, entry, published).await?,
            Some((follow, task)) => {
                let work = async move {
                    let received = keep(&place, entry, published).await?;
                    // Also of a copy: the delivery before may have come no further than to keep it.
                    if received.entry().state == DeadLetterState::Kept {
                        follow.ended(&task, End::DeadLettered).await.map_err(NotKept::Follow)?;
                    }
                    Ok::<_, NotKept>(received)
                };
                alone(&self.store, &self.clock, &id, work).await??
            }
        };
        let DeadLetterEntry { state, data_len: bytes, .. } = *received.entry();
        if state == DeadLetterState::Kept && !received.entry().is_whole() {
            return Err(NotKept::TooLarge { id: Some(id), bytes });
        }
        Ok(received)
    }

    /// What the message is about, and who keeps the record of that.
    fn task(&self, delivery: &Delivery) -> Option<(Arc<dyn Follow>, String)> {
        let follow = self.follow.as_ref()?;
        let id = delivery.attribute(follow.attribute()).filter(|id| !id.trim().is_empty())?;
        Some((follow.clone(), id.to_owned()))
    }
}

impl Received {
    /// The entry, as it stands.
    pub fn entry(&self) -> &DeadLetterEntry {
        match self {
            Self::Kept(entry) | Self::Copy(entry) => entry,
        }
    }
}

async fn keep(
    place: &Place,
    entry: DeadLetterEntry,
    published: Option<DateTime<Utc>>,
) -> Result<Received, NotKept> {
    let create = |standing: Option<&Stored>, stamp| kept::create(&entry, published, standing, stamp);
    let kept = place.amend(First::Nothing, create).await?;
    Ok(kept.value.map_or(Received::Kept(entry), Received::Copy))
}
