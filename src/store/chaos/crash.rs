//! The crash: work ends where its completion would have been written, and its lease lapses.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Chaos, On, lock};
use crate::key::Key;
use crate::store::{StoreError, Stored, Version};

/// Waits for the completion of the key that is claimed next.
#[derive(Debug)]
pub(super) struct Trap {
    key: Option<Key>,
    sprung: oneshot::Sender<Dying>,
}

impl Trap {
    fn springs(&mut self, key: &Key, call: On) -> bool {
        match call {
            // The layer's own claim comes before whatever its handler claims.
            On::Claim => {
                self.key.get_or_insert_with(|| key.clone());
                false
            }
            On::Complete => self.key.as_ref() == Some(key),
            _ => false,
        }
    }
}

/// Work that is done, and stands before its completion.
#[derive(Debug)]
pub(crate) struct Dying {
    pub(crate) key: Key,
    strike: oneshot::Sender<()>,
}

impl Dying {
    /// Ends the task that would complete the key. It writes, answers and tries nothing more.
    pub(crate) fn strike(self) {
        // An error means that it has ended already.
        let _ = self.strike.send(());
    }
}

/// How much older a record is made to look, for as long as it stands.
pub(super) type Older = Mutex<HashMap<Key, (Version, Duration)>>;

/// A record, as old as it is made to look.
pub(super) fn aged(older: &Older, key: &Key, mut stored: Stored) -> Stored {
    if let Some((version, by)) = lock(older).get(key)
        && *version == stored.version
    {
        stored.age = stored.age.saturating_add(*by);
    }
    stored
}

impl Chaos {
    /// Sets the trap. It is sprung at most once, and not at all where nothing is completed.
    pub(crate) fn trap(&self) -> oneshot::Receiver<Dying> {
        let (sprung, dying) = oneshot::channel();
        lock(&self.plan).trap = Some(Trap { key: None, sprung });
        dying
    }

    /// Does not return where the trap is sprung: the task unwinds, as quietly as a killed process.
    pub(super) async fn survive(&self, key: &Key, call: On) {
        let sprung = {
            let mut plan = lock(&self.plan);
            let springs = plan.trap.as_mut().is_some_and(|trap| trap.springs(key, call));
            if springs { plan.trap.take() } else { None }
        };
        let Some(trap) = sprung else { return };
        let (strike, struck) = oneshot::channel();
        if trap.sprung.send(Dying { key: key.clone(), strike }).is_ok() && struck.await.is_ok() {
            // Unlike a panic it calls no panic hook. The store's caller catches nothing, so the task ends.
            resume_unwind(Box::new("a planned crash"));
        }
    }

    /// Makes what stands under the key look older by its own lease, and says what that is.
    pub(crate) async fn lapse(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let standing = self.beneath(key).await?;
        if let Some(stored) = &standing {
            lock(&self.older).insert(key.clone(), (stored.version.clone(), stored.record.lease));
        }
        Ok(standing)
    }

    /// What stands in the inner store.
    pub(crate) async fn beneath(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        self.inner.read(key).await
    }
}
