//! Who completes a key: the guard, once the work has ended, or the work, in a transaction of its own.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;

use super::{Claim, CommitError, Misuse, Note};
use crate::store::StoreError;

/// The claim in the hands of the work, with what its receipt says.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) claim: Claim,
    pub(super) note: Note,
}

/// What became of the work's own transaction, as far as was known when the work ended.
#[derive(Debug)]
pub(crate) enum Transacted {
    /// It is committed, and the key with it.
    Committed,
    /// The key is not ours any more, so nothing was committed.
    FencedOut,
    /// It cannot complete this key, and was rolled back.
    Misused(Misuse),
    /// Nothing was committed; with what the store said, if it was asked.
    RolledBack(Option<Arc<StoreError>>),
    /// Nobody knows: the work could commit by itself, or the answer to its commit was lost, then with
    /// what the store said.
    Open(Option<Arc<StoreError>>),
}

impl Transacted {
    /// Whether a renewal decides it: once that is stored, nothing was committed, and nothing can be.
    pub(crate) fn is_undone_by_renewal(&self) -> bool {
        matches!(self, Self::RolledBack(_) | Self::Open(_))
    }
}

impl From<&Result<(), CommitError>> for Transacted {
    fn from(committed: &Result<(), CommitError>) -> Self {
        match committed.clone() {
            Ok(()) => Self::Committed,
            Err(CommitError::Misuse(misuse)) => Self::Misused(misuse),
            Err(CommitError::FencedOut { .. }) => Self::FencedOut,
            Err(CommitError::RolledBack { source }) => Self::RolledBack(source),
            Err(CommitError::Unknown { source }) => Self::Open(source),
        }
    }
}

/// The place where work asks for the claim, and where the guard reads what became of it.
#[derive(Debug, Default)]
pub(super) struct Handover {
    /// Set once: by work that asks, or empty by the guard when work has ended that never did.
    asked: OnceLock<Option<Box<Mutex<Stage>>>>,
    guard: AtomicWaker,
}

#[derive(Debug)]
enum Stage {
    /// The work waits for the claim.
    Asked(oneshot::Sender<Given>),
    /// The work has it.
    Given,
    Told(Transacted),
}

impl Handover {
    /// Asks the guard for the claim. The error is why it is not to be had.
    pub(super) async fn ask(&self) -> Result<Given, &'static str> {
        let (sender, given) = oneshot::channel();
        if self.asked.set(Some(Box::new(Mutex::new(Stage::Asked(sender))))).is_err() {
            return Err(match self.asked.get() {
                Some(Some(_)) => "a lease is committed, or its completion taken, once",
                _ => ENDED,
            });
        }
        self.guard.wake();
        given.await.map_err(|_| ENDED)
    }

    /// Ends when the work asks.
    pub(super) async fn asked(&self) {
        poll_fn(|context| {
            self.guard.register(context.waker());
            if self.asked.get().is_some() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Gives the claim to the work that has asked for it.
    pub(super) fn give(&self, claim: &Claim, note: &Note) {
        let Some(Some(stage)) = self.asked.get() else { return };
        let mut stage = lock(stage);
        if let Stage::Asked(sender) = std::mem::replace(&mut *stage, Stage::Given) {
            // An error means that the work has changed its mind, which the record will tell.
            let _ = sender.send(Given { claim: claim.twin(), note: note.clone() });
        }
    }

    /// What its commit told the work.
    pub(super) fn told(&self, committed: &Result<(), CommitError>) {
        if let Some(Some(stage)) = self.asked.get() {
            *lock(stage) = Stage::Told(committed.into());
        }
    }

    /// The work has ended, and is given nothing any more: what became of its own transaction, if it had one.
    pub(super) fn close(&self) -> Option<Box<Transacted>> {
        let stage = self.asked.get_or_init(|| None).as_ref()?;
        Some(Box::new(match std::mem::replace(&mut *lock(stage), Stage::Given) {
            Stage::Asked(_) => Transacted::RolledBack(None),
            Stage::Given => Transacted::Open(None),
            Stage::Told(transacted) => transacted,
        }))
    }
}

const ENDED: &str = "the work has ended";

fn lock(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}
