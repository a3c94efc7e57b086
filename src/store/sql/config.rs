//! How a SQL store is set up: names and limits that are checked when it is built.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::OnceCell;

use super::Sql;
use super::dialect::{Asking, Dialect};
use super::schema::Table;
use super::session::{Lazy, Session};

const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than this nobody waits for an answer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Sets up a [`Sql`] store. Nothing is checked or dialled before [`build`](Self::build), and nothing
/// is dialled by it.
#[must_use = "a builder does nothing until it is built"]
pub struct SqlBuilder<DB: Dialect> {
    pool: Lazy<DB>,
    table: Option<String>,
    acquire_timeout: Duration,
    request_timeout: Duration,
    purge_every: Option<Duration>,
    asking: Asking,
    installs: bool,
}

impl<DB: Dialect> SqlBuilder<DB> {
    pub(super) fn new(pool: Box<dyn FnOnce() -> Pool<DB> + Send>) -> Self {
        Self {
            pool: Lazy::new(pool),
            table: None,
            acquire_timeout: ACQUIRE_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            purge_every: None,
            asking: Asking::Prepared,
            installs: false,
        }
    }

    /// The table, perhaps with its schema, as `ledger.pushonce`: each part at most 48 lower-case
    /// letters, digits and underscores, of which the first is no digit. `pushonce` unless set.
    pub fn table(self, table: impl Into<String>) -> Self {
        Self { table: Some(table.into()), ..self }
    }

    /// How long a call waits for a connection of the pool. 2 s unless set, at most 5 min; the pool's
    /// own timeout holds too.
    pub fn acquire_timeout(self, limit: Duration) -> Self {
        Self { acquire_timeout: limit, ..self }
    }

    /// The longest that one call may take, its wait for a connection included. 5 s unless set, at
    /// most 5 min; but the calls of a lease end after 5 s whatever is set here.
    pub fn request_timeout(self, limit: Duration) -> Self {
        Self { request_timeout: limit, ..self }
    }

    /// Deletes expired records about this often, in the background, from the first call on until the
    /// store is dropped or the process shuts down. At least 1 s; never unless set.
    ///
    /// Each round deletes at most 100,000 records. One instance that does so is enough, and any
    /// number may.
    pub fn purge_every(self, interval: Duration) -> Self {
        Self { purge_every: Some(interval), ..self }
    }

    pub(super) fn asking(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }

    /// Makes its table by itself, where it is not there.
    pub(super) fn installs(self, installs: bool) -> Self {
        Self { installs, ..self }
    }

    /// The store. Nothing is dialled.
    ///
    /// # Errors
    /// [`InvalidSql`]: mend the name or the limit that it tells of.
    pub fn build(self) -> Result<Sql<DB>, InvalidSql> {
        for limit in [self.acquire_timeout, self.request_timeout] {
            if limit.is_zero() || limit > LONGEST_TIMEOUT {
                return Err(InvalidSql::Timeout { limit });
            }
        }
        if let Some(interval) = self.purge_every.filter(|interval| *interval < SHORTEST_INTERVAL) {
            return Err(InvalidSql::Interval { interval });
        }
        let table = self.table.as_deref().map_or_else(|| Ok(Table::default()), Table::new)?;
        Ok(self.over(table))
    }

    /// The store over a table, with limits that were checked.
    pub(super) fn over(self, table: Table) -> Sql<DB> {
        Sql {
            session: Arc::new(Session {
                pool: self.pool,
                waiting: Arc::default(),
                statements: DB::statements(&table),
                table,
                asking: self.asking,
                acquire_timeout: self.acquire_timeout,
                request_timeout: self.request_timeout,
            }),
            installs: self.installs,
            purge_every: self.purge_every,
            ready: OnceCell::new(),
        }
    }
}

/// What stands between the store and PostgreSQL.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing, or a pooler that gives each client a server for as long as it is connected.
    Session,
    /// A pooler that may send each transaction to another server, as PgBouncer does with
    /// `pool_mode = transaction`. Then no statement is prepared: each is sent whole, in one message.
    /// It costs no trip, but the server parses and plans each anew, and texts take twice their size on
    /// the wire, as hex digits.
    ///
    /// A pool of your own needs `extra_float_digits(None)` among its options, or PgBouncer hangs up;
    /// one that is opened by its address has that.
    Transaction,
}

#[cfg(feature = "postgres")]
impl SqlBuilder<sqlx::Postgres> {
    /// The pooler in front of the server. [`Pooler::Session`] unless set.
    pub fn pooler(self, pooler: Pooler) -> Self {
        self.asking(match pooler {
            Pooler::Session => Asking::Prepared,
            Pooler::Transaction => Asking::Whole,
        })
    }
}

impl<DB: Dialect> fmt::Debug for SqlBuilder<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the pool: its options know the password.
        f.debug_struct("SqlBuilder")
            .field("server", &DB::NAME)
            .field("table", &self.table)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("purge_every", &self.purge_every)
            .finish_non_exhaustive()
    }
}

/// A SQL store that cannot be. Nothing was dialled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSql {
    /// The table's name is not one. Give another.
    #[error(
        "`{table}` is not the name of a table: expected lower-case letters, digits and underscores, at most 48, and the like for a schema before a dot"
    )]
    Table {
        /// The name as given.
        table: String,
    },
    /// A timeout is zero or too long.
    #[error("a timeout of {limit:?} cannot be: expected more than zero and at most 5 min")]
    Timeout {
        /// The timeout as given.
        limit: Duration,
    },
    /// The interval of the purges is too short.
    #[error("a purge every {interval:?} cannot be: expected at least 1 s")]
    Interval {
        /// The interval as given.
        interval: Duration,
    },
}

#[cfg(feature = "sqlite")]
#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> SqlBuilder<sqlx::Sqlite> {
        SqlBuilder::new(Box::new(|| unreachable!("nothing is dialled")))
    }

    #[test]
    fn names_and_limits_are_checked_when_built() {
        assert!(builder().table("ledger.claims").purge_every(SHORTEST_INTERVAL).build().is_ok());
        assert!(matches!(builder().table("a;b").build(), Err(InvalidSql::Table { .. })));
        for limit in [Duration::ZERO, Duration::from_secs(301), Duration::MAX] {
            assert!(matches!(builder().request_timeout(limit).build(), Err(InvalidSql::Timeout { .. })));
            assert!(matches!(builder().acquire_timeout(limit).build(), Err(InvalidSql::Timeout { .. })));
        }
        let often = builder().purge_every(Duration::from_millis(999)).build();
        assert!(matches!(often, Err(InvalidSql::Interval { .. })));
    }
}
