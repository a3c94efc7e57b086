//! SQL databases as stores: one row for each key, and one statement for each call.

mod address;
mod completes;
mod config;
mod dialect;
mod fault;
mod maintain;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
mod schema;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;

#[cfg(feature = "postgres")]
pub use self::config::Pooler;
pub use self::config::{InvalidSql, SqlBuilder};
pub use self::dialect::Dialect;
use self::dialect::{Said, Value};
use self::row::Put;
use self::schema::Table;
pub use self::schema::schema;
use self::session::{Call, Session};
use super::{BoxFuture, Record, Standing, Store, StoreError, Stored, Swap, Version, document};
use crate::key::Key;
use crate::task;

/// A [`Store`] in PostgreSQL, SQLite, MySQL or MariaDB.
pub struct Sql<DB: Dialect> {
    session: Arc<Session<DB>>,
    /// Whether it makes its table, as an embedded store does.
    installs: bool,
    purge_every: Option<Duration>,
    /// Set once the table was looked at.
    ready: OnceCell<Option<AbortOnDropHandle<()>>>,
}

impl<DB: Dialect> Sql<DB> {
    /// A store in the table `pushonce`, on connections of this pool.
    pub fn new(pool: Pool<DB>) -> Self {
        Self::builder(pool).over(Table::default())
    }

    /// A store on connections of this pool, to be set up.
    pub fn builder(pool: Pool<DB>) -> SqlBuilder<DB> {
        SqlBuilder::new(Box::new(move || pool))
    }

    /// Makes the table, where it is not there. Any number of processes may do so at once; the role
    /// needs the right to.
    ///
    /// # Errors
    /// [`StoreError::Refused`]: give the role the right, or run the text of [`schema`] as another one.
    /// Anything else may pass: call it again.
    pub async fn create_table(&self) -> Result<(), StoreError> {
        self.session.install().await
    }

    /// Looks at the table before the first call, and once: what is wrong with it is then said by each
    /// call, and a table that is mended is found.
    async fn ready(&self) -> Result<(), StoreError> {
        let look = || async {
            self.session.look_at_schema(self.installs).await?;
            let session = self.session.clone();
            Ok(self.purge_every.map(|every| task::upkeep(maintain::keep_purging(session, every))))
        };
        self.ready.get_or_try_init(look).await.map(drop)
    }

    async fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        self.ready().await?;
        let name = row::name(key);
        let said = self.session.ask(Call::Read, &self.session.statements.read, &[Value::Text(&name)]).await?;
        said.rows
            .into_iter()
            .next()
            .map(|row| row::stored(row, |text| document::decode(key, text)))
            .transpose()
    }

    async fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        let put = Put::new(key, seen, next)?;
        self.ready().await?;
        let statements = &self.session.statements;
        let statement = if seen.is_some() { &statements.update } else { &statements.create };
        let said = self.session.ask(Call::Write, statement, &put.values()).await?;
        if said.wrote::<DB>() {
            return Ok(Swap::Written(Version::text(put.token)));
        }
        let Said { rows, .. } = said;
        let standing = match (rows.into_iter().next(), put.seen) {
            // What stood when the statement began was overtaken while it waited.
            (Some(row), Some(seen)) if row.get(1).and_then(Option::as_deref) == Some(seen) => {
                Standing::Unknown
            }
            (Some(row), _) => Standing::Is(Box::new(row::stored(row, |text| document::decode(key, text))?)),
            (None, Some(_)) if DB::TELLS => Standing::Absent,
            // F78: neither inserted nor to be seen. Look again.
            (None, _) => Standing::Unknown,
        };
        Ok(Swap::Lost(standing))
    }
}

impl<DB: Dialect> Store for Sql<DB> {
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

impl<DB: Dialect> fmt::Debug for Sql<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, installs: _, purge_every, ready: _ } = self;
        f.debug_struct("Sql")
            .field("server", &DB::NAME)
            .field("session", session)
            .field("purge_every", purge_every)
            .finish()
    }
}
