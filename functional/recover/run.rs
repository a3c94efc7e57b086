//! One fault in real processes, brought about from outside of them, the same way for every subject.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use pushonce::testing::Push;
use tokio::task::JoinHandle;

use crate::PATIENCE;
use crate::client::{self, BoxError};
use crate::faults::Fault;
use crate::place::{Place, Standing};
use crate::proxy::Proxy;
use crate::subject::{Service, Subject};
use crate::supplier::Supplier;
use crate::verdict::Seen;

const MESSAGE: &str = "m-1";
/// How long Pub/Sub is seen to deliver again: some leases.
const WATCHED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);
/// What has not happened by then is taken to happen never.
const QUIET: Duration = Duration::from_secs(2);

/// A request on its way. Dropped it goes on; aborted it is hung up on.
type InFlight = JoinHandle<Result<Response<Bytes>, BoxError>>;

/// Lets the fault happen to the subject, delivers again until that is acked, and tells what was seen.
pub(crate) async fn run(fault: Fault, subject: Subject) -> Seen {
    let run = Run { fault, subject, place: Place::new().await, supplier: Supplier::start().await };
    let (proxy, url) = run.place.proxied().await;
    let service = run.start(&url).await;
    let mut seen = match fault {
        Fault::CrashBefore | Fault::CrashAfter => run.crash(service).await,
        Fault::ZombieBefore | Fault::ZombieAfter => run.zombie(service).await,
        Fault::ClaimLost | Fault::DoneLost => run.lost_answer(&service, &proxy).await,
        Fault::HangUpBefore | Fault::HangUpAfter => run.hang_up(&service).await,
        Fault::Twin | Fault::TwinThenFailure => run.twin(&service).await,
        Fault::Failure => run.failure(&service).await,
        Fault::Outlasts => run.outlasts(&service).await,
    };
    (seen.effects, seen.ids) = run.effects().await;
    run.place.clear().await;
    seen
}

struct Run {
    fault: Fault,
    subject: Subject,
    place: Place,
    supplier: Supplier,
}

impl Run {
    async fn start(&self, url: &str) -> Service {
        self.subject.start(url, &self.supplier.url(""), Some(self.fault.lease())).await
    }

    async fn crash(&self, service: Service) -> Seen {
        let next = self.start(&self.place.url()).await;
        let first = self.begin(&service, matches!(self.fault, Fault::CrashAfter), 200).await;
        service.kill().await;
        assert!(!acks(first).await, "it was killed, and answered all the same");
        self.redeliver(&next).await
    }

    async fn zombie(&self, service: Service) -> Seen {
        let next = self.start(&self.place.url()).await;
        let first = self.begin(&service, matches!(self.fault, Fault::ZombieAfter), 200).await;
        service.stop().await;
        let mut seen = self.redeliver(&next).await;
        let before = self.place.row(self.subject, MESSAGE).await;
        self.supplier.release();
        service.cont();
        // Whatever it answers: nobody listens any more.
        let _ = first.await;
        let after = self.place.row(self.subject, MESSAGE).await;
        if self.subject == Subject::ByHand {
            assert_ne!(before, after, "who wakes writes, and that is seen");
        }
        seen.overwritten = seen.acked == Some(Standing::Done) && before != after;
        seen
    }

    async fn lost_answer(&self, service: &Service, proxy: &Proxy) -> Seen {
        let first = if self.fault == Fault::ClaimLost {
            proxy.cut_after(self.claim());
            deliver(service)
        } else {
            let first = self.begin(service, true, 200).await;
            proxy.cut_after(self.done());
            self.supplier.release();
            first
        };
        let first = acks(first).await;
        assert!(!proxy.is_waiting(), "nothing was cut off");
        if first { self.acked(0).await } else { self.redeliver(service).await }
    }

    async fn hang_up(&self, service: &Service) -> Seen {
        let first = self.begin(service, matches!(self.fault, Fault::HangUpAfter), 200).await;
        first.abort();
        assert!(first.await.is_err_and(|error| error.is_cancelled()), "it was answered before the hang-up");
        let seen = if push(service).await { Some(self.acked(0).await) } else { None };
        self.supplier.release();
        match seen {
            Some(seen) => {
                tokio::time::sleep(QUIET).await;
                seen
            }
            None => self.redeliver(service).await,
        }
    }

    async fn twin(&self, service: &Service) -> Seen {
        let answer = if self.fault == Fault::Twin { 200 } else { 500 };
        let first = self.begin(service, true, answer).await;
        let seen = if push(service).await { Some(self.acked(0).await) } else { None };
        self.supplier.release();
        let first = acks(first).await;
        match seen {
            // An ack of either is an ack of the message.
            Some(seen) => seen,
            None if first => self.acked(0).await,
            None => self.redeliver(service).await,
        }
    }

    async fn failure(&self, service: &Service) -> Seen {
        self.supplier.answer(200, 1);
        self.supplier.answer(500, 1);
        assert!(!push(service).await, "a failure was acked");
        self.redeliver(service).await
    }

    async fn outlasts(&self, service: &Service) -> Seen {
        let next = self.start(&self.place.url()).await;
        let first = self.begin(service, false, 200).await;
        let meanwhile = self.redeliver_for(2 * self.fault.lease(), &next).await;
        self.supplier.release();
        let first = acks(first).await;
        match meanwhile.acked {
            Some(_) => meanwhile,
            None if first => self.acked(0).await,
            None => self.redeliver(&next).await,
        }
    }

    /// Delivers the message until its work has begun and stands: before its effect, or after it.
    async fn begin(&self, service: &Service, after: bool, answer: u16) -> InFlight {
        self.supplier.answer(200, usize::from(after));
        self.supplier.hold_then(answer);
        let asked = if after { 2 } else { 1 };
        loop {
            let mut first = deliver(service);
            tokio::select! {
                _ = self.supplier.await_effects(PATIENCE, |asks| asks.len() == asked) => return first,
                // On a busy machine the store may take longer than a claim may.
                early = &mut first => println!("{}, delivered again: {early:?}", self.subject.name()),
            }
        }
    }

    /// Delivers again, as Pub/Sub does, until that is acked.
    async fn redeliver(&self, to: &Service) -> Seen {
        self.redeliver_for(WATCHED, to).await
    }

    async fn redeliver_for(&self, watched: Duration, to: &Service) -> Seen {
        let mut refused = 0;
        let acked = tokio::time::timeout(watched, async {
            while !push(to).await {
                refused += 1;
                tokio::time::sleep(PAUSE).await;
            }
        });
        if acked.await.is_ok() {
            self.acked(refused).await
        } else {
            Seen { acked: None, ..self.acked(refused).await }
        }
    }

    async fn acked(&self, refused: usize) -> Seen {
        Seen {
            acked: Some(self.place.standing(self.subject, MESSAGE).await),
            refused,
            effects: 0,
            ids: Vec::new(),
            overwritten: false,
            leaves_a_claim: self.fault.leaves_a_claim(),
        }
    }

    /// How many there are, and with which idempotency keys.
    async fn effects(&self) -> (usize, Vec<Option<String>>) {
        if self.subject == Subject::OneTransaction {
            let charges = self.place.charges().await;
            return (charges, vec![None; charges]);
        }
        let charges = self.supplier.effects().into_iter().filter(|effect| effect.path == "/charge");
        // The supplier failed the first one: it has charged nobody.
        let failed = usize::from(matches!(self.fault, Fault::Failure | Fault::TwinThenFailure));
        let ids: Vec<_> =
            charges.skip(failed).map(|charge| charge.header("idempotency-key").map(str::to_owned)).collect();
        (ids.len(), ids)
    }

    /// What the write of the claim has on the wire, and nothing before it: the peer's is a transaction.
    fn claim(&self) -> &'static str {
        if self.subject == Subject::Peer { "COMMIT" } else { MESSAGE }
    }

    /// The same for the write that says done.
    fn done(&self) -> &'static str {
        if matches!(self.subject, Subject::Peer | Subject::OneTransaction) { "COMMIT" } else { MESSAGE }
    }
}

fn deliver(to: &Service) -> InFlight {
    let message: Request<Bytes> = Push::json("order").id(MESSAGE).request();
    tokio::spawn(client::send(client::local(to.port), message))
}

async fn push(to: &Service) -> bool {
    acks(deliver(to)).await
}

async fn acks(answer: InFlight) -> bool {
    let answer = answer.await.expect("nobody hung up");
    answer.is_ok_and(|answer| matches!(answer.status().as_u16(), 200 | 204))
}
