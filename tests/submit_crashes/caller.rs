//! A caller that submits one key until it is accepted, and notes what it is told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use pushonce::Store;
use pushonce::publish::Publisher;
use pushonce::submit::{SubmitError, Submitted, TaskId};

use crate::{PATIENCE, pause, work};

/// Who submits, where, and what it was told so far.
pub(crate) struct Caller {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) topic: String,
    pub(crate) key: String,
    pub(crate) told: Told,
}

/// What a caller was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The tasks of its key.
    pub(crate) ids: BTreeSet<TaskId>,
    /// "In progress" while the key might be held.
    pub(crate) early: usize,
    /// "In progress" when it was to be free.
    pub(crate) late: usize,
}

impl Caller {
    pub(crate) async fn submit(&mut self) -> Result<Submitted, SubmitError> {
        let sent = work::submit(self.store.clone(), self.publisher.clone(), &self.topic, &self.key).await;
        self.told.ids.extend(match &sent {
            Ok(submitted) => Some(submitted.task.task_id),
            Err(SubmitError::InProgress { task_id, .. }) => Some(*task_id),
            Err(_) => None,
        });
        sent
    }

    /// Submits until it is accepted. From `free` on nobody is to be kept out.
    pub(crate) async fn accepted(&mut self, free: Instant) -> Submitted {
        let accepted = async {
            loop {
                let begun = Instant::now();
                match self.submit().await {
                    Ok(submitted) => return submitted,
                    Err(SubmitError::InProgress { .. }) if begun >= free => self.told.late += 1,
                    Err(SubmitError::InProgress { .. }) => self.told.early += 1,
                    Err(error) => panic!("{error:?}"),
                }
                pause().await;
            }
        };
        tokio::time::timeout(PATIENCE, accepted).await.expect("a key whose submitter is dead is free again")
    }
}
