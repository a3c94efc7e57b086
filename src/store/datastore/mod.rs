//! Firestore in Datastore mode as a store, over gRPC: one lookup to read, one commit to swap.

mod client;
mod completes;
mod config;
mod connection;
mod entity;
mod fault;
mod maintain;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gcloud_sdk::google::datastore::v1 as pb;
use gcloud_sdk::prost_types::Timestamp;

use self::client::{Client, Write};
pub use self::config::{DatastoreBuilder, InvalidDatastore};
use self::entity::Space;
use super::{BoxFuture, Record, Standing, Store, StoreError, Stored, Swap, Version};
use crate::key::Key;
use crate::time::{Clock, micros};

/// A [`Store`] in Firestore in Datastore mode (gRPC v1).
///
/// ```
/// # use pushonce::store::Datastore;
/// let store = Datastore::builder("my-project").database("orders").namespace("blue").build()?;
/// # Ok::<(), pushonce::store::InvalidDatastore>(())
/// ```
///
/// **When to choose it.** On Google Cloud, by default: there is no server to run, Google replicates it, and it is
/// strongly consistent. It does not tell what stands when a create is refused, so a duplicate costs a second
/// trip; and a restored backup brings older records back.
///
/// **Nothing is dialled when it is built.** The connection is opened by the first call, once for
/// all callers, and opened again when it is lost; it lives on the runtime of the first call. Calls go
/// to the emulator that `DATASTORE_EMULATOR_HOST` names when the store is built, otherwise to Google
/// Cloud with Application Default Credentials. The service account needs `roles/datastore.user`.
///
/// **Each call makes one attempt**, bounded by [`request_timeout`](DatastoreBuilder::request_timeout),
/// and costs one RPC. Retries are the caller's: only the caller can tell its own write.
///
/// **How it swaps.** One entity per key, and one mutation per commit, outside any transaction: an
/// `insert`, or an `update` on the entity's version with the conflict resolution FAIL. Without FAIL
/// the Firestore emulator lets every racing writer win. Whole entities are written, no property is
/// indexed, and a transaction of somebody else that has read the entity makes a write wait (on real
/// Datastore up to the idle limit of 60 s): do not read these entities in transactions.
///
/// **Whose clock.** The age of a record is the server's read time minus its update time. Only the
/// Datastore emulator tells no time; there the write time in the record counts, and nowhere else.
///
/// `expires_at` is a timestamp for a TTL policy on the kind. It only collects garbage: no answer of
/// this store depends on it.
pub struct Datastore {
    space: Space,
    client: Client,
    // The clock of an emulator that tells no time; `None` for a real Datastore.
    stand_in: Option<Arc<dyn Clock>>,
}

impl Datastore {
    /// A store in the default database and namespace of a project, under the kind `pushonce`.
    ///
    /// # Errors
    /// [`InvalidDatastore`]: mend the name, or `DATASTORE_EMULATOR_HOST`.
    pub fn new(project: impl Into<String>) -> Result<Self, InvalidDatastore> {
        Self::builder(project).build()
    }

    /// A store of that project, to be set up.
    pub fn builder(project: impl Into<String>) -> DatastoreBuilder {
        DatastoreBuilder::new(project.into())
    }

    fn age(
        &self,
        read: Option<&Timestamp>,
        updated: Option<&Timestamp>,
        record: &Record,
    ) -> Result<Duration, StoreError> {
        match (entity::age(read, updated), &self.stand_in) {
            (Some(age), _) => Ok(age),
            (None, Some(clock)) => {
                Ok(Duration::from_micros(micros(clock.wall()).saturating_sub(record.written)))
            }
            (None, None) => Err(timeless()),
        }
    }

    async fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let answer = self.client.lookup(&self.space, self.space.key(entity::name(key))).await?;
        if !answer.deferred.is_empty() {
            return Err(StoreError::unavailable("the lookup was put off for lack of resources"));
        }
        let Some(found) = answer.found.into_iter().next() else { return Ok(None) };
        let version = entity::version(found.version)
            .ok_or_else(|| StoreError::Corrupt { what: "an entity without a version".to_owned() })?;
        let record = entity::record(key, &found.entity.unwrap_or_default())?;
        let age = self.age(answer.read_time.as_ref(), found.update_time.as_ref(), &record)?;
        Ok(Some(Stored { record, version, age }))
    }

    async fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        let entity = self.space.entity(key, next)?;
        let write = match seen {
            None => Write::Insert(entity),
            Some(version) => Write::Update { entity, base: entity::base(version)? },
        };
        let Some(result) = self.client.commit(&self.space, write).await? else {
            return Ok(Swap::Lost(Standing::Unknown));
        };
        // The write landed, but nobody can build on it: a read brings the version.
        let no_version = || StoreError::unanswered("the commit was answered without a version");
        entity::version(result.version).map(Swap::Written).ok_or_else(no_version)
    }
}

impl Store for Datastore {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.read_now(key))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.swap_now(key, seen, next))
    }
}

fn timeless() -> StoreError {
    StoreError::Refused {
        what: "the server tells no time, so nobody knows how old the record is: a real Datastore does; \
               is this an emulator without DATASTORE_EMULATOR_HOST?"
            .to_owned(),
        source: None,
    }
}

impl fmt::Debug for Datastore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, client, stand_in: _ } = self;
        f.debug_struct("Datastore").field("space", space).field("server", &client.server()).finish()
    }
}
