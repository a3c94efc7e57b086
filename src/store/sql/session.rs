//! One call: a connection for the time of one statement, within one deadline.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sqlx::{Pool, Transaction};
use tokio::time::{Instant, timeout, timeout_at};

use super::borrowed::{Borrowed, Waiting};
use super::dialect::{Asking, Dialect, Said, Statements, Value};
use super::schema::Table;
use crate::store::StoreError;

/// What is asked. It decides what a failure can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// A connection. Nothing was sent.
    Connect,
    Read,
    /// A statement that commits itself.
    Write,
    /// A statement in somebody's transaction.
    Within,
    /// The commit of that transaction.
    Commit,
}

/// The pool, made when it is first used: it needs a runtime.
pub(super) type Lazy<DB> = LazyLock<Pool<DB>, Box<dyn FnOnce() -> Pool<DB> + Send>>;

pub(super) struct Session<DB: Dialect> {
    pub(super) pool: Lazy<DB>,
    pub(super) waiting: Arc<Waiting<DB>>,
    pub(super) table: Table,
    pub(super) statements: Statements,
    pub(super) asking: Asking,
    pub(super) acquire_timeout: Duration,
    pub(super) request_timeout: Duration,
}

impl<DB: Dialect> Session<DB> {
    /// One statement on a connection of the pool. A key that is taken is no error: nothing changed.
    pub(super) async fn ask(
        &self,
        call: Call,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<Said, StoreError> {
        let deadline = Instant::now() + self.request_timeout;
        let mut borrowed = self.borrow(deadline).await?;
        let answer = timeout_at(deadline, borrowed.ask(self.asking, statement, values)).await;
        self.answer(call, answer.ok())
    }

    /// One statement in somebody's transaction. If that is over, the statement would commit itself,
    /// and record work whose effect was rolled back.
    pub(super) async fn ask_within(
        &self,
        transaction: &mut Transaction<'static, DB>,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<Said, StoreError> {
        let asked = async {
            if DB::in_transaction(transaction).await? {
                DB::ask(transaction, self.asking, statement, values).await.map(Some)
            } else {
                Ok(None)
            }
        };
        match timeout(self.request_timeout, asked).await.ok() {
            Some(Ok(None)) => {
                let what = format!(
                    "{}: the transaction is over, since one of its statements failed and took all others with \
                     it: return the error of a statement that fails",
                    DB::NAME
                );
                Err(StoreError::Refused { what, source: None })
            }
            answer => self.answer(Call::Within, answer.map(|answer| answer.map(Option::unwrap_or_default))),
        }
    }

    pub(super) async fn commit(&self, transaction: Transaction<'static, DB>) -> Result<(), StoreError> {
        let committed = timeout(self.request_timeout, transaction.commit()).await.ok();
        let said = committed.map(|committed| committed.map(|()| Said::default()));
        self.answer(Call::Commit, said).map(drop)
    }

    fn answer(&self, call: Call, answer: Option<Result<Said, sqlx::Error>>) -> Result<Said, StoreError> {
        let late = || format!("{}: no answer within {:?}", DB::NAME, self.request_timeout);
        match answer {
            Some(Ok(said)) => Ok(said),
            Some(Err(error)) => self.fault(call, error).map_or_else(|| Ok(Said::default()), Err),
            None if matches!(call, Call::Write | Call::Commit) => Err(StoreError::unanswered(late())),
            None => Err(StoreError::unavailable(late())),
        }
    }

    async fn borrow(&self, deadline: Instant) -> Result<Borrowed<DB>, StoreError> {
        let deadline = deadline.min(Instant::now() + self.acquire_timeout);
        let none = || {
            // The driver does not say which of the two it is.
            let what = format!(
                "{}: no connection within {:?}: the server does not answer, or the pool is used up",
                DB::NAME,
                self.acquire_timeout
            );
            StoreError::unavailable(what)
        };
        match timeout_at(deadline, self.waiting.borrow(&self.pool, self.request_timeout)).await {
            Ok(Ok(borrowed)) => Ok(borrowed),
            Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => Err(none()),
            Ok(Err(error)) => Err(self.fault(Call::Connect, error).unwrap_or_else(none)),
        }
    }
}

impl<DB: Dialect> fmt::Debug for Session<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the pool: its options know the password.
        let Self { pool: _, waiting: _, table, statements: _, asking, acquire_timeout, request_timeout } =
            self;
        f.debug_struct("Session")
            .field("table", table)
            .field("asking", asking)
            .field("acquire_timeout", acquire_timeout)
            .field("request_timeout", request_timeout)
            .finish()
    }
}
