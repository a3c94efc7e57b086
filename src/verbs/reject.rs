//! Work that says of its message that it can never succeed: sent to the dead letters, under the fence, before its key is done.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::plan::Reply;
use super::watch::End;
use crate::chain::{chain, find};
use crate::lease::{Claim, Commit, DeadLetter, Lease, Part, RunError};
use crate::store::{BoxError, BoxFuture};
use crate::time::within;

/// The most that is waited for a message to be sent, however long the lease.
const SENDING: Duration = Duration::from_secs(60);

/// Work that failed for good by its own word, and what became of its message.
#[derive(Debug, thiserror::Error)]
#[error("{sent}")]
pub(crate) struct Rejected {
    pub(crate) sent: Sent,
    /// What the work said.
    #[source]
    pub(crate) source: BoxError,
}

/// How far a message came on its way to the dead letters.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Sent {
    /// It is there, and its key is done, if it has one.
    #[error("sent to the dead letters")]
    Recorded,
    /// It is there; its key is not done yet.
    #[error("sent to the dead letters, which is not recorded yet")]
    Unrecorded,
    /// It is there; its key is somebody else's.
    #[error("sent to the dead letters, but somebody else has its key by now")]
    FencedOut,
    /// It is not there, as far as anybody knows.
    #[error("not sent to the dead letters: {0}")]
    Not(String),
}

/// What sends the message of such an end to the dead letters.
pub(super) type Sending = BoxFuture<'static, Result<(), BoxError>>;

/// Whether that end asks for it, and there is a place for dead letters.
pub(super) fn asked<T, R: Reply<T>>(end: &End<T>, reply: &R) -> Option<Sending> {
    let End::Failed(error) = end else { return None };
    reply.reject(find::<DeadLetter>(&**error)?)
}

/// Sends the message of such an end, once its claim is renewed: whoever has lost the key sends nothing.
/// What is not sent has failed as any other work.
pub(super) async fn reject<T>(claim: &mut Claim, lease: &Lease, end: End<T>, sending: Sending) -> End<T> {
    let End::Failed(source) = end else { return end };
    let sent = match claim.renew().await {
        Ok(Commit::Recorded) => {
            lease.renewed(Part::Key, claim.since());
            sent(sending, claim.excludes()).await
        }
        // In a transaction of the work's own, whose answer was lost.
        Ok(Commit::AlreadyDone) => Err("its key is recorded already".to_owned()),
        Ok(Commit::FencedOut) => Err("its key is not ours any more".to_owned()),
        Err(error) => Err(format!("its claim could not be renewed: {}", chain(&error))),
    };
    match sent {
        Ok(()) => End::Rejected(source),
        Err(why) => End::Failed(Rejected { sent: Sent::Not(why), source }.into()),
    }
}

/// The same without a claim.
pub(super) async fn unguarded<T>(end: End<T>, sending: Sending) -> End<T> {
    let End::Failed(source) = end else { return end };
    let sent = match sent(sending, SENDING).await {
        Ok(()) => Sent::Recorded,
        Err(why) => Sent::Not(why),
    };
    End::Failed(Rejected { sent, source }.into())
}

/// Waits until it is sent, for at most that long. A panic is a fault like any other.
async fn sent(sending: Sending, limit: Duration) -> Result<(), String> {
    let limit = limit.min(SENDING);
    match within(limit, pin!(AssertUnwindSafe(sending).catch_unwind())).await {
        Some(Ok(Ok(()))) => Ok(()),
        Some(Ok(Err(error))) => Err(chain(&*error)),
        Some(Err(_)) => Err("the publisher panicked".to_owned()),
        None => Err(format!("no answer of the publisher within {limit:?}")),
    }
}

/// What work whose message was sent is told, by what was stored of it.
pub(super) fn recorded(error: RunError, stored: Option<Commit>) -> RunError {
    let RunError::Work(source) = error else { return error };
    let sent = match stored {
        Some(Commit::Recorded | Commit::AlreadyDone) => Sent::Recorded,
        Some(Commit::FencedOut) => Sent::FencedOut,
        None => Sent::Unrecorded,
    };
    RunError::Work(Rejected { sent, source }.into())
}
