//! Stores whose records can be swapped in a transaction of the handler's own.

use super::{BoxFuture, Record, Store, StoreError, Version};
use crate::key::Key;

/// A [`Store`] that can swap a record inside of somebody's transaction, so that an effect in the same
/// database and the record of it are committed together or not at all.
///
/// A lease uses it ([`Lease::completion`](crate::Lease::completion)); nobody else needs to call it. A
/// store that wraps another implements it, and [`Commits`], by passing the calls on.
pub trait Completes<Tx>: Store {
    /// Writes `next` in the transaction if the record is still the one that `seen` names: whether it
    /// was. Where it was not, the transaction is to be rolled back. Nothing is committed. A store that
    /// learns of the condition only when the transaction is committed says yes, and the commit fails.
    ///
    /// # Errors
    /// [`StoreError`]: the transaction is to be rolled back.
    fn swap_in<'a>(
        &'a self,
        tx: &'a mut Tx,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// A store that can commit such a transaction too.
///
/// A transaction that is dropped must roll back by itself.
pub trait Commits<Tx: Send + 'static>: Completes<Tx> {
    /// Commits the transaction.
    ///
    /// # Errors
    /// [`StoreError`]; where [`StoreError::may_have_written`] holds, it may be committed, or be
    /// committed later. Where it does not, nothing is committed and nothing will be.
    fn commit(&self, tx: Tx) -> BoxFuture<'_, Result<(), StoreError>>;
}
