//! What a driver's error means for a call: whether it may pass, and whether a write may have landed.

use sqlx::Error;

use super::dialect::Dialect;
use super::session::{Call, Session};
use crate::store::StoreError;

/// The longest part of a message that an error repeats, in characters.
const QUOTED: usize = 300;

/// What an error of a database means for the statement that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The key is taken, and nothing was written.
    Taken,
    /// It may pass, and nothing was written.
    Passing,
    /// It may pass, and nobody knows what was written.
    Open,
    /// The table, or a column of it, is missing.
    NoTable,
    /// It will not pass until this is mended.
    Mend(&'static str),
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) const GRANT: &str =
    "grant the role SELECT, INSERT, UPDATE and, to purge, DELETE on the table, and USAGE on its schema";
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) const LOGIN: &str = "check the user, the password and from where it may connect";
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) const NO_DATABASE: &str = "check the name of the database: is there one?";
pub(super) const STATEMENT: &str = "it does not take our statement: is the table as `sql::schema` has it?";
const SETTING: &str = "check the address and the files that it names";

impl<DB: Dialect> Session<DB> {
    /// The store's error; `None`: the key is taken, and nothing was written.
    pub(super) fn fault(&self, call: Call, error: Error) -> Option<StoreError> {
        let meaning = match &error {
            Error::Database(error) => DB::meaning(&**error),
            Error::Configuration(_) => Meaning::Mend(SETTING),
            Error::TypeNotFound { .. }
            | Error::ColumnIndexOutOfBounds { .. }
            | Error::ColumnNotFound(_)
            | Error::ColumnDecode { .. }
            | Error::Encode(_)
            | Error::Decode(_) => Meaning::Mend(STATEMENT),
            // Of the connection: it may have broken on the way there or on the way back.
            _ => Meaning::Open,
        };
        let said = match &error {
            Error::Database(error) => quoted(error.message()),
            error => quoted(&error.to_string()),
        };
        let remedy = match (meaning, call) {
            (Meaning::Taken, Call::Write) => return None,
            // Whatever the server says no to is not committed, and the handler's own writes may be the reason.
            (Meaning::Passing | Meaning::Open, _) | (_, Call::Commit) => {
                return Some(StoreError::Unavailable {
                    what: format!("{}: {said}", DB::NAME),
                    may_have_written: meaning == Meaning::Open && matches!(call, Call::Write | Call::Commit),
                    source: Some(error.into()),
                });
            }
            (Meaning::NoTable, _) => self.remedy(),
            (Meaning::Mend(remedy), _) => remedy.to_owned(),
            (Meaning::Taken, _) => STATEMENT.to_owned(),
        };
        let what = format!("{}: {remedy}; it said: {said}", DB::NAME);
        Some(StoreError::Refused { what, source: Some(error.into()) })
    }
}

fn quoted(message: &str) -> String {
    message.lines().next().unwrap_or_default().chars().take(QUOTED).collect()
}
