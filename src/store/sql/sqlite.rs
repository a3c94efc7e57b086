//! SQLite: each call is one batch, sent to the thread of its connection in one go.

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::Sqlite;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteQueryResult, SqliteSynchronous};

use super::dialect::{Asking, Options, Said, Speaks, Statements, Value, arguments, columns, run};
use super::fault::{Meaning, STATEMENT};
use super::schema::{LABEL, Table};
use crate::store::BoxFuture;
use crate::store::connect::{ConnectError, malformed};

const NOW: &str = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
const UNTIL: &str = "strftime('%Y-%m-%d %H:%M:%f', 'now', ($4 / 1000000.0) || ' seconds')";
const COLUMNS: &str = "name, token, document, CAST(CAST(max(0, \
    (unixepoch('now', 'subsec') - unixepoch(written_at, 'subsec')) * 1000000) AS INTEGER) AS TEXT)";
/// How long a writer waits for another process. Within it nobody sees an error.
const BUSY: Duration = Duration::from_secs(4);
const FILE: &str = "check the file and its folder: a database, there, and writable?";

impl Speaks for Sqlite {
    const TELLS: bool = true;
    /// There is one writer at a time anyway; on one connection they stand in line.
    const CONNECTIONS: u32 = 1;
    /// It is kept in the file.
    const EMBEDDED: Option<&'static str> = Some("PRAGMA journal_mode = WAL;\n");

    const PARAMETERS: &'static [&'static str] = &["cache", "immutable", "mode", "vfs"];

    fn schema(table: &Table) -> String {
        let (index, name, table) = (table.beside(&table.index(), '"'), table.name(), table.quoted('"'));
        // The comment is kept with the statement, as the version of the schema.
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (
    name       TEXT NOT NULL PRIMARY KEY COLLATE BINARY, /* {LABEL} */
    token      TEXT NOT NULL,
    document   TEXT NOT NULL,
    written_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS {index} ON \"{name}\" (expires_at);
"
        )
    }

    fn statements(table: &Table) -> Statements {
        let (sqlite_schema, name) = (table.beside("sqlite_schema", '"'), table.name());
        let table = table.quoted('"');
        Statements {
            read: format!("SELECT {COLUMNS} FROM {table} WHERE name = $1"),
            // What stands first: where the insert then fails, nothing was written. F78
            create: format!(
                "SELECT {COLUMNS} FROM {table} WHERE name = $1; \
                 INSERT INTO {table} (name, token, document, written_at, expires_at) \
                 VALUES ($1, $2, $3, {NOW}, {UNTIL}) ON CONFLICT (name) DO NOTHING \
                 RETURNING name, NULL, NULL, NULL"
            ),
            update: format!(
                "UPDATE {table} SET token = $2, document = $3, written_at = {NOW}, expires_at = {UNTIL} \
                 WHERE name = $1 AND token = $5"
            ),
            list: format!("SELECT {COLUMNS} FROM {table} WHERE name > $1 ORDER BY name LIMIT $2"),
            purge: format!(
                "DELETE FROM {table} WHERE rowid IN \
                 (SELECT rowid FROM {table} WHERE expires_at < {NOW} LIMIT $1)"
            ),
            version: format!("SELECT sql FROM {sqlite_schema} WHERE type = 'table' AND name = '{name}'"),
            insert_nothing: format!("INSERT INTO {table} SELECT * FROM {table} WHERE false"),
            weakness: "SELECT CASE WHEN synchronous < 2 THEN 'synchronous is below FULL, so a loss of \
                power may take acknowledged writes with it: set it to FULL on each connection' END \
                FROM pragma_synchronous"
                .to_owned(),
        }
    }

    fn ask<'a>(
        connection: &'a mut Self::Connection,
        _: Asking,
        statement: &'a str,
        values: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Said, sqlx::Error>> {
        Box::pin(async move {
            let arguments = arguments::<Self>(values.iter().copied())?;
            run::<Self>(connection, statement, arguments, SqliteQueryResult::rows_affected, columns).await
        })
    }

    fn in_transaction(connection: &mut Self::Connection) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
        Box::pin(async move {
            // There is no other way to ask: within a transaction none can be begun. One that could be is
            // left open, empty: the driver believes in one, and can end this.
            Ok(Self::ask(connection, Asking::Prepared, "BEGIN", &[]).await.is_err())
        })
    }

    fn meaning(error: &dyn DatabaseError) -> Meaning {
        let code = error.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
        // The lower byte says what it is, the rest where it came from.
        match code & 0xff {
            // ERROR, of which only the text tells more.
            1 if error.message().starts_with("no such ") => Meaning::NoTable,
            1 if error.message().contains(" has no column ") => Meaning::NoTable,
            // BUSY, LOCKED, NOMEM, INTERRUPT, FULL, PROTOCOL: the statement is undone.
            5 | 6 | 7 | 9 | 13 | 15 => Meaning::Passing,
            // PERM, READONLY, CORRUPT, CANTOPEN, AUTH, NOTADB.
            3 | 8 | 11 | 14 | 23 | 26 => Meaning::Mend(FILE),
            // ERROR, TOOBIG, CONSTRAINT, MISMATCH, MISUSE, RANGE.
            1 | 18 | 19 | 20 | 21 | 25 => Meaning::Mend(STATEMENT),
            // IOERR above all: what was written may be in the log.
            _ => Meaning::Open,
        }
    }

    fn options(url: &str) -> Result<Options<Self>, ConnectError> {
        let path = url.split_once("://").map(|(_, path)| path).unwrap_or_default();
        if path.is_empty() || path.contains('?') || path.contains(":memory:") {
            return Err(malformed(
                "SQLite takes a file and no parameters of its own; `memory:` is the store in memory",
            ));
        }
        let options =
            SqliteConnectOptions::from_str(url).map_err(|_| malformed("the file has no name of SQLite's"))?;
        // In WAL only FULL syncs the log before it says that a write is done.
        Ok(options.synchronous(SqliteSynchronous::Full).create_if_missing(true).busy_timeout(BUSY))
    }
}
