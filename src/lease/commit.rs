//! One transaction: the key is completed in the transaction that holds the work's effect.

use std::sync::Arc;

use super::handover::Given;
use super::machine::{Op, Step};
use super::{CommitError, Lease, Misuse, bounded};
use crate::store::record::Verb;
use crate::store::{Commits, Completes, Store, StoreError};

impl Lease {
    /// Completes the key in `tx`, as its last statement, and commits it: the effects in that
    /// transaction and the record of them stand together, or neither does. See
    /// `docs/one-transaction.md`.
    ///
    /// `store` is the very store that the layer or the verb was given, and `tx` a transaction in its
    /// database. Renewal stops first. Statement and commit are given five seconds each. Once for a
    /// lease, and for `lock` only, which is the layer's verb unless it is told otherwise.
    ///
    /// With `PUSHONCE_DISABLED` it commits, and no more. Under the layer there is no lease then.
    ///
    /// # Errors
    /// [`CommitError`]: return it, or any error. What it is answered follows from what the record
    /// says then, not from what the work says. Do not begin the work anew.
    pub async fn commit<S, Tx>(&self, store: &Arc<S>, tx: Tx) -> Result<(), CommitError>
    where
        S: Commits<Tx> + ?Sized,
        Tx: Send + 'static,
    {
        let given = self.take_over(store).await?;
        let committed = committed(&**store, given, tx).await;
        self.0.handover.told(&committed);
        committed
    }

    /// The statement that completes the key, for those who commit themselves: run it last in the
    /// transaction that holds the work's effect, then commit that. See `docs/one-transaction.md`.
    ///
    /// From here on the work's own word does not count: when it has ended, the record says whether the
    /// transaction was committed. `store` is the very store that the layer or the verb was given.
    /// Renewal stops first. Once for a lease, and for `lock` only.
    ///
    /// # Errors
    /// [`CommitError::Misuse`]: roll the transaction back and mend the program.
    pub async fn completion<S>(&self, store: &Arc<S>) -> Result<Completion<S>, CommitError>
    where
        S: Store + ?Sized,
    {
        Ok(Completion { given: self.take_over(store).await?, store: store.clone() })
    }

    /// The claim, out of the guard's hands. `None` where nothing is guarded.
    async fn take_over<S: Store + ?Sized>(&self, store: &Arc<S>) -> Result<Option<Given>, CommitError> {
        if !self.0.guarded {
            return Ok(None);
        }
        let misuse = |why| CommitError::Misuse(Misuse::Transaction { key: self.0.key.clone(), why });
        let given = self.0.handover.ask().await.map_err(misuse)?;
        let theirs = Arc::as_ptr(&given.claim.place.store).cast::<()>();
        let why = match given.claim.record.verb {
            Verb::Mutex => "a `mutex` is never done, so there is nothing to complete; use `lock`",
            Verb::AtMostOnce => {
                "`at_most_once` has marked it before the work began, in a write of its own, so a rollback would \
                 lose the message; `lock` loses nothing and commits once"
            }
            Verb::Lock if Arc::as_ptr(store).cast::<()>() != theirs => {
                "it stands in another store; give the very `Arc` that the layer or the verb was given"
            }
            Verb::Lock => return Ok(Some(given)),
        };
        let misused = Err(misuse(why));
        self.0.handover.told(&misused);
        misused.map(|()| None)
    }
}

/// Completes the key in the transaction, where there is one to complete, and commits it.
async fn committed<S, Tx>(store: &S, given: Option<Given>, mut tx: Tx) -> Result<(), CommitError>
where
    S: Commits<Tx> + ?Sized,
    Tx: Send + 'static,
{
    if let Some(mut given) = given {
        given.complete(store, &mut tx).await?;
    }
    let Err(error) = bounded(|| store.commit(tx), StoreError::unanswered).await else { return Ok(()) };
    let lost = error.may_have_written();
    let source = Some(Arc::new(error));
    Err(if lost { CommitError::Unknown { source } } else { CommitError::RolledBack { source } })
}

/// Completes a key inside of a transaction that its owner commits. Made by [`Lease::completion`].
///
/// The lease is not renewed any more: commit soon.
#[derive(Debug)]
#[must_use = "a transaction that is committed without it is not recorded, and its effect is repeated"]
pub struct Completion<S: ?Sized> {
    store: Arc<S>,
    given: Option<Given>,
}

impl<S: ?Sized> Completion<S> {
    /// Runs the completing statement. It is the last one of the transaction: it locks the record, and
    /// what follows it would keep others waiting. After a rollback it may be run again, in another
    /// transaction; of all of them one at most can be committed.
    ///
    /// With `PUSHONCE_DISABLED` it does nothing.
    ///
    /// # Errors
    /// [`CommitError`], also where no row moved: roll the transaction back, and return an error.
    pub async fn execute<Tx>(&self, tx: &mut Tx) -> Result<(), CommitError>
    where
        S: Completes<Tx>,
        Tx: Send,
    {
        match &self.given {
            Some(Given { claim, note }) => {
                let mut given = Given { claim: claim.twin(), note: note.clone() };
                given.complete(&*self.store, tx).await
            }
            None => Ok(()),
        }
    }
}

impl Given {
    /// Writes the completed record in the transaction. Where a renewal of ours or an undo of somebody
    /// else has rewritten the claim, once more on the version that stands.
    async fn complete<S, Tx>(&mut self, store: &S, tx: &mut Tx) -> Result<(), CommitError>
    where
        S: Completes<Tx> + ?Sized,
        Tx: Send,
    {
        let rolled_back = |error| CommitError::RolledBack { source: Some(Arc::new(error)) };
        let (claim, op) = (&mut self.claim, Op::Complete(self.note.clone()));
        let place = claim.place.clone();
        let fenced_out = || CommitError::FencedOut { key: place.key.clone() };
        for tries in 0.. {
            let Step::Write(next) = claim.step(&op) else { return Err(fenced_out()) };
            if tries > 1 {
                break;
            }
            let moved =
                bounded(|| store.swap_in(tx, &place.key, &claim.version, &next), StoreError::unavailable);
            if moved.await.map_err(rolled_back)? {
                return Ok(());
            }
            let stored = place.read().await.map_err(rolled_back)?.ok_or_else(fenced_out)?;
            claim.version = stored.version;
            *claim.record = stored.record;
        }
        Err(rolled_back(StoreError::unavailable(
            "the claim stands, but the transaction cannot see it or it is rewritten again and again",
        )))
    }
}
