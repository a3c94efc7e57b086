//! The time until a message whose holder was killed is processed again, and the delivery attempts that it burns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use pushonce::DEFAULT_LEASE;
use pushonce::sizing::Sizing;
use pushonce::testing::{Attempt, Push, PushSimulator};
use tower::Service;

use crate::client::{self, BoxError};
use crate::page::{self, Table};
use crate::place::{Place, Standing};
use crate::recovered::{Case, Recovered, row};
use crate::subject::Subject;
use crate::supplier::Supplier;
use crate::{PATIENCE, is_long, program, report};

const MESSAGE: &str = "m-1";
const POLL: Duration = Duration::from_millis(20);

/// How Pub/Sub's pauses are, how long one looks at most, and how often each case is run, all at once.
#[derive(Debug, Clone, Copy)]
struct Pace {
    min_backoff: Duration,
    max_backoff: Duration,
    limit: Duration,
    rounds: u32,
}

/// The service behind Pub/Sub, wherever it listens by now.
fn endpoint(
    port: Arc<AtomicU16>,
) -> impl Service<Request<Body>, Response = Response<Full<bytes::Bytes>>, Error = BoxError, Future: Send>
+ Clone
+ Send {
    tower::service_fn(move |request: Request<Body>| {
        let port = port.load(Ordering::SeqCst);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let answer = client::send(client::local(port), Request::from_parts(parts, body)).await?;
            Ok::<_, BoxError>(answer.map(Full::new))
        }
    })
}

/// Lets the first delivery begin its work, kills its holder in the middle, starts it again at once, and
/// delivers on with Pub/Sub's backoff until the message is acked.
async fn recover(case: Case, round: u32, pace: Pace) -> Recovered {
    let (place, supplier) = (Place::new().await, Supplier::start().await);
    supplier.hold();
    let (database, outside) = (place.url(), supplier.url(""));
    let start = || case.subject.start(&database, &outside, case.lease);
    let service = start().await;
    let port = Arc::new(AtomicU16::new(service.port));
    let sizing = Sizing::default()
        .lease(case.lease.unwrap_or(DEFAULT_LEASE))
        .min_backoff(pace.min_backoff)
        .max_backoff(pace.max_backoff);
    let mut simulator = PushSimulator::new(endpoint(port.clone()))
        .retry_policy(sizing.min_backoff, sizing.max_backoff)
        .ack_deadline(sizing.ack_deadline);
    let began = Instant::now();
    simulator.publish(Push::json("order").id(MESSAGE));
    let killing = async {
        supplier.await_effects(PATIENCE, |asks| asks.len() == 1).await;
        if case.subject == Subject::Renewed {
            await_renewal(&place).await;
            // Each round at another moment between two renewals, which are a third of the lease apart.
            tokio::time::sleep(sizing.lease / 3 * round / pace.rounds).await;
        }
        let killed = began.elapsed();
        service.kill().await;
        let next = start().await;
        port.store(next.port, Ordering::SeqCst);
        (killed, next)
    };
    let (ended, (killed, next)) = tokio::join!(tokio::time::timeout(pace.limit, simulator.run()), killing);
    let report = ended.unwrap_or_else(|_| simulator.report());
    let attempts = report.of(MESSAGE).filter(|attempt| attempt.sent > killed).map(|attempt: &Attempt| {
        let after = |time: Duration| time.saturating_sub(killed);
        (after(attempt.sent), attempt.ending.clone(), after(attempt.ended.unwrap_or(report.elapsed)))
    });
    let attempts = attempts.collect();
    let effects = supplier.effects().iter().filter(|ask| ask.path == "/charge").count();
    let standing = place.standing(case.subject, MESSAGE).await;
    next.kill().await;
    place.clear().await;
    Recovered { case, round, sizing, attempts, effects, standing }
}

/// A lease that has been renewed ends later than the one that was claimed.
async fn await_renewal(place: &Place) {
    let claimed = place.row(Subject::Renewed, MESSAGE).await.expect("its work has begun");
    let renewed = async {
        while place.row(Subject::Renewed, MESSAGE).await.as_ref() == Some(&claimed) {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, renewed).await.expect("a lease is renewed");
}

async fn all(cases: &[Case], pace: Pace) -> Vec<Recovered> {
    let runs = cases.iter().flat_map(|case| (0..pace.rounds).map(|round| recover(*case, round, pace)));
    let recovered = futures_util::future::join_all(runs).await;
    let head = ["", "lease", "processed again after", "attempts burned", "computed"];
    let table = Table {
        head: head.map(str::to_owned).into(),
        rows: recovered.chunks(pace.rounds as usize).map(row).collect(),
    };
    println!("{table}");
    if is_long() {
        let lines: String = recovered.iter().map(Recovered::csv).collect();
        page::keep("recover.csv", &format!("subject,lease_s,round,delivery,sent_s,ended_s,ending\n{lines}"));
        page::write("recover", &table.to_string());
    }
    recovered
}

/// The short form is the long one at a tenth: a lease of 3 s, pauses from 1 s.
#[test]
fn a_killed_holder_costs_its_renewed_lease_and_one_attempt() {
    if program::played() {
        return;
    }
    let seconds = Duration::from_secs;
    let (tenth, lease) = if is_long() { (10, 30) } else { (1, 3) };
    let pace = Pace {
        min_backoff: seconds(tenth),
        max_backoff: seconds(60 * tenth),
        limit: seconds(if is_long() { 1500 } else { 60 }),
        rounds: if is_long() { 3 } else { 1 },
    };
    let of = |subject, lease| Case { subject, lease };
    let short = Some(seconds(lease));
    let mut cases = vec![of(Subject::Renewed, short), of(Subject::ByHand, None)];
    if is_long() {
        cases.extend([of(Subject::Pushonce, None), of(Subject::Peer, None), of(Subject::Peer, short)]);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for one in runtime.block_on(all(&cases, pace)) {
        if one.case.subject == Subject::ByHand {
            // Its row is there, acked, and nobody works on it.
            assert!(one.acked().is_some(), "{one:?}");
            assert_eq!((one.effects, one.standing), (0, Standing::Begun), "{one:?}");
            continue;
        }
        assert_eq!((one.effects, one.standing), (1, Standing::Done), "{one:?}");
        // On a busy machine the first redelivery may come only when the lease is over.
        let (_, computed) = one.computed();
        assert!(one.acked().is_some() && one.burned() <= computed, "{one:?}");
        if one.case.subject == Subject::Renewed {
            assert_eq!(computed, 1, "the lease and one backoff");
        }
    }
    report::test("postgres", "a_killed_holder_costs_its_renewed_lease_and_one_attempt");
}
