//! The three kinds of servers, and what each is told in its own words.

use std::str::FromStr;

use futures_util::future::BoxFuture;
use pushonce::store::sql::Dialect;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection, MySql, Postgres, Sqlite};

use super::{Options, PATIENCE, Place, fresh, served, variable};

/// One kind of server.
pub(crate) trait Server:
    Dialect<Connection: Connection<Options: Clone + FromStr<Err = sqlx::Error>>>
{
    /// As the report calls it.
    const SHORT: &'static str;
    fn place(table: String) -> Place<Self>;
    /// A text, spelled as the hex digits of its bytes.
    fn text(hex: &str) -> String;
    /// A time that is so many seconds away.
    fn from_now(seconds: i64) -> String;
    fn with_user(options: Options<Self>, user: &str) -> Options<Self>;
    fn with_port(options: Options<Self>, port: u16) -> Options<Self>;
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
    /// What makes a session give up before its lock is free, in each way that there is.
    const IMPATIENT: &'static [&'static [&'static str]];
    /// Ends the sessions that wait for a row of the table: whether there was one.
    fn end_waiting(place: &Place<Self>) -> BoxFuture<'_, bool>;
}

/// `Server::run`, which only differs in its types.
macro_rules! run {
    () => {
        fn run<'a>(
            connection: &'a mut Self::Connection,
            statement: &'a str,
        ) -> BoxFuture<'a, Result<u64, sqlx::Error>> {
            Box::pin(async move {
                Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?.rows_affected())
            })
        }
    };
}

impl Server for Postgres {
    const SHORT: &'static str = "postgres";

    fn place(table: String) -> Place<Self> {
        let url = variable("PUSHONCE_TEST_POSTGRES");
        served(table, &url, PgConnectOptions::from_str(&url).unwrap().extra_float_digits(None))
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

    fn with_port(options: Options<Self>, port: u16) -> Options<Self> {
        options.host("127.0.0.1").port(port)
    }

    const REPEATABLE_READ: &'static [&'static str] =
        &["SET default_transaction_isolation = 'repeatable read'"];
    const SERIALIZABLE: &'static [&'static str] = &["SET default_transaction_isolation = 'serializable'"];
    const EAST: &'static [&'static str] = &["SET TIME ZONE 9"];
    const WEST: &'static [&'static str] = &["SET TIME ZONE -7"];
    const MAKE_ROLE: &'static [&'static str] =
        &["CREATE ROLE {role} LOGIN; GRANT {grants} ON {table} TO {role}"];
    const DROP_ROLE: &'static [&'static str] = &["DROP OWNED BY {role}; DROP ROLE {role}"];
    const IMPATIENT: &'static [&'static [&'static str]] = &[
        &["SET lock_timeout = '50ms'"],
        &["SET statement_timeout = '50ms'"],
        &["SET default_transaction_read_only = on"],
    ];

    fn end_waiting(place: &Place<Self>) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let waiting = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE wait_event_type = 'Lock' AND query LIKE '%{table}%' AND pid <> pg_backend_pid()";
            place.run(waiting).await > 0
        })
    }

    run!();
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

    fn with_port(options: Options<Self>, port: u16) -> Options<Self> {
        options.host("127.0.0.1").port(port)
    }

    const REPEATABLE_READ: &'static [&'static str] =
        &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"];
    const SERIALIZABLE: &'static [&'static str] = &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"];
    const EAST: &'static [&'static str] = &["SET time_zone = '+09:00'"];
    const WEST: &'static [&'static str] = &["SET time_zone = '-07:00'"];
    const MAKE_ROLE: &'static [&'static str] = &["CREATE USER {role}", "GRANT {grants} ON {table} TO {role}"];
    const DROP_ROLE: &'static [&'static str] = &["DROP USER {role}"];
    const IMPATIENT: &'static [&'static [&'static str]] =
        &[&["SET innodb_lock_wait_timeout = 1"], &["SET SESSION TRANSACTION READ ONLY"]];

    fn end_waiting(place: &Place<Self>) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let waiting = format!(
                "SELECT id FROM information_schema.processlist \
                 WHERE info LIKE 'UPDATE%{}%' AND id <> CONNECTION_ID()",
                place.table
            );
            let waiting = sqlx::query_scalar::<_, i64>(AssertSqlSafe(waiting));
            let found = waiting.fetch_optional(&place.pool(1)).await.unwrap();
            if let Some(id) = found {
                place.run(&format!("KILL {id}")).await;
            }
            found.is_some()
        })
    }

    run!();
}

impl Server for Sqlite {
    const SHORT: &'static str = "sqlite";

    fn place(table: String) -> Place<Self> {
        let file = std::env::temp_dir().join(fresh("pushonce")).with_extension("db");
        let url = format!("sqlite://{}", file.display());
        let options =
            SqliteConnectOptions::from_str(&url).unwrap().create_if_missing(true).busy_timeout(PATIENCE);
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

    fn with_port(_: Options<Self>, _: u16) -> Options<Self> {
        unreachable!("SQLite listens nowhere")
    }

    // A writer at a time, and UTC always.
    const REPEATABLE_READ: &'static [&'static str] = &[];
    const SERIALIZABLE: &'static [&'static str] = &[];
    const EAST: &'static [&'static str] = &[];
    const WEST: &'static [&'static str] = &[];
    const MAKE_ROLE: &'static [&'static str] = &[];
    const DROP_ROLE: &'static [&'static str] = &[];
    const IMPATIENT: &'static [&'static [&'static str]] = &[];

    fn end_waiting(_: &Place<Self>) -> BoxFuture<'_, bool> {
        unreachable!("SQLite has no sessions")
    }

    run!();
}
