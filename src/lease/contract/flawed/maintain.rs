//! The same store, broken in the ways of maintenance.

use std::time::Duration;

use super::{Flaw, Flawed};
use crate::key::{Consumer, Key};
use crate::store::{BoxFuture, Filter, Listing, Maintain, Page, StoreError};
use crate::time::micros;

impl Flawed {
    /// All keys, or those that have expired.
    async fn keys(&self, all: bool) -> Result<Vec<Key>, StoreError> {
        let page = Page { limit: usize::MAX, after: None };
        let now = micros(self.clock.wall());
        let listing = self.memory.list(&Filter::default(), &page).await?;
        let found = listing
            .found
            .into_iter()
            .filter(|found| all || found.stored.as_ref().is_ok_and(|stored| stored.record.expires <= now));
        Ok(found
            .map(|found| {
                let (consumer, text) = found.key.split_once(':').unwrap();
                Key::new(Consumer::new(consumer).unwrap(), text).unwrap()
            })
            .collect())
    }

    /// Deletes up to that many, without a condition.
    async fn purge_of(&self, keys: Vec<Key>, limit: usize) -> usize {
        // Others get in between.
        tokio::time::sleep(Duration::from_millis(1)).await;
        keys.iter().take(limit).map(|key| self.memory.forget(key)).count()
    }
}

impl Maintain for Flawed {
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            match self.flaw {
                Some(Flaw::FailsCheck) => Err(StoreError::unavailable("it is asked in a way of its own")),
                _ => self.memory.check().await,
            }
        })
    }

    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            match self.flaw {
                Some(Flaw::PurgesNothing) => Ok(0),
                Some(Flaw::PurgesOverLimit) => self.memory.purge_expired(usize::MAX).await,
                Some(Flaw::PurgesAll) => Ok(self.purge_of(self.keys(true).await?, limit).await),
                Some(Flaw::PurgesBlindly) => Ok(self.purge_of(self.keys(false).await?, limit).await),
                Some(Flaw::RefusesToPurge) => {
                    Err(StoreError::Refused { what: "not here".into(), source: None })
                }
                _ => self.memory.purge_expired(limit).await,
            }
        })
    }

    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(async move {
            let mut filter = filter.clone();
            match self.flaw {
                Some(Flaw::IgnoresPrefix) => filter.prefix.clear(),
                Some(Flaw::IgnoresState) => filter.state = None,
                _ => {}
            }
            let mut listing = self.memory.list(&filter, page).await?;
            match self.flaw {
                Some(Flaw::ListsTwice) if listing.next.is_none() => {
                    listing.found.extend(self.memory.list(&filter, &Page::default()).await?.found.pop());
                }
                Some(Flaw::LeavesOut) => drop(listing.found.pop()),
                Some(Flaw::ListsForEver) => listing.next = Some("again".into()),
                Some(Flaw::HidesNewer) => listing.found.retain(|found| found.stored.is_ok()),
                Some(Flaw::StopsAtNewer) => {
                    let (found, mut broken): (Vec<_>, Vec<_>) =
                        listing.found.into_iter().partition(|found| found.stored.is_ok());
                    if let Some(broken) = broken.pop() {
                        broken.stored?;
                    }
                    listing.found = found;
                }
                _ => {}
            }
            Ok(listing)
        })
    }
}
