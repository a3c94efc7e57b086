//! PostgreSQL: each call is one statement, and each row that one brings is an array of texts.

use std::fmt::Write as _;
use std::str::FromStr as _;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgQueryResult, PgRow, PgSeverity};
use sqlx::{Postgres, Row as _};

use super::dialect::{Asking, Options, Row, Said, Speaks, Statements, Value, arguments, fill, run};
use super::fault::{GRANT, LOGIN, Meaning, NO_DATABASE, STATEMENT};
use super::schema::{LABEL, Table};
use crate::store::connect::{ConnectError, malformed};
use crate::store::{BoxFuture, tls};

/// The clock when the row is looked at, not when the transaction began.
const RECORD: &str = "ARRAY[name, token, document, \
    (greatest(extract(epoch FROM clock_timestamp() - written_at), 0) * 1000000)::bigint::text]";
/// What is kept for a day and more is kept up to four hours less, so that a claim and its completion
/// nearly always have one value here: an update that changes what is indexed costs a new entry in
/// every index. The day that every retention adds has room for it.
const UNTIL: &str = "CASE WHEN $4::bigint < 86400000000 \
    THEN clock_timestamp() + $4::bigint * interval '1 microsecond' \
    ELSE date_bin('4 hours', clock_timestamp() + $4::bigint * interval '1 microsecond', 'epoch') END";
/// Those who create tables take turns by this lock: two `IF NOT EXISTS` at once can fail.
const CREATING: i64 = 0x7075_7368_6f6e_6365;
const ENCODING: &str = "the database must have the encoding UTF8";
const POOLER: &str = "is there a pooler in transaction mode before it? Say so: `pooler(Pooler::Transaction)`, \
    or `pooler=transaction` in the address";

impl Speaks for Postgres {
    const TELLS: bool = true;
    const CONNECTIONS: u32 = 5;
    const WHOLE: bool = true;

    const PARAMETERS: &'static [&'static str] = &[
        "application_name",
        "dbname",
        "host",
        "hostaddr",
        "options",
        "password",
        "port",
        "ssl-ca",
        "ssl-cert",
        "ssl-key",
        "ssl-mode",
        "ssl-root-cert",
        "sslcert",
        "sslkey",
        "sslmode",
        "sslrootcert",
        "statement-cache-capacity",
        "user",
    ];

    fn schema(table: &Table) -> String {
        let (index, table) = (table.index(), table.quoted('"'));
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (
    name       text        COLLATE \"C\" PRIMARY KEY,
    token      text        NOT NULL,
    document   text        NOT NULL,
    written_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS \"{index}\" ON {table} (expires_at);
COMMENT ON TABLE {table} IS '{LABEL}';
"
        )
    }

    fn install(table: &Table) -> String {
        // One message is one transaction, and the lock is given back with it.
        format!("SELECT ARRAY[pg_advisory_xact_lock({CREATING})::text];\n{}", Self::schema(table))
    }

    fn statements(table: &Table) -> Statements {
        let table = table.quoted('"');
        Statements {
            read: format!("SELECT {RECORD} FROM {table} WHERE name = $1"),
            // What stands is only looked for where nothing was put. It is what stood when the statement
            // began, so not a row of which the insert has just learned: null means, look again. F78
            create: format!(
                "WITH put AS (INSERT INTO {table} (name, token, document, written_at, expires_at) \
                 VALUES ($1, $2, $3, clock_timestamp(), {UNTIL}) ON CONFLICT (name) DO NOTHING \
                 RETURNING true) \
                 SELECT CASE WHEN (SELECT true FROM put) THEN '{{NULL, NULL, NULL, NULL}}' \
                 ELSE (SELECT {RECORD} FROM {table} WHERE name = $1) END"
            ),
            update: format!(
                "UPDATE {table} SET token = $2, document = $3, written_at = clock_timestamp(), \
                 expires_at = {UNTIL} WHERE name = $1 AND token = $5"
            ),
            list: format!("SELECT {RECORD} FROM {table} WHERE name > $1 ORDER BY name LIMIT $2"),
            // The condition stands twice: a row that was claimed anew while this waited is left alone.
            purge: format!(
                "DELETE FROM {table} WHERE name = ANY (ARRAY(SELECT name FROM {table} \
                 WHERE expires_at < statement_timestamp() LIMIT $1 FOR UPDATE SKIP LOCKED)) \
                 AND expires_at < statement_timestamp()"
            ),
            version: format!(
                "SELECT ARRAY[coalesce(obj_description(to_regclass('{table}'), 'pg_class'), '')] \
                 WHERE to_regclass('{table}') IS NOT NULL"
            ),
            insert_nothing: format!("INSERT INTO {table} SELECT * FROM {table} WHERE false"),
            weakness: "SELECT ARRAY[CASE \
                WHEN current_setting('fsync') = 'off' THEN 'fsync is off: set it on' \
                WHEN current_setting('synchronous_commit') = 'off' THEN 'synchronous_commit is off: \
                    set it on for this role, ALTER ROLE .. SET synchronous_commit = on' END]"
                .to_owned(),
        }
    }

    fn ask<'a>(
        connection: &'a mut Self::Connection,
        asking: Asking,
        statement: &'a str,
        values: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Said, sqlx::Error>> {
        Box::pin(async move {
            let changed = PgQueryResult::rows_affected;
            if asking == Asking::Whole {
                let whole = fill(statement, |text, index| literal(text, values.get(index)));
                return run::<Self>(connection, &whole, None, changed, texts).await;
            }
            let arguments = arguments::<Self>(values.iter().copied())?;
            run::<Self>(connection, statement, arguments, changed, texts).await
        })
    }

    fn in_transaction(_: &mut Self::Connection) -> BoxFuture<'_, Result<bool, sqlx::Error>> {
        // After an error it takes nothing but a rollback.
        Box::pin(std::future::ready(Ok(true)))
    }

    fn meaning(error: &dyn DatabaseError) -> Meaning {
        let code = error.code().unwrap_or_default();
        let ended = error
            .try_downcast_ref::<PgDatabaseError>()
            .is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic));
        match (&*code, code.get(..2).unwrap_or_default()) {
            ("3D000", _) => Meaning::Mend(NO_DATABASE),
            (_, "28") => Meaning::Mend(LOGIN),
            // Of a connection that is refused.
            ("53300" | "57P03", _) => Meaning::Passing,
            // A session that is ended may have committed before.
            _ if ended => Meaning::Open,
            ("42P01" | "42703" | "3F000", _) => Meaning::NoTable,
            ("42501", _) => Meaning::Mend(GRANT),
            ("26000" | "42P05", _) => Meaning::Mend(POOLER),
            ("22021" | "22P05", _) => Meaning::Mend(ENCODING),
            ("40003", _) => Meaning::Open,
            // An error undoes its statement. Also 25006: a standby that is about to be promoted.
            ("57014", _) | (_, "25" | "40" | "53" | "55") => Meaning::Passing,
            (_, "0A" | "22" | "23" | "42") => Meaning::Mend(STATEMENT),
            _ => Meaning::Open,
        }
    }

    fn options(url: &str) -> Result<Options<Self>, ConnectError> {
        tls::install();
        // What it says may repeat a part of the address.
        let options = PgConnectOptions::from_str(url);
        let options = options.map_err(|_| malformed("the driver of PostgreSQL does not take it"))?;
        // We read no floats, and PgBouncer hangs up on whoever asks for their digits.
        Ok(options.extra_float_digits(None))
    }
}

/// The array of a row; of one that is null there is none.
fn texts(row: &PgRow) -> Result<Option<Row>, sqlx::Error> {
    row.try_get(0)
}

/// A value as a part of the statement. A text goes in as hex digits, so nothing in it can be anything else.
fn literal(statement: &mut String, value: Option<&Value<'_>>) {
    // Writing into a String cannot fail.
    let _ = match value {
        Some(Value::Text(text)) => {
            let hex = crate::key::hex(text.as_bytes());
            write!(statement, "convert_from(decode('{hex}', 'hex'), 'UTF8')")
        }
        Some(Value::Number(number)) => write!(statement, "{number}"),
        None => write!(statement, "NULL"),
    };
}
