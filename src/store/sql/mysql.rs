//! MySQL and MariaDB: each call is one statement; where it lost, a read tells what stands.

use std::str::FromStr as _;

use sqlx::MySql;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlQueryResult};

use super::dialect::{Asking, Options, Said, Speaks, Statements, Value, arguments, columns, fill, run};
use super::fault::{GRANT, LOGIN, Meaning, NO_DATABASE, STATEMENT};
use super::schema::{LABEL, Table};
use crate::store::connect::{ConnectError, malformed};
use crate::store::{BoxFuture, tls};

/// In UTC whatever the session's time zone is.
const COLUMNS: &str = "CONVERT(name USING utf8mb4), token, document, \
    CAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, written_at, UTC_TIMESTAMP(6)), 0) AS CHAR)";
const UNTIL: &str = "UTC_TIMESTAMP(6) + INTERVAL $4 MICROSECOND";

const NO_SAVEPOINT: u16 = 1305;

fn number(error: &dyn DatabaseError) -> Option<u16> {
    error.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number)
}

impl Speaks for MySql {
    const TELLS: bool = false;
    const CONNECTIONS: u32 = 5;

    const PARAMETERS: &'static [&'static str] = &[
        "charset",
        "collation",
        "socket",
        "ssl-ca",
        "ssl-cert",
        "ssl-key",
        "ssl-mode",
        "sslca",
        "sslcert",
        "sslkey",
        "sslmode",
        "statement-cache-capacity",
        "time-zone",
        "timezone",
    ];

    fn schema(table: &Table) -> String {
        let table = table.quoted('`');
        // Bytes, since every collation of texts folds or pads some keys into one.
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (
    name       VARBINARY(255) NOT NULL PRIMARY KEY,
    token      CHAR(32)       CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    document   LONGTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    written_at DATETIME(6)    NOT NULL,
    expires_at DATETIME(6)    NOT NULL,
    INDEX (expires_at)
) ENGINE = InnoDB COMMENT = '{LABEL}';
"
        )
    }

    fn statements(table: &Table) -> Statements {
        let (database, name) = (table.schema_or("DATABASE()"), table.name());
        let table = table.quoted('`');
        Statements {
            read: format!("SELECT {COLUMNS} FROM {table} WHERE name = $1"),
            // Never a SELECT .. FOR UPDATE before it: of two that find nothing both wait for ever. F76
            create: format!(
                "INSERT INTO {table} (name, token, document, written_at, expires_at) \
                 VALUES ($1, $2, $3, UTC_TIMESTAMP(6), {UNTIL})"
            ),
            update: format!(
                "UPDATE {table} SET token = $2, document = $3, written_at = UTC_TIMESTAMP(6), \
                 expires_at = {UNTIL} WHERE name = $1 AND token = $5"
            ),
            list: format!("SELECT {COLUMNS} FROM {table} WHERE name > $1 ORDER BY name LIMIT $2"),
            purge: format!(
                "DELETE FROM {table} WHERE expires_at < UTC_TIMESTAMP(6) ORDER BY expires_at LIMIT $1"
            ),
            version: format!(
                "SELECT table_comment FROM information_schema.tables \
                 WHERE table_schema = {database} AND table_name = '{name}'"
            ),
            insert_nothing: format!("INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0"),
            weakness: format!(
                "SELECT CASE \
                 WHEN @@innodb_flush_log_at_trx_commit <> 1 \
                 THEN 'innodb_flush_log_at_trx_commit is not 1: set it to 1' \
                 WHEN @@log_bin = 1 AND @@sync_binlog <> 1 \
                 THEN 'there is a binary log and sync_binlog is not 1, so what the log has lost is rolled \
                 back: set it to 1' \
                 WHEN @@autocommit = 0 \
                 THEN 'autocommit is off, so no statement is committed: set it on' \
                 WHEN engine <> 'InnoDB' THEN 'the engine of the table is not InnoDB: ALTER TABLE .. \
                 ENGINE = InnoDB' END FROM information_schema.tables \
                 WHERE table_schema = {database} AND table_name = '{name}'"
            ),
        }
    }

    fn ask<'a>(
        connection: &'a mut Self::Connection,
        _: Asking,
        statement: &'a str,
        values: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Said, sqlx::Error>> {
        Box::pin(async move {
            // MySQL knows placeholders by their place only.
            let mut placed = Vec::with_capacity(values.len());
            let statement = fill(statement, |text, index| {
                text.push('?');
                placed.extend(values.get(index).copied());
            });
            let arguments = arguments::<Self>(placed.into_iter())?;
            run::<Self>(connection, &statement, arguments, MySqlQueryResult::rows_affected, columns).await
        })
    }

    fn in_transaction(connection: &mut Self::Connection) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
        Box::pin(async move {
            // Without a transaction a savepoint is forgotten at once. A deadlock ends all of one.
            let mark = "SELECT IF(@@autocommit, 'on', 'off'); SAVEPOINT pushonce; RELEASE SAVEPOINT pushonce";
            match Self::ask(connection, Asking::Prepared, mark, &[]).await {
                // Then one that is over is followed by another without a word.
                Ok(said) if said.rows.iter().flatten().flatten().any(|set| set == "off") => {
                    let off =
                        "autocommit is off, so nobody can tell whether the transaction is over: set it to 1";
                    Err(sqlx::Error::Configuration(off.into()))
                }
                Ok(_) => Ok(true),
                Err(sqlx::Error::Database(error)) if number(&*error) == Some(NO_SAVEPOINT) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn meaning(error: &dyn DatabaseError) -> Meaning {
        let Some(number) = number(error) else { return Meaning::Open };
        match number {
            // Duplicate key.
            1062 => Meaning::Taken,
            // Lock wait timeout, deadlock; too many connections, of one user, resources; disk full,
            // read-only: a replica that is about to be promoted.
            1205 | 1213 | 1040 | 1203 | 1226 | 1021 | 1114 | 1290 | 1792 | 1836 => Meaning::Passing,
            // No such table, no such column, fewer or more columns.
            1146 | 1054 | 1136 => Meaning::NoTable,
            1049 | 1046 => Meaning::Mend(NO_DATABASE),
            1045 | 1251 | 1130 | 1698 => Meaning::Mend(LOGIN),
            1044 | 1142 | 1143 | 1227 | 1370 => Meaning::Mend(GRANT),
            // Syntax, a value that does not fit, a packet over the server's bound.
            1064 | 1264 | 1292 | 1366 | 1406 | 1153 => Meaning::Mend(STATEMENT),
            // A shutdown, a killed connection, an error at commit: it may be done all the same.
            _ => Meaning::Open,
        }
    }

    fn options(url: &str) -> Result<Options<Self>, ConnectError> {
        tls::install();
        // What it says may repeat a part of the address.
        MySqlConnectOptions::from_str(url).map_err(|_| malformed("the driver of MySQL does not take it"))
    }
}
