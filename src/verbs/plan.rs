//! What is to be guarded, and where the result goes.

use std::future::Future;
use std::sync::Arc;

use super::settings::Settings;
use crate::lease::{Lease, Note, Place, RunError, Why};

/// What is to be guarded.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) place: Arc<Place>,
    pub(crate) settings: Settings,
    pub(crate) digest: Option<[u8; 32]>,
    pub(crate) note: Note,
    /// A mutex that the work needs besides, taken after the key and given back with it.
    pub(crate) entity: Option<Box<Plan>>,
}

impl Plan {
    /// The key, and the entity's if there is one.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.entity.as_deref())
    }
}

/// Work that succeeded.
#[derive(Debug)]
pub(crate) struct Ran<T> {
    pub(crate) value: T,
    /// Why it is not recorded, if so. The work is done all the same: ack, and tell an operator.
    pub(crate) uncertain: Option<Why>,
}

/// Where the result goes. Called once, whether anybody still waits or not.
pub(crate) trait Reply<T>: Send + 'static {
    /// Ends when nobody waits for the result any more.
    fn closed(&mut self) -> impl Future<Output = ()> + Send;
    /// The work begins under this lease.
    fn began(&mut self, _: &Lease) {}
    fn send(self, result: Result<Ran<T>, RunError>);
}
