//! What goes wrong between Pub/Sub and a service, planned or drawn.

use std::fmt;
use std::time::Duration;

use crate::random::share;

/// What goes wrong with one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushFault {
    /// The request does not reach the service: a nack.
    LostRequest,
    /// The service answers, and Pub/Sub does not hear it: a nack, whatever was answered.
    LostAnswer,
    /// The connection breaks after this long, if it was not answered by then: a nack, and the service sees
    /// that its caller has gone.
    HangUp(Duration),
    /// It is sent twice at once, as far as the limit of outstanding pushes allows. One ack is enough.
    Twin,
    /// An ack is not kept: the message is sent again when its ack deadline is over.
    LostAck,
}

type Plan = Box<dyn FnMut(&str, u32) -> Option<PushFault> + Send>;

#[derive(Default)]
pub(super) struct Faults {
    pub(super) plan: Option<Plan>,
    pub(super) rates: Vec<(PushFault, f64)>,
}

impl Faults {
    /// What goes wrong with this delivery.
    pub(super) fn draw(&mut self, message_id: &str, attempt: u32, rng: &mut u64) -> Option<PushFault> {
        let planned = self.plan.as_mut().and_then(|plan| plan(message_id, attempt));
        planned.or_else(|| {
            let hit = self.rates.iter().find(|(_, rate)| share(rng) < *rate);
            hit.map(|(fault, _)| *fault)
        })
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("rates", &self.rates).finish_non_exhaustive()
    }
}
