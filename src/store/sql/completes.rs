//! A record that is swapped in the handler's own transaction.

use sqlx::Transaction;

use super::Sql;
use super::dialect::Dialect;
use super::row::Put;
use crate::key::Key;
use crate::store::{BoxFuture, Commits, Completes, Record, StoreError, Version};

impl<DB: Dialect> Completes<Transaction<'static, DB>> for Sql<DB> {
    fn swap_in<'a>(
        &'a self,
        transaction: &'a mut Transaction<'static, DB>,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let put = Put::new(key, Some(seen), next)?;
            let statement = &self.session.statements.update;
            let said = self.session.ask_within(transaction, statement, &put.values()).await?;
            Ok(said.updated())
        })
    }
}

impl<DB: Dialect> Commits<Transaction<'static, DB>> for Sql<DB> {
    fn commit(&self, transaction: Transaction<'static, DB>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.session.commit(transaction))
    }
}
