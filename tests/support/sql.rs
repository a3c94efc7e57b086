//! The SQL servers: `PUSHONCE_TEST_POSTGRES` and `PUSHONCE_TEST_MYSQL` name two of them by URL; SQLite
//! needs none.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use pushonce::store::record::{Id, Record};
use pushonce::store::sql::Dialect;
use pushonce::store::{Sql, Swap, Version};
use pushonce::{IntoKey as _, Key};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection, MySql, Pool, Postgres, Sqlite};

pub(crate) fn key() -> Key {
    ("orders", "po-1").into_key().unwrap()
}

/// A live claim, which nobody may purge before the year 2027.
pub(crate) fn record(token: u128) -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"token":"01","lease_us":1000000,
        "ttl_us":1000000,"ended":"fresh","written_us":1700000000000000,"expires_us":1800000000000000}"#;
    Record { token: Id::from_bits(token), ..Record::decode(document.as_bytes()).unwrap() }
}

pub(crate) fn written(swap: Swap) -> Version {
    let Swap::Written(version) = swap else { panic!("nothing was written: {swap:?}") };
    version
}

/// A name that nobody else has: of a table, or of a file.
pub(crate) fn fresh(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{prefix}_{now:x}_{}_{count}", std::process::id())
}

/// A place with a table of its own.
pub(crate) struct Place<DB: Server> {
    /// As `store::connect` takes it, with the table.
    pub(crate) url: String,
    pub(crate) table: String,
    options: Options<DB>,
    /// Of a file that is deleted with this.
    file: Option<PathBuf>,
}

impl<DB: Server> Place<DB> {
    /// A place whose table is not there yet.
    pub(crate) fn new() -> Self {
        DB::place(fresh("t"))
    }

    /// A place whose table is there.
    pub(crate) async fn ready() -> Self {
        let place = Self::new();
        place.store().create_table().await.unwrap();
        place
    }

    /// A store on the table, with a few connections of its own.
    pub(crate) fn store(&self) -> Sql<DB> {
        Sql::builder(self.pool(4)).table(&self.table).build().unwrap()
    }

    /// The file of an embedded database.
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().unwrap()
    }

    /// The same place, used by a role that has these grants on the table and no other.
    pub(crate) async fn role(&self, grants: &str) -> Place<DB> {
        let role = fresh("r");
        for statement in DB::MAKE_ROLE {
            self.run(&statement.replace("{role}", &role).replace("{grants}", grants)).await;
        }
        let options = DB::with_user(self.options.clone(), &role);
        Place { url: role, table: self.table.clone(), options, file: None }
    }

    pub(crate) async fn drop_role(&self, role: Place<DB>) {
        for statement in DB::DROP_ROLE {
            self.run(&statement.replace("{role}", &role.url)).await;
        }
    }

    /// Some connections.
    pub(crate) fn pool(&self, most: u32) -> Pool<DB> {
        self.pool_with(most, &[])
    }

    /// Some connections, in each of which these statements are run first.
    pub(crate) fn pool_with(&self, most: u32, first: &'static [&'static str]) -> Pool<DB> {
        let pool = PoolOptions::new().max_connections(most).after_connect(move |connection, _| {
            Box::pin(async move {
                for statement in first {
                    DB::run(connection, statement).await?;
                }
                Ok(())
            })
        });
        pool.connect_lazy_with(self.options.clone())
    }

    /// Runs a statement past the store; `{table}` in it is the table. How many rows it changed.
    pub(crate) async fn run(&self, statement: &str) -> u64 {
        let statement = statement.replace("{table}", &self.table);
        let mut connection = self.pool(1).acquire().await.unwrap().detach();
        let changed = DB::run(&mut connection, &statement).await;
        let _ = connection.close().await;
        changed.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Deletes the record of a key.
    pub(crate) async fn forget(&self, key: &Key) {
        let hex: String = key.stored_name(255).bytes().map(|byte| format!("{byte:02x}")).collect();
        self.run(&format!("DELETE FROM {{table}} WHERE name = {}", DB::text(&hex))).await;
    }
}

impl<DB: Server> Drop for Place<DB> {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let Some(file) = &self.file else { return };
            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
        }
    }
}

/// One kind of server.
pub(crate) trait Server: Dialect<Connection: Connection<Options: Clone>> {
    /// As the report calls it.
    const SHORT: &'static str;
    fn place(table: String) -> Place<Self>;
    /// A text, spelled as the hex digits of its bytes.
    fn text(hex: &str) -> String;
    /// A time that is so many seconds away.
    fn from_now(seconds: i64) -> String;
    fn with_user(options: Options<Self>, user: &str) -> Options<Self>;
    /// Runs it as it is; how many rows it changed.
    fn run<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<u64, sqlx::Error>>;
    /// What puts a session at these levels.
    const REPEATABLE_READ: &'static [&'static str];
    const SERIALIZABLE: &'static [&'static str];
    /// What puts a session into a time zone far east, and one far west.
    const EAST: &'static [&'static str];
    const WEST: &'static [&'static str];
    const MAKE_ROLE: &'static [&'static str];
    const DROP_ROLE: &'static [&'static str];
}

type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} must be the URL of a server"))
}

fn served<DB: Server>(table: String, url: &str, options: Options<DB>) -> Place<DB> {
    let mark = if url.contains('?') { '&' } else { '?' };
    Place { url: format!("{url}{mark}table={table}"), table, options, file: None }
}

impl Server for Postgres {
    const SHORT: &'static str = "postgres";

    fn place(table: String) -> Place<Self> {
        let url = variable("PUSHONCE_TEST_POSTGRES");
        served(table, &url, PgConnectOptions::from_str(&url).unwrap())
    }

    fn text(hex: &str) -> String {
        format!("convert_from(decode('{hex}', 'hex'), 'UTF8')")
    }

    fn from_now(seconds: i64) -> String {
        format!("clock_timestamp() + {seconds} * interval '1 second'")
    }

    fn with_user(options: Options<Self>, user: &str) -> Options<Self> {
        options.username(user)
    }

    const REPEATABLE_READ: &'static [&'static str] =
        &["SET default_transaction_isolation = 'repeatable read'"];
    const SERIALIZABLE: &'static [&'static str] = &["SET default_transaction_isolation = 'serializable'"];
    const EAST: &'static [&'static str] = &["SET TIME ZONE 9"];
    const WEST: &'static [&'static str] = &["SET TIME ZONE -7"];
    const MAKE_ROLE: &'static [&'static str] =
        &["CREATE ROLE {role} LOGIN; GRANT {grants} ON {table} TO {role}"];
    const DROP_ROLE: &'static [&'static str] = &["DROP OWNED BY {role}; DROP ROLE {role}"];

    fn run<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<u64, sqlx::Error>> {
        Box::pin(async move {
            Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?.rows_affected())
        })
    }
}

impl Server for MySql {
    const SHORT: &'static str = "mariadb";

    fn place(table: String) -> Place<Self> {
        let url = variable("PUSHONCE_TEST_MYSQL");
        served(table, &url, MySqlConnectOptions::from_str(&url).unwrap())
    }

    fn text(hex: &str) -> String {
        format!("unhex('{hex}')")
    }

    fn from_now(seconds: i64) -> String {
        format!("UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND")
    }

    fn with_user(options: Options<Self>, user: &str) -> Options<Self> {
        options.username(user)
    }

    const REPEATABLE_READ: &'static [&'static str] =
        &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"];
    const SERIALIZABLE: &'static [&'static str] = &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"];
    const EAST: &'static [&'static str] = &["SET time_zone = '+09:00'"];
    const WEST: &'static [&'static str] = &["SET time_zone = '-07:00'"];
    const MAKE_ROLE: &'static [&'static str] = &["CREATE USER {role}", "GRANT {grants} ON {table} TO {role}"];
    const DROP_ROLE: &'static [&'static str] = &["DROP USER {role}"];

    fn run<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<u64, sqlx::Error>> {
        Box::pin(async move {
            Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?.rows_affected())
        })
    }
}

impl Server for Sqlite {
    const SHORT: &'static str = "sqlite";

    fn place(table: String) -> Place<Self> {
        let file = std::env::temp_dir().join(fresh("pushonce")).with_extension("db");
        let url = format!("sqlite://{}", file.display());
        let options = SqliteConnectOptions::from_str(&url).unwrap().create_if_missing(true);
        let mut place = served(table, &url, options.journal_mode(SqliteJournalMode::Wal));
        place.file = Some(file);
        place
    }

    fn text(hex: &str) -> String {
        format!("CAST(x'{hex}' AS TEXT)")
    }

    fn from_now(seconds: i64) -> String {
        format!("strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds} seconds')")
    }

    fn with_user(_: Options<Self>, _: &str) -> Options<Self> {
        unreachable!("SQLite knows no roles")
    }

    // A writer at a time, and UTC always.
    const REPEATABLE_READ: &'static [&'static str] = &[];
    const SERIALIZABLE: &'static [&'static str] = &[];
    const EAST: &'static [&'static str] = &[];
    const WEST: &'static [&'static str] = &[];
    const MAKE_ROLE: &'static [&'static str] = &[];
    const DROP_ROLE: &'static [&'static str] = &[];

    fn run<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<u64, sqlx::Error>> {
        Box::pin(async move {
            Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?.rows_affected())
        })
    }
}
