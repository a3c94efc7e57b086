//! What operators do to a store, beside the port: check it, look through it, and collect what has expired.

use std::sync::Arc;

use super::record::State;
use super::{BoxFuture, Record, Store, StoreError, Stored};

/// A [`Store`] that an operator can look through and clean.
///
/// No handler needs it, and no answer of a store depends on it: a key is free when its record has
/// lapsed, whether or not anybody has deleted it.
pub trait Maintain: Store {
    /// Asks the server, on the way that a claim takes, whether it can keep records at all: reached,
    /// permitted, of a version and a set-up that holds what it acknowledges.
    ///
    /// # Errors
    /// [`StoreError::Refused`] is permanent: end the process with its text, which says what to mend.
    /// Anything else may pass: log it and start.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Deletes up to `limit` records whose retention is over, and tells how many. Each deletion has a
    /// condition, so a key that was claimed meanwhile stays. A store whose server collects its own
    /// garbage may have nothing to do.
    ///
    /// # Errors
    /// [`StoreError`]; what was deleted before it stays deleted. Call again. `Refused` where the
    /// store cannot delete on a condition: its text says what collects the garbage there.
    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// One page of the records that the filter takes, in an order of the store's own. It looks at no
    /// more than `page.limit` records, so it may bring fewer, even none, and have a `next` all the
    /// same. What changes while pages are read may be missed or seen twice. A record that cannot be
    /// understood has no state, so it may be brought whatever state is asked for.
    ///
    /// # Errors
    /// [`StoreError`]. Ask for the same page again.
    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>>;
}

impl<S: Maintain + ?Sized> Maintain for Arc<S> {
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        (**self).check()
    }

    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        (**self).purge_expired(limit)
    }

    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        (**self).list(filter, page)
    }
}

/// Which records to list. The default takes all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// What the key begins with, as `consumer:text` spells it: `orders:` is all of a consumer.
    pub prefix: String,
    /// Where the key stands, by the record alone: a claim whose lease has lapsed is still `Claimed`.
    pub state: Option<State>,
}

impl Filter {
    /// Whether it takes the record of a key.
    pub fn takes(&self, key: &str, record: &Record) -> bool {
        key.starts_with(&self.prefix) && self.state.is_none_or(|state| state == record.state)
    }
}

/// Which page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The `next` of the page before; `None` for the first.
    pub after: Option<String>,
    /// The most records to look at. Zero counts as one.
    pub limit: usize,
}

impl Default for Page {
    /// The first page, of a hundred.
    fn default() -> Self {
        Self { after: None, limit: 100 }
    }
}

/// One page of a list.
#[derive(Debug, Default)]
pub struct Listing {
    /// What the filter took.
    pub found: Vec<Found>,
    /// Where the next page begins; `None` after the last. Opaque to all but the store that gave it.
    pub next: Option<String>,
}

/// A record in a list.
#[derive(Debug)]
pub struct Found {
    /// The key, as `consumer:text`. One of more than 128 KiB, or of a record that cannot be
    /// understood, may be shown by its name in the store.
    pub key: String,
    /// What stands under it. A record that cannot be understood is an error of its own, so that it
    /// hides no other.
    pub stored: Result<Stored, StoreError>,
}
