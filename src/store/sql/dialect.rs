//! What the store asks of a database: its statements, one way to run them, and what its refusals mean.

use futures_util::TryStreamExt as _;
use sqlx::error::{BoxDynError, DatabaseError};
use sqlx::{Arguments, AssertSqlSafe, Connection, Database, Either, Encode, Executor, IntoArguments, Type};

use super::fault::Meaning;
use super::schema::Table;
use crate::store::BoxFuture;
use crate::store::connect::ConnectError;

/// A database that [`Sql`](super::Sql) speaks to: `sqlx::Postgres`, `sqlx::Sqlite` or `sqlx::MySql`,
/// which is MariaDB too. Sealed.
pub trait Dialect: Speaks {}

impl<DB: Speaks> Dialect for DB {}

/// Options of a connection.
pub(super) type Options<DB> = <<DB as Database>::Connection as Connection>::Options;

/// How one database says it. Public only for the bounds of [`Dialect`]; nobody can name it.
///
/// Each statement that brings records brings four texts a row: name, token, document and age in
/// microseconds. Placeholders are `$1`, `$2` .. in each dialect.
pub trait Speaks: Database {
    /// Whether a create that was lost brings what stands. If so, one that was not lost brings a row
    /// without a token; else the number of changed rows tells, as it does of every update.
    const TELLS: bool;
    /// Connections worth having by default, where it is opened by its address.
    const CONNECTIONS: u32;
    /// Where its address is a file of ours: what is run before the table is made in it.
    const EMBEDDED: Option<&'static str> = None;
    /// Whether it knows [`Asking::Whole`].
    const WHOLE: bool = false;

    /// The parameters of an address that the driver knows. It takes others without a word, or logs them.
    const PARAMETERS: &'static [&'static str];

    /// The DDL, as it is printed.
    fn schema(table: &Table) -> String;

    /// The DDL, as it is run: also by two at once.
    fn install(table: &Table) -> String {
        Self::schema(table)
    }

    fn statements(table: &Table) -> Statements;

    /// Runs a statement; without values as it is, which may be several.
    fn ask<'a>(
        connection: &'a mut Self::Connection,
        asking: Asking,
        statement: &'a str,
        values: &'a [Value<'a>],
    ) -> BoxFuture<'a, Result<Said, sqlx::Error>>;

    /// Whether the connection is still in a transaction. Where an error can end one, what follows it
    /// commits itself, each statement on its own.
    fn in_transaction(connection: &mut Self::Connection) -> BoxFuture<'_, Result<bool, sqlx::Error>>;

    fn meaning(error: &dyn DatabaseError) -> Meaning;

    /// What the driver reads of an address without our own parameters.
    fn options(url: &str) -> Result<Options<Self>, ConnectError>;
}

/// The statements over one table.
#[derive(Debug)]
pub struct Statements {
    /// By name ($1).
    pub read: String,
    /// Name, token, document, and the microseconds to keep it ($1 to $4).
    pub create: String,
    /// The same, and the token that was seen ($5).
    pub update: String,
    /// What comes after a name ($1), up to a number ($2), in the order of the names.
    pub list: String,
    /// Up to a number ($1).
    pub purge: String,
    /// One row if the table is there: a text that has the version of its schema in it.
    pub version: String,
    /// Inserts nothing, with the permission that it takes.
    pub insert_nothing: String,
    /// One row, whose text is null unless acknowledged writes may be lost: then why, and what to mend.
    pub weakness: String,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Prepared once for each connection.
    Prepared,
    /// Each on its own, with its values in it: for a pooler that may send every one to another server.
    Whole,
}

/// A value for a placeholder.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Text(&'a str),
    Number(i64),
}

/// What a statement brought.
#[derive(Debug, Default)]
pub struct Said {
    /// Rows that the last statement changed.
    pub changed: u64,
    pub rows: Vec<Row>,
}

pub(super) type Row = Vec<Option<String>>;

impl Said {
    /// Whether the create that brought it was not lost.
    pub(super) fn created<DB: Speaks>(&self) -> bool {
        if DB::TELLS {
            return self.rows.iter().any(|row| row.get(1).is_some_and(Option::is_none));
        }
        self.updated()
    }

    /// Whether the update that brought it was not lost.
    pub(super) fn updated(&self) -> bool {
        self.changed > 0
    }
}

/// Runs it, as prepared or, without arguments, as it is.
pub(super) async fn run<DB>(
    connection: &mut DB::Connection,
    statement: &str,
    arguments: Option<DB::Arguments>,
    changed: fn(&DB::QueryResult) -> u64,
    texts: fn(&DB::Row) -> Result<Option<Row>, sqlx::Error>,
) -> Result<Said, sqlx::Error>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    // Safe: the only part that is not ours is the name of the table, which was checked.
    let statement = AssertSqlSafe(statement);
    let mut answers = match arguments {
        Some(arguments) => connection.fetch_many(sqlx::query_with(statement, arguments)),
        None => connection.fetch_many(sqlx::raw_sql(statement)),
    };
    let mut said = Said::default();
    while let Some(answer) = answers.try_next().await? {
        match answer {
            Either::Left(result) => said.changed = changed(&result),
            Either::Right(row) => said.rows.extend(texts(&row)?),
        }
    }
    Ok(said)
}

/// The columns of a row that are texts, as all are.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(super) fn columns<R>(row: &R) -> Result<Option<Row>, sqlx::Error>
where
    R: sqlx::Row,
    for<'r> String: sqlx::Decode<'r, R::Database> + Type<R::Database>,
    usize: sqlx::ColumnIndex<R>,
{
    (0..row.len()).map(|column| row.try_get(column)).collect::<Result<_, _>>().map(Some)
}

/// The values as arguments of the driver; none if there are none.
pub(super) fn arguments<'v, DB>(
    values: impl ExactSizeIterator<Item = Value<'v>>,
) -> Result<Option<DB::Arguments>, sqlx::Error>
where
    DB: Database,
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    i64: for<'t> Encode<'t, DB> + Type<DB>,
{
    if values.len() == 0 {
        return Ok(None);
    }
    let mut arguments = DB::Arguments::default();
    let mut add = |value| -> Result<(), BoxDynError> {
        match value {
            Value::Text(text) => arguments.add(text),
            Value::Number(number) => arguments.add(number),
        }
    };
    for value in values {
        add(value).map_err(sqlx::Error::Encode)?;
    }
    Ok(Some(arguments))
}

/// The statement with each placeholder written as `write` writes it, given its index from 0.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn fill(statement: &str, mut write: impl FnMut(&mut String, usize)) -> String {
    let mut parts = statement.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match part[..digits].parse::<usize>() {
            Ok(number @ 1..) => write(&mut filled, number - 1),
            // Our statements have none; whatever it is, the server is to see it.
            _ => {
                filled.push('$');
                filled.push_str(&part[..digits]);
            }
        }
        filled.push_str(&part[digits..]);
    }
    filled
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn placeholders_are_filled_by_number_and_whatever_is_filled_in_is_not_looked_at() {
        let filled =
            fill("a = $1 AND b = $12::bigint, $2", |text, index| text.push_str(&format!("<$1 {index}>")));
        assert_eq!(filled, "a = <$1 0> AND b = <$1 11>::bigint, <$1 1>");
        assert_eq!(fill("no $ and $0 nor $x", |_, _| unreachable!()), "no $ and $0 nor $x");
    }
}
