//! The connection: dialled by the first call, shared by all, and replaced when it is lost.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::RedisResult;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};

use super::driver::{Connection, Server};
use super::fault::{self, Call};
use super::server;
use crate::store::{StoreError, tls};

/// How many calls in a row must fail before the connection to a cluster is given up: it is many
/// connections that the driver mends one by one, and a node that is out must not cost the others theirs.
const PATIENCE: u32 = 3;

pub(super) struct Client {
    server: Server,
    tls: bool,
    timeout: Duration,
    // A new cell takes the place of a lost connection; calls in flight keep the old one.
    current: Mutex<Arc<OnceCell<Dialled>>>,
}

struct Dialled {
    connection: Connection,
    failed: AtomicU32,
}

impl Client {
    pub(super) fn new(server: Server, tls: bool, timeout: Duration) -> Self {
        Self { server, tls, timeout, current: Mutex::default() }
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.server, Server::Cluster(_))
    }

    /// One attempt within the request timeout, the dialling included.
    pub(super) async fn call<A, F>(
        &self,
        call: Call,
        send: impl FnOnce(Connection) -> F,
    ) -> Result<A, StoreError>
    where
        F: Future<Output = RedisResult<A>>,
    {
        let deadline = Instant::now() + self.timeout;
        let cell = self.current();
        // On its own first: what fails before the request has written nothing.
        let dialled = timeout_at(deadline, cell.get_or_try_init(|| self.dial()))
            .await
            .map_err(|_| StoreError::unavailable(format!("no connection within {:?}", self.timeout)))??;
        let mut waiting = Waiting { client: self, cell: &cell, answered: false };
        let answer = timeout_at(deadline, send(dialled.connection.clone())).await;
        let answer = answer.map_err(|_| fault::of_silence(call, self.timeout))?;
        waiting.answered = answer.as_ref().err().is_none_or(fault::keeps_the_connection);
        answer.map_err(|error| fault::of_call(call, self.is_cluster(), error))
    }

    /// Whether the servers can keep records at all, asked anew.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        // The driver's error passes through unread: it has to be judged as that of a dial.
        let ask = |connection| async { Ok(server::check(connection).await) };
        self.call(Call::Read, ask).await?
    }

    fn current(&self) -> Arc<OnceCell<Dialled>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn dial(&self) -> Result<Dialled, StoreError> {
        if self.tls {
            tls::install();
        }
        let connection = self.server.dial().await.map_err(|error| fault::of_dial(self.tls, error))?;
        server::check(connection.clone()).await?;
        Ok(Dialled { connection, failed: AtomicU32::new(0) })
    }

    /// The next call dials anew, unless another has seen to it.
    fn replace(&self, cell: &Arc<OnceCell<Dialled>>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, cell) {
            *current = Arc::default();
        }
    }
}

/// A call that waits for its answer. A connection that gave none is not waited on again, whoever gave
/// up: this call at its deadline, or its caller, by dropping it.
struct Waiting<'a> {
    client: &'a Client,
    cell: &'a Arc<OnceCell<Dialled>>,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(dialled) = self.cell.get() else { return };
        if self.answered {
            return dialled.failed.store(0, Ordering::Relaxed);
        }
        let failed = dialled.failed.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.client.is_cluster() || failed >= PATIENCE {
            self.client.replace(self.cell);
        }
    }
}
