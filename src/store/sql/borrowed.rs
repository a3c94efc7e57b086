//! A connection of the pool for the time of one statement, which goes on to the next call that waits.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Database, Pool};
use tokio::sync::oneshot;

use super::dialect::{Asking, Dialect, Said, Value};
use crate::task;
use crate::time::at_once;

/// So many calls in a row may have a connection before the pool has it back: the handlers may use the same
/// pool, and are to have their turn.
const IN_A_ROW: u8 = 16;

/// The calls that wait for a connection, first come first served.
///
/// The driver asks the server once more before its pool takes a connection back. Under load, when others
/// wait, whoever is through hands the connection on instead, which saves that trip and the way through the pool.
#[derive(Debug)]
pub(super) struct Waiting<DB: Database>(Mutex<VecDeque<oneshot::Sender<Borrowed<DB>>>>);

impl<DB: Database> Default for Waiting<DB> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<DB: Database> Waiting<DB> {
    /// Borrows a connection: of the pool, or of a call that is through, whichever comes first. A pool may use
    /// up `return_timeout` to take it back.
    pub(super) async fn borrow(
        self: &Arc<Self>,
        pool: &Pool<DB>,
        return_timeout: Duration,
    ) -> Result<Borrowed<DB>, sqlx::Error> {
        let mut acquiring = Acquiring::of(pool);
        let acquired = match at_once(Pin::new(&mut acquiring)).await {
            Poll::Ready(acquired) => acquired,
            Poll::Pending => {
                let handed = self.join();
                tokio::select! {
                    biased;
                    Ok(borrowed) = handed => {
                        if acquiring.has_its_own {
                            let waiting = self.clone();
                            let goes_on = async move {
                                let acquired = acquiring.await;
                                drop(acquired.map(|new| waiting.lend(new, End::Answered, return_timeout)));
                            };
                            // No shutdown waits for it.
                            drop(task::upkeep(goes_on).detach());
                        }
                        return Ok(borrowed);
                    }
                    acquired = &mut acquiring => acquired,
                }
            }
        };
        Ok(self.lend(acquired?, End::Cut, return_timeout))
    }

    fn lend(
        self: &Arc<Self>,
        connection: PoolConnection<DB>,
        end: End,
        return_timeout: Duration,
    ) -> Borrowed<DB> {
        Borrowed { connection: Some(connection), end, in_a_row: 1, waiting: self.clone(), return_timeout }
    }

    fn join(&self) -> oneshot::Receiver<Borrowed<DB>> {
        let (sender, handed) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(sender);
        handed
    }

    /// The first that still waits. Those who have gone, or have a connection by now, are forgotten.
    fn first(&self) -> Option<oneshot::Sender<Borrowed<DB>>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = waiting.pop_front() {
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }
}

/// A connection on its way from the pool. One that is dialled or proved alive for a call is not to be dropped
/// when the call gets another: under load every one would be, and the pool would never grow.
struct Acquiring<DB: Database> {
    pool: Pool<DB>,
    acquired: Pin<Box<dyn Future<Output = Result<PoolConnection<DB>, sqlx::Error>> + Send>>,
    /// The pool had one for it when it asked, or room for one more: it does not only wait for its turn. What
    /// comes free between the look and the asking is missed, at the price of one connection.
    has_its_own: bool,
}

impl<DB: Database> Acquiring<DB> {
    fn of(pool: &Pool<DB>) -> Self {
        Self { pool: pool.clone(), acquired: Box::pin(pool.acquire()), has_its_own: false }
    }
}

impl<DB: Database> Future for Acquiring<DB> {
    type Output = Result<PoolConnection<DB>, sqlx::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let most = self.pool.options().get_max_connections();
        self.has_its_own |= self.pool.num_idle() > 0 || self.pool.size() < most;
        self.acquired.as_mut().poll(context)
    }
}

/// How the statement on a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With an answer.
    Answered,
    /// With an error of the server, which may have ended the session too.
    Failed,
    /// Not at all. The next caller would read the answer that this one did not wait for, or wait for its lock.
    Cut,
}

/// A connection for one statement. Dropped, it goes to who waits for one, or back to the pool; it is closed
/// unless its statement has ended.
#[derive(Debug)]
pub(super) struct Borrowed<DB: Database> {
    /// Taken when it is dropped, and never before.
    connection: Option<PoolConnection<DB>>,
    end: End,
    in_a_row: u8,
    waiting: Arc<Waiting<DB>>,
    return_timeout: Duration,
}

impl<DB: Dialect> Borrowed<DB> {
    /// One statement. Dropped before its end, the connection is of no more use.
    pub(super) async fn ask(
        &mut self,
        asking: Asking,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<Said, sqlx::Error> {
        let connection = self.connection.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        self.end = End::Cut;
        let said = DB::ask(connection, asking, statement, values).await;
        self.end = match &said {
            Ok(_) => End::Answered,
            Err(sqlx::Error::Database(_)) => End::Failed,
            Err(_) => End::Cut,
        };
        said
    }
}

impl<DB: Database> Drop for Borrowed<DB> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.end == End::Cut {
            connection.close_on_drop();
            return;
        }
        if self.end == End::Answered
            && self.in_a_row < IN_A_ROW
            && let Some(next) = self.waiting.first()
        {
            let handed = Self {
                connection: Some(connection),
                end: self.end,
                in_a_row: self.in_a_row + 1,
                waiting: self.waiting.clone(),
                return_timeout: self.return_timeout,
            };
            // Where that one has just gone it comes back, and goes on as it is dropped.
            let _ = next.send(handed);
            return;
        }
        // The driver asks the server without a limit of its own, and all the while the connection counts
        // as one of the pool's.
        task::spawn(tokio::time::timeout(self.return_timeout, connection.return_to_pool()));
    }
}
