//! A store whose records can be swapped in a transaction of the handler's own.

use super::{BoxFuture, Record, Store, StoreError, Version};
use crate::key::Key;

/// A [`Store`] that can swap a record inside of somebody's transaction, so that an effect in the same
/// database and the record of it are committed together or not at all.
///
/// A lease uses it; nobody else needs to call it.
pub trait Completes<Tx>: Store {
    /// Writes `next` in the transaction if the record is still the one that `seen` names: whether it
    /// was. Where it was not, the transaction is to be rolled back. Nothing is committed.
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

    /// Commits the transaction.
    ///
    /// # Errors
    /// [`StoreError`]; where [`StoreError::may_have_written`] holds, it may be committed, or be committed later.
    fn commit(&self, tx: Tx) -> BoxFuture<'_, Result<(), StoreError>>
    where
        Tx: 'static;
}
