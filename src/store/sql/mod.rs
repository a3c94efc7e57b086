//! SQL databases as stores: one row for each key, and one statement for each call.

mod address;
mod borrowed;
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
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

#[cfg(feature = "postgres")]
pub use self::config::Pooler;
pub use self::config::{InvalidSql, SqlBuilder};
pub use self::dialect::Dialect;
use self::dialect::Value;
use self::row::Put;
use self::schema::Table;
pub use self::schema::schema;
use self::session::{Call, Session};
use super::{BoxFuture, Record, Standing, Store, StoreError, Stored, Swap, Version, document};
use crate::key::Key;
use crate::task;

/// A [`Store`] in PostgreSQL (14 or newer), SQLite, MySQL or MariaDB: `Sql<sqlx::Postgres>`,
/// `Sql<sqlx::Sqlite>`, `Sql<sqlx::MySql>`.
///
/// ```
/// # #[cfg(feature = "postgres")] {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use pushonce::store::Sql;
///
/// // By its address, as `store::connect("postgres://me@host/orders?table=ledger.pushonce")` has it,
/// // or on the pool that the handlers use too:
/// let pool = sqlx::PgPool::connect_lazy("postgres://me@host/orders")?;
/// let store = Sql::builder(pool).table("ledger.pushonce").build()?;
/// # let _: Sql<sqlx::Postgres> = store;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **When to choose it.** PostgreSQL or MySQL where the service has such a database anyway, above all
/// where the handler's effects are in the same one: then effect and record are committed in one
/// transaction, which closes the gap that every other store leaves. SQLite where one machine is enough:
/// it is the embedded durable store, with nothing to run beside the program.
///
/// **What it guarantees.** An acknowledged write survives a crash of the client and of the server. With
/// SQLite, opened by its address, it survives SIGKILL and a loss of power (WAL with `synchronous = FULL`,
/// as far as the disk tells the truth), and any number of processes on the machine may share the file.
/// [`check`](super::Maintain::check) refuses a server that is set up to lose what it has acknowledged.
///
/// **What it does not.** One dedup domain is one primary. A replica that is promoted without having all
/// that was acknowledged (asynchronous replication), or a backup that is restored, brings an older record
/// back: a done key may run again. A holder whose record went back is fenced out all the same. SQLite on
/// a network file system is not supported: its locks are not reliable there.
///
/// **How it swaps.** One row for each key, and one statement for each call, outside any transaction:
/// insert where nothing stands, or update where the token is the one that was seen. The token is the
/// version. There is no `SELECT .. FOR UPDATE`, and no connection is held while work runs. It holds at
/// READ COMMITTED and above; a deadlock or a serialization failure is an error that wrote nothing, and the
/// lease tries again from the start. Names of keys are compared as bytes.
///
/// **Trips.** Each call is one, also the claim of a duplicate: PostgreSQL and SQLite say what stands in
/// the answer of the lost insert. MySQL is asked once more; so is each of them by whoever loses an update,
/// a zombie for example. The first call of a process looks at the table
/// first, and the first use of a statement on a connection prepares it. A pool that tests each connection
/// before it gives it out, as sqlx's pools do unless told otherwise, doubles the trips:
/// `test_before_acquire(false)` on a pool of your own; one that is opened by its address asks only after
/// an idle second. Before a pool takes a connection back the driver asks the server once more, in the background;
/// where other calls wait, a connection goes on to the next of them instead, up to sixteen times in a row.
///
/// **A pool of your own** should have `.idle_timeout(None).max_lifetime(None)` while sqlx is 0.9.0: the pool's
/// upkeep, which either of them starts, can take a whole CPU for ever and hold up the end of the process
/// (sqlx #3645, mended after 0.9.0). One that is opened by its address has none, and replaces a connection of half an hour.
///
/// **Whose clock.** Ages are counted by the server, from the clock at the statement, in UTC whatever the
/// session says. With SQLite it is the machine's clock, to the millisecond.
///
/// **The table** is made by you, with the text of [`schema`] or by [`create_table`](Self::create_table);
/// the program needs no right to DDL. The first call looks whether it is there and of the right version.
/// SQLite is different when it is opened by its address: file and table are made by themselves.
///
/// **Retention.** Every write counts anew when the row may be deleted, by the server's clock. A database
/// deletes nothing by itself: switch on [`purge_every`](SqlBuilder::purge_every), or have somebody call
/// [`purge_expired`](super::Maintain::purge_expired). No answer depends on it. On PostgreSQL retention is
/// counted in steps of four hours, downwards, which keeps its updates cheap.
///
/// **Each call makes one attempt**, bounded by [`request_timeout`](SqlBuilder::request_timeout), of which
/// it waits for a connection no longer than [`acquire_timeout`](SqlBuilder::acquire_timeout). A call that
/// is dropped closes its connection rather than leave it half-read in the pool.
///
/// # Addresses
///
/// `postgres://` and `postgresql://`, `mysql://` and `mariadb://`, `sqlite://file`; with these parameters
/// of ours, and for the servers any that sqlx knows (`sslmode`, ..):
///
/// | parameter | meaning |
/// |---|---|
/// | `table` | the table, perhaps with its schema; `pushonce` unless given |
/// | `connections` | the most of them: 5 unless given, 1 for SQLite, where writers stand in line anyway |
/// | `purge_every` | seconds between two purges; never unless given |
/// | `pooler` | `transaction` for a pooler in that mode before PostgreSQL: see [`Pooler`] |
///
/// # In the handler's own transaction
///
/// The pool must be of the same database as the store's. With SQLite begin the transaction with
/// `BEGIN IMMEDIATE`: one that reads first and writes later is told that the file is busy whenever
/// somebody else has written in between.
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
        // Those who come first stand in line for it, and are to know that nothing was sent.
        let limit = self.session.request_timeout / 2;
        let looked = timeout(limit, self.ready.get_or_try_init(look)).await;
        let late = || StoreError::unavailable(format!("{}: no look at the table within {limit:?}", DB::NAME));
        looked.map_err(|_| late())?.map(drop)
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
        let written = if seen.is_some() { said.updated() } else { said.created::<DB>() };
        if written {
            return Ok(Swap::Written(Version::text(put.token)));
        }
        let standing = match said.rows.into_iter().next() {
            Some(row) => Standing::Is(Box::new(row::stored(row, |text| document::decode(key, text))?)),
            // An update, or F78: neither inserted nor to be seen. Look again.
            None => Standing::Unknown,
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
