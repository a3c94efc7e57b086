//! The table: its name, its DDL, and the version by which a running program knows it.

use std::time::Duration;

use super::InvalidSql;
use super::dialect::Dialect;
use super::session::{Call, Session};
use crate::random;
use crate::store::StoreError;

/// Leaves room for the index's own name within the 63 bytes of a name in PostgreSQL.
const NAME_LIMIT: usize = 48;
/// The version of the schema. Changes only add, so a program runs on a newer one too.
const VERSION: u32 = 1;
/// What the table is marked by: a comment, which every database keeps and shows to whoever may read the table.
pub(super) const LABEL: &str = "pushonce schema 1";
const MARK: &str = "pushonce schema ";
/// How often, and how long apart, a new file is asked whether another process is done with it.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(40);

/// The DDL of a table, as text: for your migrations.
///
/// A program needs no right to run DDL. It looks once whether the table is there and of this
/// version, before its first call, and says what to run if it is not. Changes to a schema only ever
/// add, so run a newer one first and deploy the newer program then.
///
/// The role of the program needs SELECT, INSERT, UPDATE and, to purge, DELETE on the table.
///
/// PostgreSQL:
///
/// ```
/// # #[cfg(feature = "postgres")] {
/// # use pushonce::store::sql::schema;
/// assert_eq!(schema::<sqlx::Postgres>("ledger.pushonce")?, r#"
/// CREATE TABLE IF NOT EXISTS "ledger"."pushonce" (
///     name       text        COLLATE "C" PRIMARY KEY,
///     token      text        NOT NULL,
///     document   text        NOT NULL,
///     written_at timestamptz NOT NULL,
///     expires_at timestamptz NOT NULL
/// );
/// CREATE INDEX IF NOT EXISTS "pushonce_expires_at" ON "ledger"."pushonce" (expires_at);
/// COMMENT ON TABLE "ledger"."pushonce" IS 'pushonce schema 1';
/// "#.trim_start());
/// # }
/// # Ok::<(), pushonce::store::sql::InvalidSql>(())
/// ```
///
/// SQLite:
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// # use pushonce::store::sql::schema;
/// assert_eq!(schema::<sqlx::Sqlite>("pushonce")?, r#"
/// CREATE TABLE IF NOT EXISTS "pushonce" (
///     name       TEXT NOT NULL PRIMARY KEY COLLATE BINARY, /* pushonce schema 1 */
///     token      TEXT NOT NULL,
///     document   TEXT NOT NULL,
///     written_at TEXT NOT NULL,
///     expires_at TEXT NOT NULL
/// );
/// CREATE INDEX IF NOT EXISTS "pushonce_expires_at" ON "pushonce" (expires_at);
/// "#.trim_start());
/// # }
/// # Ok::<(), pushonce::store::sql::InvalidSql>(())
/// ```
///
/// MySQL and MariaDB:
///
/// ```
/// # #[cfg(feature = "mysql")] {
/// # use pushonce::store::sql::schema;
/// assert_eq!(schema::<sqlx::MySql>("pushonce")?, r#"
/// CREATE TABLE IF NOT EXISTS `pushonce` (
///     name       VARBINARY(255) NOT NULL PRIMARY KEY,
///     token      CHAR(32)       CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
///     document   LONGTEXT       CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
///     written_at DATETIME(6)    NOT NULL,
///     expires_at DATETIME(6)    NOT NULL,
///     INDEX (expires_at)
/// ) ENGINE = InnoDB COMMENT = 'pushonce schema 1';
/// "#.trim_start());
/// # }
/// # Ok::<(), pushonce::store::sql::InvalidSql>(())
/// ```
///
/// # Errors
/// [`InvalidSql::Table`]: name the table in another way.
pub fn schema<DB: Dialect>(table: &str) -> Result<String, InvalidSql> {
    Ok(DB::schema(&Table::new(table)?))
}

/// The checked name of a table, perhaps with the schema or the database that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    schema: Option<String>,
    name: String,
}

impl Default for Table {
    fn default() -> Self {
        Self { schema: None, name: "pushonce".to_owned() }
    }
}

impl Table {
    pub(super) fn new(table: &str) -> Result<Self, InvalidSql> {
        let (schema, name) =
            table.split_once('.').map_or((None, table), |(schema, name)| (Some(schema), name));
        if !schema.into_iter().chain([name]).all(plain) {
            return Err(InvalidSql::Table { table: table.to_owned() });
        }
        Ok(Self { schema: schema.map(str::to_owned), name: name.to_owned() })
    }

    #[cfg(any(feature = "sqlite", feature = "mysql"))]
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name in quotation marks of the dialect's kind.
    pub(super) fn quoted(&self, mark: char) -> String {
        self.beside(&self.name, mark)
    }

    /// Another name in the same schema.
    pub(super) fn beside(&self, name: &str, mark: char) -> String {
        match &self.schema {
            Some(schema) => format!("{mark}{schema}{mark}.{mark}{name}{mark}"),
            None => format!("{mark}{name}{mark}"),
        }
    }

    /// The schema as a literal, or else `default` as it is.
    #[cfg(feature = "mysql")]
    pub(super) fn schema_or(&self, default: &str) -> String {
        self.schema.as_ref().map_or_else(|| default.to_owned(), |schema| format!("'{schema}'"))
    }

    /// The name of the index.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(super) fn index(&self) -> String {
        format!("{}_expires_at", self.name)
    }
}

/// No name that needs care, in any dialect.
fn plain(name: &str) -> bool {
    name.len() <= NAME_LIMIT
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

impl<DB: Dialect> Session<DB> {
    /// Whether the table is there and of our version; with `install` it is made first where it is not.
    pub(super) async fn look_at_schema(&self, install: bool) -> Result<(), StoreError> {
        let mut found = self.ask(Call::Read, &self.statements.version, &[]).await?;
        if install && found.rows.is_empty() {
            self.install_embedded().await?;
            found = self.ask(Call::Read, &self.statements.version, &[]).await?;
        }
        let marked = found.rows.into_iter().flatten().flatten().next();
        match marked.as_deref().map(version) {
            Some(Some(VERSION..)) => Ok(()),
            None => Err(self.refused("the table is not there")),
            Some(None) => Err(self.refused("the table is not marked as one of pushonce")),
            Some(Some(older)) => Err(self.refused(&format!("the table has schema {older}, not {VERSION}"))),
        }
    }

    /// SQLite lets nobody wait for the switch of its journal, so of several processes that start with
    /// a new file all but one are told that it is locked.
    async fn install_embedded(&self) -> Result<(), StoreError> {
        let statements = format!("{}{}", DB::EMBEDDED.unwrap_or_default(), DB::install(&self.table));
        let mut tries = 0;
        loop {
            match self.ask(Call::Write, &statements, &[]).await {
                Err(error) if error.is_transient() && tries < TRIES => tries += 1,
                ended => return ended.map(drop),
            }
            tokio::time::sleep(random::jitter(PAUSE)).await;
        }
    }

    pub(super) async fn install(&self) -> Result<(), StoreError> {
        self.ask(Call::Write, &DB::install(&self.table), &[]).await.map(drop)
    }

    fn refused(&self, what: &str) -> StoreError {
        let what = format!("{}, table {}: {what}; {}", DB::NAME, self.table.quoted('`'), self.remedy());
        StoreError::Refused { what, source: None }
    }

    /// What to run, on one line.
    pub(super) fn remedy(&self) -> String {
        let ddl = DB::schema(&self.table);
        format!("run, as a role that may: {}", ddl.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// The version that a text with our mark in it tells.
fn version(marked: &str) -> Option<u32> {
    let rest = marked.split_once(MARK)?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_checked() {
        for table in ["pushonce", "ledger.pushonce", "_x1", &"t".repeat(48)] {
            assert!(Table::new(table).is_ok(), "{table}");
        }
        for table in [
            "",
            ".",
            "a.",
            ".a",
            "a.b.c",
            "1a",
            "a b",
            "A",
            "é",
            "a\"b",
            "a;b",
            "a'b",
            "a-b",
            &"t".repeat(49),
        ] {
            assert!(matches!(Table::new(table), Err(InvalidSql::Table { .. })), "{table}");
        }
    }

    #[test]
    fn a_version_is_found_by_its_mark() {
        assert_eq!(version(LABEL), Some(VERSION));
        assert_eq!(version("CREATE TABLE t (name TEXT, /* pushonce schema 12 */ x TEXT)"), Some(12));
        for other in ["", "orders", "pushonce schema", "pushonce schema x"] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
