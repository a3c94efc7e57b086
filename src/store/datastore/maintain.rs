//! Maintenance of a Datastore: a query over the kind, in the order of its keys, and deletions on the version that it saw.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gcloud_sdk::google::datastore::v1::property_order::Direction;
use gcloud_sdk::google::datastore::v1::query_result_batch::MoreResultsType;

use super::client::Write;
use super::{Datastore, entity, pb, timeless};
use crate::store::{BoxFuture, Filter, Found, Listing, Maintain, Page, StoreError, Stored};
use crate::time::{duration_micros, micros};

/// How many entities a purge looks at in one query.
const LOOK: usize = 300;
/// How many deletions are under way at once.
const DELETIONS: usize = 16;

impl Datastore {
    /// Entities of the kind after a cursor, and the cursor after them, if there may be more.
    async fn scan(
        &self,
        after: Vec<u8>,
        limit: usize,
    ) -> Result<(pb::QueryResultBatch, Option<Vec<u8>>), StoreError> {
        let by_key = pb::PropertyOrder {
            property: Some(pb::PropertyReference { name: "__key__".to_owned() }),
            direction: Direction::Ascending.into(),
        };
        let query = pb::Query {
            kind: vec![pb::KindExpression { name: self.space.kind.clone() }],
            order: vec![by_key],
            start_cursor: after,
            limit: Some(i32::try_from(limit).unwrap_or(i32::MAX)),
            ..pb::Query::default()
        };
        let mut batch = self.client.query(&self.space, query).await?;
        let next = std::mem::take(&mut batch.end_cursor);
        let more = match batch.more_results() {
            MoreResultsType::NotFinished => true,
            MoreResultsType::NoMoreResults => false,
            _ => !batch.entity_results.is_empty(),
        };
        Ok((batch, more.then_some(next)))
    }

    async fn page(&self, filter: &Filter, page: &Page) -> Result<Listing, StoreError> {
        let after = page.after.as_deref().unwrap_or_default();
        let after = URL_SAFE_NO_PAD.decode(after).map_err(|error| StoreError::Refused {
            what: "the page is not one that this store gave".to_owned(),
            source: Some(error.into()),
        })?;
        let (batch, next) = self.scan(after, page.limit.max(1)).await?;
        let found = batch.entity_results.iter().filter_map(|result| {
            let entity = result.entity.as_ref()?;
            let key = entity::shown(entity);
            let stored = self.stored(&batch, result, entity);
            let takes = match &stored {
                Ok(stored) => filter.takes(&key, &stored.record),
                Err(_) => key.starts_with(&filter.prefix),
            };
            takes.then_some(Found { key, stored })
        });
        Ok(Listing { found: found.collect(), next: next.map(|next| URL_SAFE_NO_PAD.encode(next)) })
    }

    fn stored(
        &self,
        batch: &pb::QueryResultBatch,
        result: &pb::EntityResult,
        entity: &pb::Entity,
    ) -> Result<Stored, StoreError> {
        let record = entity::any_record(entity)?;
        let version = entity::version(result.version)
            .ok_or_else(|| StoreError::Corrupt { what: "an entity without a version".to_owned() })?;
        let age = self.age(batch.read_time.as_ref(), result.update_time.as_ref(), &record)?;
        Ok(Stored { record, version, age })
    }

    async fn purge(&self, limit: usize) -> Result<usize, StoreError> {
        let mut purged = 0;
        let mut after = Some(Vec::new());
        while let Some(cursor) = after.filter(|_| purged < limit) {
            let (batch, next) = self.scan(cursor, LOOK).await?;
            let now = self.now(&batch)?;
            let expired = batch.entity_results.into_iter().filter_map(|result| {
                let entity = result.entity?;
                let record = entity::any_record(&entity).ok()?;
                (record.expires <= now).then_some(Write::Delete { key: entity.key?, base: result.version })
            });
            let deletions = stream::iter(expired.take(limit - purged))
                .map(|deletion| self.client.commit(&self.space, deletion))
                .buffer_unordered(DELETIONS);
            // A deletion that lost met another version: the key was claimed anew, or is gone.
            purged += deletions.try_fold(0, async |sum, done| Ok(sum + usize::from(done.is_some()))).await?;
            after = next;
        }
        Ok(purged)
    }

    /// The server's time of a query, in microseconds since the epoch.
    fn now(&self, batch: &pb::QueryResultBatch) -> Result<u64, StoreError> {
        match (&batch.read_time, &self.stand_in) {
            (Some(time), _) => Ok(duration_micros(entity::since_epoch(time))),
            (None, Some(clock)) => Ok(micros(clock.wall())),
            (None, None) => Err(timeless()),
        }
    }
}

impl Maintain for Datastore {
    /// Looks up a key that does not exist. Whether the service account may also write shows with the first claim.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        // Every name of a key has a `=` or a `#`, so this one never is one.
        Box::pin(async {
            self.client.lookup(&self.space, self.space.key("check".to_owned())).await.map(drop)
        })
    }

    /// Looks at every entity of the kind, from the first on, and Google bills each look as a read: on a
    /// kind of any size give `expires_at` a TTL policy instead, and let Datastore collect.
    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.purge(limit))
    }

    /// In the order of the names, which begin with a hash, so of no use to people. One query for each page.
    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(self.page(filter, page))
    }
}
