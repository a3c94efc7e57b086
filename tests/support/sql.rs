//! The SQL servers: `PUSHONCE_TEST_POSTGRES` and `PUSHONCE_TEST_MYSQL` name two of them by URL; SQLite
//! needs none.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use pushonce::Key;
use pushonce::store::sql::Dialect;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection, MySql, Pool, Postgres, Sqlite};

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
    options: <DB::Connection as Connection>::Options,
    /// Of a file that is deleted with this.
    file: Option<PathBuf>,
}

impl<DB: Server> Place<DB> {
    /// A place whose table is not there yet.
    pub(crate) fn new() -> Self {
        DB::place(fresh("t"))
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
    fn run<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<u64, sqlx::Error>>;
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} must be the URL of a server"))
}

fn served<DB: Server>(
    table: String,
    url: &str,
    options: <DB::Connection as Connection>::Options,
) -> Place<DB> {
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

    fn run<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<u64, sqlx::Error>> {
        Box::pin(async move {
            Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?.rows_affected())
        })
    }
}
