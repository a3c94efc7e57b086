//! `DeadLetters`: those of a store, listed, shown, discarded and sent again.

use std::fmt;
use std::sync::Arc;

use super::turn::alone;
use super::{DeadLetterEntry, DeadLetterState, DiscardError, Redrive, kept};
use crate::lease::{Amend, First, Stamp};
use crate::store::record::State;
use crate::store::{Filter, Maintain, Page, Store, StoreError, Stored};
use crate::time::{Clock, system_clock};

/// The dead letters of a store, for whoever decides about them.
#[derive(Clone)]
pub struct DeadLetters {
    store: Arc<dyn Maintain>,
    pub(super) clock: Arc<dyn Clock>,
}

/// One page of dead letters.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DeadLetterPage {
    /// The entries, each with its data. One that cannot be understood is an error of its own, so that it
    /// hides no other.
    pub found: Vec<Result<DeadLetterEntry, StoreError>>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// What came of discarding a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a dead letter that was redriven before is not discarded"]
pub enum Discarded {
    /// It is discarded, by this call or an earlier one. A redrive refuses it, and so it is with a copy that
    /// comes later.
    Discarded(DeadLetterEntry),
    /// It was redriven before, and was left as it is.
    Redriven(DeadLetterEntry),
    /// There is no such dead letter.
    Unknown,
}

impl DeadLetters {
    /// The dead letters of that store.
    pub fn new(store: Arc<dyn Maintain>) -> Self {
        Self { store, clock: system_clock() }
    }

    /// The same under another clock: for tests.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// One page of them, whatever became of them, in an order of the store's own, which is not that of
    /// time: no store is asked to sort. A page may hold fewer than its limit, even none, and have a `next`.
    ///
    /// # Errors
    /// [`StoreError`]. Ask for the same page again.
    pub async fn list(&self, page: &Page) -> Result<DeadLetterPage, StoreError> {
        let filter = Filter { prefix: format!("{}:", kept::space()), state: Some(State::Done) };
        let listing = self.store.list(&filter, page).await?;
        let entries = listing.found.into_iter().map(|found| kept::live(&found.stored?));
        Ok(DeadLetterPage { found: entries.filter_map(Result::transpose).collect(), next: listing.next })
    }

    /// The dead letter of that id, if it is kept.
    ///
    /// # Errors
    /// [`StoreError`]. Ask again.
    pub async fn show(&self, id: &str) -> Result<Option<DeadLetterEntry>, StoreError> {
        let Some(place) = kept::place(&self.plain(), &self.clock, id) else { return Ok(None) };
        let looked =
            |standing: Option<&Stored>| Ok(Amend::Leave(kept::found(standing)?.map(|(_, entry)| entry)));
        Ok(place.amend(First::Unread, |standing, _| looked(standing)).await?.value)
    }

    /// Says that nobody wants the dead letter any more. Its data goes; the rest stays listed until its 30
    /// days are over, so that a copy is known for one. Its task stays failed.
    ///
    /// # Errors
    /// [`DiscardError`]. Discard again.
    pub async fn discard(&self, id: &str) -> Result<Discarded, DiscardError> {
        let Some(place) = kept::place(&self.plain(), &self.clock, id) else { return Ok(Discarded::Unknown) };
        let discarded = async move { Ok(place.amend(First::Unread, discard).await?.value) };
        alone(&self.plain(), &self.clock, id, discarded).await?
    }

    /// The store as those see it who only read and swap.
    pub(super) fn plain(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Sends the dead letter again, once it is told [where to](Redrive::to).
    pub fn redrive(&self, id: impl Into<String>) -> Redrive {
        Redrive::new(self, id.into())
    }
}

fn discard(standing: Option<&Stored>, stamp: Stamp) -> Result<Amend<Discarded>, StoreError> {
    let Some((stored, entry)) = kept::found(standing)? else { return Ok(Amend::Leave(Discarded::Unknown)) };
    match entry.state {
        DeadLetterState::Redriven => Ok(Amend::Leave(Discarded::Redriven(entry))),
        DeadLetterState::Discarded => Ok(Amend::Leave(Discarded::Discarded(entry))),
        DeadLetterState::Kept => {
            let (state, discarded_at) = (DeadLetterState::Discarded, Some(kept::time(stamp.now)));
            let entry = DeadLetterEntry { state, discarded_at, data: None, ..entry };
            Ok(Amend::Write(kept::rewritten(stored, &entry, stamp)?, Discarded::Discarded(entry)))
        }
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters").field("store", &self.store).finish_non_exhaustive()
    }
}
