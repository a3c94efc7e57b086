//! One cell: a key of its own, a store with a way of its own to the server, and who else wants the key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use pushonce::store::Maintain;
use pushonce::store::record::{State, Verb};
use pushonce::{History, Key, Lease, RunError, Skip, Store, lock, mutex};
use tokio::time::timeout;

use super::aimed::{Aimed, Said, Strike};
use super::column::Seat;
use super::faults::Fault;
use super::rows::{Call, Row};
use crate::proxy::Proxy;
use crate::world::eventually;

/// How long what was kept may take to land.
const LANDING: Duration = Duration::from_secs(5);

/// Its claims have until a third of the lease: longer than one call may take (5 s), so that the deadline of
/// the call and that of the claim are told apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leases {
    pub(crate) plain: Duration,
    /// Of work that is renewed: long enough that a server which went as it was renewed comes back in time.
    pub(crate) renewed: Duration,
}

pub(crate) struct Cell {
    pub(crate) row: Row,
    pub(crate) fault: Fault,
    pub(crate) key: Key,
    pub(crate) leases: Leases,
    /// Where its step is made.
    pub(crate) store: Arc<Aimed>,
    /// The same records, as another process has them.
    pub(crate) past: Arc<dyn Maintain>,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) seat: Option<Seat>,
    /// What loses the answer of the call before; and the fault.
    pub(crate) lost: Strike,
    pub(crate) strike: Strike,
    pub(crate) floor: Floor,
}

/// Who is at work on the key.
#[derive(Debug, Default)]
pub(crate) struct Floor {
    runs: AtomicU32,
    busy: AtomicBool,
}

impl Cell {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    pub(crate) fn past(&self) -> Arc<dyn Store> {
        self.past.clone()
    }

    /// From here on its step may begin.
    pub(crate) async fn aim(&self) {
        if let Some(seat) = &self.seat {
            seat.ready().await;
        }
        // So that its connection is there already, as in a process that has run for a while.
        while let Err(error) = self.store.read(&self.key).await {
            assert!(error.is_transient(), "{error:?}");
        }
        let (before, call) = self.row.calls();
        if let Some(before) = before {
            self.store.aim(before, self.lost.clone());
        }
        self.store.aim(call, self.strike.clone());
    }

    /// The step has its answer: what was kept may go on, and whatever it was changes nothing that is settled.
    pub(crate) async fn answered(&self) {
        if let Some(seat) = &self.seat {
            seat.answered();
        }
        let settled = async || {
            let stands = self.past.read(&self.key).await.ok().flatten();
            stands.filter(|stands| stands.record.state != State::Claimed)
        };
        let before = if self.fault.keeps() { settled().await } else { None };
        self.land().await;
        if let (Some(before), Some(after)) = (before, settled().await) {
            assert_eq!(before.version, after.version, "what landed late has changed what was settled");
        }
    }

    /// Lets go what the fault keeps.
    pub(crate) async fn land(&self) {
        if !self.fault.keeps() {
            return;
        }
        match (&self.proxy, &self.strike) {
            (Some(proxy), _) if !proxy.is_waiting() => {
                // The answer to a request that its client has taken back may never come.
                let _ = timeout(LANDING, proxy.go_on()).await;
            }
            (None, Strike::Fake(_, fake)) => tokio::time::sleep(Fault::lasts(*fake)).await,
            _ => {}
        }
    }

    /// The work of whoever holds the key: alone, and nobody else gets it.
    pub(crate) async fn work(self: Arc<Self>, verb: Verb, lease: Lease) -> (u64, History) {
        assert!(!self.floor.busy.swap(true, Ordering::SeqCst), "two hold the key at once");
        self.enter();
        // On a task of its own: a work that asks for its own key is told of its mistake.
        let rival = self.clone();
        let rival = async move { rival.claim(verb, &rival.past(), |_| async { Ok(()) }).await };
        match tokio::spawn(rival).await.expect("it does not panic") {
            Err(RunError::Skipped(Skip::InProgress { .. })) => {}
            // The server is out, perhaps.
            Err(RunError::Store(error)) if error.is_transient() => {}
            rival => panic!("the key is held, and a rival is told {rival:?}"),
        }
        self.floor.busy.store(false, Ordering::SeqCst);
        (lease.fence(), lease.history())
    }

    pub(crate) fn enter(&self) {
        self.floor.runs.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn runs(&self) -> u32 {
        self.floor.runs.load(Ordering::SeqCst)
    }

    /// One claim with that work.
    pub(crate) async fn claim<T, W>(
        &self,
        verb: Verb,
        store: &Arc<dyn Store>,
        work: impl FnOnce(Lease) -> W + Send + 'static,
    ) -> Result<T, RunError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, pushonce::store::BoxError>> + Send + 'static,
    {
        let lease = self.leases.plain;
        match verb {
            Verb::Mutex => mutex(&self.key, store).wait(Duration::ZERO).lease(lease).run_with(work).await,
            _ => lock(&self.key, store).lease(lease).run_with(work).await,
        }
    }

    /// Nobody is locked out: the next one that asks gets the key, at once or when the lease is over.
    pub(crate) async fn next(self: &Arc<Self>, verb: Verb) -> (u64, History) {
        let past = self.past();
        eventually("the next one has the key", async || {
            let cell = self.clone();
            match self.claim(verb, &past, move |lease| async move { Ok(cell.work(verb, lease).await) }).await
            {
                Ok(ran) => Some(ran),
                Err(RunError::Skipped(Skip::InProgress { .. })) => None,
                Err(RunError::Store(error)) if error.is_transient() => None,
                Err(error) => panic!("the next one is told {error:?}"),
            }
        })
        .await
    }

    /// The fault was met, and what was said of it is documented.
    pub(crate) fn judge(&self) {
        let (_, call) = self.row.calls();
        let missed = self.proxy.as_ref().is_some_and(|proxy| proxy.is_waiting());
        assert!(!missed, "the fault was never made: nothing of the call went over the wire");
        let said = self.store.said().unwrap_or_else(|| panic!("the fault was never made: no {call:?} came"));
        match said {
            Said::Answered if self.seat.is_some() && self.proxy.is_some() => {
                panic!("the fault was never made: a server that is not there has answered");
            }
            Said::Refused => panic!("a fault that passes was called final"),
            Said::Unavailable { may_have_written: false } if call.writes() && self.fault.may_land() => {
                panic!("it may have landed, and is said not to have");
            }
            Said::Unavailable { may_have_written: true } if call == Call::Read => {
                panic!("a read is said to have written");
            }
            _ => {}
        }
    }
}
