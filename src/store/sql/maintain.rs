//! What operators do to the table: check it, list it, and collect what has expired.

use std::sync::Arc;
use std::time::Duration;

use super::Sql;
use super::dialect::{Dialect, Row, Value};
use super::row::{Put, stored};
use super::session::{Call, Session};
use crate::random;
use crate::store::{BoxFuture, Filter, Found, Listing, Maintain, Page, StoreError, document};

/// Rows that one statement deletes: few enough to be quick, and to keep nobody waiting.
const BATCH: usize = 1000;
/// Batches of one round of the upkeep. What is left waits for the next.
const BATCHES: usize = 100;

impl<DB: Dialect> Maintain for Sql<DB> {
    /// Looks at the version of the table, runs the statements of a claim, of a completion and of a read
    /// in a way that writes nothing, and refuses a server that may lose what it has acknowledged: PostgreSQL
    /// without `fsync` or `synchronous_commit`, MySQL with `innodb_flush_log_at_trx_commit` other than
    /// 1, with a binary log and `sync_binlog` other than 1, or without `autocommit`, SQLite with `synchronous` below FULL.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            let session = &self.session;
            session.look_at_schema(self.installs).await?;
            session.ask(Call::Read, &session.statements.insert_nothing, &[]).await?;
            let nowhere = Put::nowhere();
            let values = nowhere.values();
            session.ask(Call::Read, &session.statements.update, &values).await?;
            session.ask(Call::Read, &session.statements.read, &values[..1]).await?;
            let weakness = session.ask(Call::Read, &session.statements.weakness, &[]).await?;
            match weakness.rows.into_iter().flatten().flatten().next() {
                Some(weakness) => Err(StoreError::Refused {
                    what: format!("{} may lose what it has acknowledged: {weakness}", DB::NAME),
                    source: None,
                }),
                None => Ok(()),
            }
        })
    }

    /// In batches of 1000, each one statement that looks at the server's clock and at `expires_at`
    /// when it deletes. On PostgreSQL rows that somebody holds are passed over.
    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            self.ready().await?;
            purge(&self.session, limit).await
        })
    }

    /// In the order of the names in the table, which begin with a hash.
    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(async move {
            self.ready().await?;
            let limit = page.limit.max(1);
            let after = page.after.as_deref().unwrap_or_default();
            let values = [Value::Text(after), Value::Number(limit.try_into().unwrap_or(i64::MAX))];
            let rows = self.session.ask(Call::Read, &self.session.statements.list, &values).await?.rows;
            let full = rows.len() >= limit;
            let last = rows.last().and_then(|row| row.first().cloned().flatten());
            let found = rows.into_iter().map(found).filter(|found| match &found.stored {
                Ok(stored) => filter.takes(&found.key, &stored.record),
                Err(_) => found.key.starts_with(&filter.prefix),
            });
            Ok(Listing { found: found.collect(), next: last.filter(|_| full) })
        })
    }
}

fn found(row: Row) -> Found {
    let name = row.first().cloned().flatten().unwrap_or_default();
    let mut key = None;
    let stored = stored(row, |document| {
        let (shown, record) = document::parse(document)?;
        key = Some(shown);
        Ok(record)
    });
    // Where nobody can read the key, its name tells: four digits and a mark before the consumer.
    let key = key.unwrap_or_else(|| name.get(5..).unwrap_or(&name).to_owned());
    Found { key, stored }
}

async fn purge<DB: Dialect>(session: &Session<DB>, limit: usize) -> Result<usize, StoreError> {
    let mut purged = 0;
    while purged < limit {
        let batch = BATCH.min(limit - purged);
        let values = [Value::Number(batch.try_into().unwrap_or(i64::MAX))];
        let said = session.ask(Call::Write, &session.statements.purge, &values).await?;
        let deleted = usize::try_from(said.changed).unwrap_or(usize::MAX);
        purged = purged.saturating_add(deleted);
        if deleted < batch {
            break;
        }
    }
    Ok(purged)
}

/// Purges again and again, at an interval that differs each time, so that instances do not meet.
pub(super) async fn keep_purging<DB: Dialect>(session: Arc<Session<DB>>, every: Duration) {
    loop {
        tokio::time::sleep(random::jitter(every)).await;
        match purge(&session, BATCH * BATCHES).await {
            Ok(purged) => tracing::debug!(purged, "expired records were deleted"),
            // Nothing depends on it, so the next round will do.
            Err(error) => tracing::warn!(%error, "expired records could not be deleted"),
        }
    }
}
