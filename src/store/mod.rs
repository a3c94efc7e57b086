//! The store port: a versioned record with compare-and-swap, and nothing more.

#[cfg(any(feature = "datastore", feature = "bucket-s3", feature = "bucket-gcs"))]
mod address;
#[cfg(any(feature = "bucket-s3", feature = "bucket-gcs"))]
mod bucket;
mod cached;
#[cfg(feature = "testing")]
pub mod chaos;
mod completes;
mod connect;
#[cfg(feature = "datastore")]
mod datastore;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "sqlite",
    feature = "mysql",
    feature = "bucket-s3",
    feature = "bucket-gcs"
))]
mod document;
mod maintain;
mod memory;
mod metered;
pub mod record;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub mod sql;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "mysql",
    feature = "bucket-s3",
    feature = "bucket-gcs",
    feature = "publish"
))]
pub(crate) mod tls;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[cfg(any(feature = "bucket-s3", feature = "bucket-gcs"))]
pub use self::bucket::{Bucket, BucketBuilder, InvalidBucket};
pub use self::cached::Cached;
pub use self::completes::{Commits, Completes};
pub use self::connect::{ConnectError, connect, open};
#[cfg(feature = "datastore")]
pub use self::datastore::{Datastore, DatastoreBuilder, InvalidDatastore};
pub use self::maintain::{Filter, Found, Listing, Maintain, Page};
pub use self::memory::Memory;
pub use self::metered::{Metered, Tally, Totals, Trips};
pub use self::record::Record;
#[cfg(feature = "redis")]
pub use self::redis::{InvalidRedis, Redis, RedisBuilder};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use self::sql::Sql;
use crate::key::Key;

/// A boxed future, as object-safe async traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A place that keeps one versioned [`Record`] per key and swaps it atomically.
///
/// A store knows nothing of leases: whoever finds lease arithmetic in one has found a mistake. Both
/// calls make one attempt, bounded by the caller; retries are the caller's, since only the caller
/// can tell its own write from another's. `docs/write-a-store.md` is the guide, and the feature
/// `contract` has the laws that a store must keep.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// What stands under the key, as a strongly consistent read, or `None`.
    ///
    /// # Errors
    /// [`StoreError`]; a record that cannot be understood is one too, and is never taken for absent.
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>>;

    /// Writes `next` only if the record is still the one that `seen` names (`None`: only if there is none).
    ///
    /// # Errors
    /// [`StoreError`]; where [`StoreError::may_have_written`] holds, the write may have landed or may
    /// land later, and only a read tells.
    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>>;
}

/// Checks that what was found under the name of a key is the key's.
#[cfg(any(
    feature = "datastore",
    feature = "redis",
    feature = "postgres",
    feature = "sqlite",
    feature = "mysql",
    feature = "bucket-s3",
    feature = "bucket-gcs"
))]
fn belongs(key: &Key, shown: &str) -> Result<(), StoreError> {
    if shown != key.shown() {
        return Err(StoreError::Corrupt { what: "it belongs to another key of the same name".to_owned() });
    }
    Ok(())
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        (**self).read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        (**self).swap(key, seen, next)
    }
}

/// What a [`Store::swap`] did.
#[derive(Debug, Clone)]
#[must_use = "a swap that was lost has written nothing"]
pub enum Swap {
    /// The record was written, and this is its version.
    Written(Version),
    /// Nothing was written; this stands instead.
    Lost(Standing),
}

/// What stands after a lost swap.
#[derive(Debug, Clone)]
pub enum Standing {
    /// This record.
    Is(Box<Stored>),
    /// No record.
    Absent,
    /// The store could not say in the same trip: read.
    Unknown,
}

/// A record as it stands in a store.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The record.
    pub record: Record,
    /// Its version.
    pub version: Version,
    /// Time since it was written, by the store's own clock. Never below zero.
    pub age: Duration,
}

/// Names one content of one key. Opaque to all but its store; the only test of ownership that a store makes.
///
/// It never names two different contents of a key, also across deletion. A store without a number
/// of that kind uses the record's token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(Name);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Number(u64),
    Text(Arc<str>),
}

impl Version {
    /// A version that is a number.
    pub fn number(number: u64) -> Self {
        Self(Name::Number(number))
    }

    /// A version that is a text (an ETag, a token).
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self(Name::Text(text.into()))
    }

    /// The number, for the store that made it from one.
    pub fn as_number(&self) -> Option<u64> {
        match self.0 {
            Name::Number(number) => Some(number),
            Name::Text(_) => None,
        }
    }

    /// The text, for the store that made it from one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Name::Number(_) => None,
            Name::Text(text) => Some(text),
        }
    }
}

/// A store that failed. Nothing is known to be written; see [`StoreError::may_have_written`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It did not answer, or answered that it cannot now. Try again; answer 503 before the work, and
    /// never nack after it.
    #[error("the store cannot be reached ({what})")]
    Unavailable {
        /// What happened, without secrets.
        what: String,
        /// Whether the write may have reached the store all the same.
        may_have_written: bool,
        /// What the driver said.
        #[source]
        source: Option<BoxError>,
    },
    /// It refuses for good: no permission, wrong project or mode, a malformed request. Mend the set-up; a retry cannot help.
    #[error("the store refuses ({what})")]
    Refused {
        /// What happened and what to mend, without secrets.
        what: String,
        /// What the driver said.
        #[source]
        source: Option<BoxError>,
    },
    /// The record was written by a newer major version. Answer 503 and deploy that version; the record is left as it is.
    #[error(
        "the record has format {found}, this version understands formats below {limit}: deploy the newer version everywhere"
    )]
    NewerFormat {
        /// The format of the record.
        found: u16,
        /// The first format that this version does not understand.
        limit: u16,
    },
    /// What stands under the key is not a record. Look at it by hand; it is left as it is.
    #[error("what stands under the key is not a record ({what})")]
    Corrupt {
        /// What is wrong with it.
        what: String,
    },
}

impl StoreError {
    /// A fault that may pass; the write did not reach the store.
    pub fn unavailable(what: impl Into<String>) -> Self {
        Self::Unavailable { what: what.into(), may_have_written: false, source: None }
    }

    /// A fault that may pass; nobody knows whether the write reached the store.
    pub fn unanswered(what: impl Into<String>) -> Self {
        Self::Unavailable { what: what.into(), may_have_written: true, source: None }
    }

    /// Whether another try may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether a write that ended in this error may have landed, or may land later. If so, only a
    /// read tells.
    pub fn may_have_written(&self) -> bool {
        matches!(self, Self::Unavailable { may_have_written: true, .. })
    }
}
