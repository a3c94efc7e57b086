//! A record that is completed by a mutation of the handler's own transactional commit.

use gcloud_sdk::google::datastore::v1::commit_request::Mode;
use gcloud_sdk::google::datastore::v1::mutation::Operation;

use super::client::on_version;
use super::{Datastore, entity, pb};
use crate::key::Key;
use crate::store::{BoxFuture, Completes, Record, StoreError, Version};

/// The transaction is the request that commits it. Its last mutation becomes the one that completes the
/// record: on the version that the lease knows, with the conflict resolution FAIL. Whether the
/// condition holds shows with the commit, which fails as a whole where it does not.
///
/// The transaction must not read the record: a lock on it would make others wait.
impl Completes<pb::CommitRequest> for Datastore {
    fn swap_in<'a>(
        &'a self,
        request: &'a mut pb::CommitRequest,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(std::future::ready(self.complete_in(request, key, seen, next).map(|()| true)))
    }
}

impl Datastore {
    fn complete_in(
        &self,
        request: &mut pb::CommitRequest,
        key: &Key,
        seen: &Version,
        next: &Record,
    ) -> Result<(), StoreError> {
        let refused = |what: &str| StoreError::Refused { what: what.to_owned(), source: None };
        // In any other mode the mutations stand or fall each on its own.
        if request.mode() != Mode::Transactional {
            return Err(refused("the commit is not TRANSACTIONAL: set its mode, and a transaction"));
        }
        if request.transaction_selector.is_none() {
            return Err(refused("the commit has no transaction: set its id, or `single_use_transaction`"));
        }
        if (&request.project_id, &request.database_id) != (&self.space.project, &self.space.database) {
            return Err(refused("the commit goes to another project or database than the store"));
        }
        let update = Operation::Update(self.space.entity(key, next)?);
        request.mutations.push(on_version(entity::base(seen)?, update));
        Ok(())
    }
}
