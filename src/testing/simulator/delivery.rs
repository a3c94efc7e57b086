//! One delivery: from its request to its answer, its deadline, or what goes wrong on the way.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::fault::PushFault;
use super::report::Ending;
use crate::store::BoxError;
use crate::testing::Answer;

/// How a delivery ended.
pub(super) struct Delivered {
    /// Which delivery, of all.
    pub(super) delivery: usize,
    /// Of which message, of all.
    pub(super) message: usize,
    pub(super) ending: Ending,
    pub(super) answer: Option<Answer>,
    /// Whether the ack is not kept.
    pub(super) forgotten: bool,
}

/// Sends it, and hangs up at the deadline: the request is dropped, as a server sees it.
pub(super) async fn delivered<F>(
    request: F,
    deadline: Duration,
    fault: Option<PushFault>,
) -> (Ending, Option<Answer>)
where
    F: Future<Output = Result<Answer, BoxError>>,
{
    let (limit, silence) = match fault {
        Some(PushFault::LostRequest) => return (Ending::RequestLost, None),
        Some(PushFault::HangUp(after)) if after < deadline => (after, Ending::HungUp),
        _ => (deadline, Ending::Deadline),
    };
    // A panic closes the connection, as it does under a real server.
    let answered = tokio::time::timeout(limit, AssertUnwindSafe(request).catch_unwind());
    match answered.await {
        Err(_) => (silence, None),
        Ok(Err(_)) => (Ending::Broken("the service panicked".to_owned()), None),
        Ok(Ok(Err(error))) => (Ending::Broken(error.to_string()), None),
        Ok(Ok(Ok(answer))) => {
            let ending = match fault {
                Some(PushFault::LostAnswer) => Ending::AnswerLost,
                _ if answer.acked() => Ending::Acked,
                _ => Ending::Nacked,
            };
            (ending, Some(answer))
        }
    }
}
