//! What is to be guarded, and where the result goes.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;

use super::settings::Settings;
use super::watch::unhurt;
use crate::lease::{DeadLetter, Lease, Note, Place, RunError, Why};
use crate::store::{BoxError, BoxFuture};

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
    /// Sends the message to where dead letters go, if there is such a place. Nothing is sent before the
    /// future is polled.
    fn reject(&self, _: &DeadLetter) -> Option<BoxFuture<'static, Result<(), BoxError>>> {
        None
    }
    /// Answers; or gives back what does, where somebody else has to be told first.
    fn send(self, result: Result<Ran<T>, RunError>) -> Option<BoxFuture<'static, ()>>;
}

/// Sends the result at once. What is left to be done before the answer goes out, most often nothing, is
/// the future. The value or the error may panic where nobody takes it, which changes nothing.
pub(super) fn send<T>(
    reply: impl Reply<T>,
    result: Result<Ran<T>, RunError>,
) -> impl Future<Output = ()> + Send {
    let mut rest = None;
    unhurt(|| rest = reply.send(result));
    OptionFuture::from(rest.map(|rest| AssertUnwindSafe(rest).catch_unwind())).map(drop)
}
