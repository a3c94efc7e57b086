//! `PushSimulator`: a push subscription as the real Pub/Sub works it, in a test, on tokio's clock.

mod backoff;
mod dead_letter;
mod delivery;
mod fault;
mod queue;
mod report;
mod settings;
mod subscription;

use std::fmt;
use std::time::Duration;

use axum_core::body::Body;
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::{Request, Response};
use tower_service::Service;

pub use self::dead_letter::DeadLetter;
pub use self::fault::PushFault;
pub use self::report::{Attempt, Ending, SimulationReport};

use self::delivery::{Delivered, delivered};
use self::fault::Faults;
use self::subscription::{Fate, Subscription};
use super::{Push, TokioClock};
use crate::store::{BoxError, BoxFuture};
use crate::time::Clock as _;

/// A push subscription in front of a service, which does what the real Pub/Sub does and its emulator does
/// not: it counts attempts, backs off, hangs up at the ack deadline while the handler goes on, delivers
/// twice, loses answers, keeps messages in order, and forwards dead letters.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use axum::{Router, http::StatusCode, routing::post};
/// use pushonce::testing::{Push, PushSimulator, TokioClock};
/// use pushonce::{Ack, Delivery, IdempotentLayer, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// // In a test: #[tokio::test(start_paused = true)]
/// let clock = Arc::new(TokioClock::new());
/// let layer = IdempotentLayer::new("orders", Arc::new(Memory::with_clock(clock.clone()))).clock(clock);
/// let handler = |delivery: Delivery| async move {
///     // The supplier is down until the third attempt.
///     if delivery.attempt() < Some(3) { Err(StatusCode::BAD_GATEWAY) } else { Ok(Ack) }
/// };
/// let app: Router = Router::new().route("/", post(handler).layer(layer));
///
/// let seconds = Duration::from_secs;
/// let mut simulator = PushSimulator::new(app)
///     .retry_policy(seconds(10), seconds(600))
///     .ack_deadline(seconds(600))
///     .dead_letter_after(12);
/// simulator.publish(Push::json("order").id("m-1"));
/// let report = simulator.run().await;
///
/// assert_eq!(report.acked, ["m-1"], "{report}");
/// let sent: Vec<_> = report.of("m-1").map(|attempt| attempt.sent).collect();
/// assert_eq!(sent, [seconds(0), seconds(10), seconds(30)]);
/// # }
/// ```
///
/// # Time
///
/// It waits by tokio's clock. In a test with paused time (`start_paused = true`; this feature turns
/// tokio's `test-util` on) backoffs of minutes and leases pass at once, and the same
/// [`seed`](Self::seed) gives the same report. Give [`TokioClock`] to the store and to the layer, so
/// that leases pass with it. Paused time jumps whenever nothing but timers is left to wait for, also
/// while an answer is on its way over a socket: for a service that calls real servers there is
/// [`real_io`](Self::real_io).
///
/// Setters come first, then [`publish`](Self::publish) and [`run`](Self::run), as often as you like.
///
/// # What differs from the real one
///
/// Pub/Sub keeps to delays and attempts approximately and adapts how much it sends; this keeps to
/// them exactly, unless told otherwise by [`backoff_factor`](Self::backoff_factor),
/// [`fault_rate`](Self::fault_rate) and [`push_backoff`](Self::push_backoff). Nothing is filtered or transformed.
#[must_use = "nothing is sent before it runs"]
pub struct PushSimulator<S> {
    service: S,
    subscription: Subscription,
    faults: Faults,
    token: Option<Token>,
    clock: TokioClock,
    deliveries: Vec<Attempt>,
    in_flight: FuturesUnordered<BoxFuture<'static, Delivered>>,
}

type Token = Box<dyn FnMut(&Push) -> String + Send>;

impl<S> PushSimulator<S> {
    /// A subscription whose endpoint is this service, with Pub/Sub's defaults. Its time begins now, with the
    /// first of January 2026.
    pub fn new(service: S) -> Self {
        Self {
            service,
            subscription: Subscription::default(),
            faults: Faults::default(),
            token: None,
            clock: TokioClock::new(),
            deliveries: Vec::new(),
            in_flight: FuturesUnordered::new(),
        }
    }

    /// Publishes a message now. What Pub/Sub sets is set at each delivery: publish time, subscription,
    /// attempt; all else is taken from the push: id, data, attributes, ordering key, path, headers, shape.
    pub fn publish(&mut self, push: Push) -> &mut Self {
        let published = self.clock.wall();
        let time = DateTime::<Utc>::from(published).to_rfc3339_opts(SecondsFormat::Millis, true);
        self.subscription.publish(push.publish_time(time), self.clock.monotonic(), published);
        self
    }

    /// What has happened so far.
    pub fn report(&self) -> SimulationReport {
        let messages = &self.subscription.messages;
        let with = |fate| {
            let those = messages.iter().filter(move |message| message.fate == fate);
            those.map(|message| message.push.message_id().to_owned()).collect()
        };
        let acked = self.subscription.acked.iter();
        SimulationReport {
            acked: acked.map(|number| messages[*number].push.message_id().to_owned()).collect(),
            dead_letters: self.subscription.dead_letters.clone(),
            expired: with(Fate::Expired),
            open: with(Fate::Open),
            deliveries: self.deliveries.clone(),
            elapsed: self.clock.monotonic(),
        }
    }
}

impl<S, R> PushSimulator<S>
where
    S: Service<Request<Body>, Response = Response<R>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    R: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    /// Runs until every message is acked, dead-lettered or expired, and no delivery is unanswered; or until
    /// the [`delivery_limit`](Self::delivery_limit). Then messages may be left open.
    pub async fn run(&mut self) -> SimulationReport {
        self.run_until(Duration::MAX).await
    }

    /// Runs for this long, also with nothing to do. What is unanswered then goes on in the next run.
    pub async fn run_for(&mut self, time: Duration) -> SimulationReport {
        self.run_until(self.clock.monotonic().saturating_add(time)).await
    }

    async fn run_until(&mut self, end: Duration) -> SimulationReport {
        loop {
            let now = self.clock.monotonic();
            if now >= end {
                return self.report();
            }
            while let Some(number) = self.subscription.next(now) {
                if self.deliveries.len() >= self.subscription.settings.delivery_limit {
                    return self.report();
                }
                self.send(number, now);
            }
            if end == Duration::MAX && self.subscription.settled() {
                return self.report();
            }
            let wake = self.subscription.wake().unwrap_or(end).min(end).saturating_sub(now);
            let _jump = (self.subscription.settings.real_io && self.in_flight.is_empty()).then(Jump::begin);
            tokio::select! {
                biased;
                Some(ended) = self.in_flight.next() => self.ended(ended),
                () = tokio::time::sleep(wake) => {}
            }
        }
    }

    /// Sends a message, or twice at once.
    fn send(&mut self, number: usize, now: Duration) {
        let message = &self.subscription.messages[number];
        let attempt = message.nacks.saturating_add(1);
        let id = message.push.message_id();
        let fault = self.faults.draw(id, attempt, &mut self.subscription.rng);
        self.deliver(number, now, fault);
        if fault == Some(PushFault::Twin) && self.subscription.has_room() {
            self.deliver(number, now, None);
        }
    }

    fn deliver(&mut self, number: usize, now: Duration, fault: Option<PushFault>) {
        self.subscription.sent(number);
        let (message, settings) = (&self.subscription.messages[number], &self.subscription.settings);
        let attempt = message.nacks.saturating_add(1);
        let mut push = message
            .push
            .clone()
            .subscription(&settings.subscription)
            .counted(settings.most_attempts.map(|_| attempt));
        if let Some(token) = &mut self.token {
            let bearer = format!("Bearer {}", token(&push));
            push = push.header("authorization", &bearer);
        }
        let delivery = self.deliveries.len();
        self.deliveries.push(Attempt {
            message_id: push.message_id().to_owned(),
            ordering_key: push.order().map(str::to_owned),
            number: attempt,
            sent: now,
            ended: None,
            ending: Ending::Open,
            answer: None,
        });
        let (request, deadline) = (push.answered(&self.service), settings.ack_deadline);
        self.in_flight.push(Box::pin(async move {
            let (ending, answer) = delivered(request, deadline, fault).await;
            Delivered {
                delivery,
                message: number,
                ending,
                answer,
                forgotten: fault == Some(PushFault::LostAck),
            }
        }));
    }

    fn ended(&mut self, Delivered { delivery, message, ending, answer, forgotten }: Delivered) {
        let now = self.clock.monotonic();
        let attempt = &mut self.deliveries[delivery];
        if ending == Ending::Acked {
            let until = attempt.sent.saturating_add(self.subscription.settings.ack_deadline);
            self.subscription.acked(message, now, forgotten.then_some(until));
        } else {
            self.subscription.nacked(message, now);
        }
        (attempt.ended, attempt.ending, attempt.answer) = (Some(now), ending, answer);
    }
}

/// Paused time, until it is dropped.
struct Jump(());

impl Jump {
    fn begin() -> Self {
        tokio::time::pause();
        Self(())
    }
}

impl Drop for Jump {
    fn drop(&mut self) {
        tokio::time::resume();
    }
}

impl<S> fmt::Debug for PushSimulator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushSimulator").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}
