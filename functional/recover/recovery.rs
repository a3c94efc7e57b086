//! The time until a message whose holder was killed is processed again, and the delivery attempts that it burns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use pushonce::DEFAULT_LEASE;
use pushonce::sizing::Sizing;
use pushonce::testing::{Attempt, Ending, Push, PushSimulator};
use tower::Service;

use crate::client::{self, BoxError};
use crate::page::{self, Table};
use crate::place::{Place, Standing};
use crate::subject::Subject;
use crate::supplier::Supplier;
use crate::{PATIENCE, is_long, program, report};

const MESSAGE: &str = "m-1";
const POLL: Duration = Duration::from_millis(20);

/// Who is killed, with which lease; `None`: its own default.
#[derive(Debug, Clone, Copy)]
struct Case {
    subject: Subject,
    lease: Option<Duration>,
}

/// How Pub/Sub's pauses are, and how long one looks at most.
#[derive(Debug, Clone, Copy)]
struct Pace {
    min_backoff: Duration,
    max_backoff: Duration,
    limit: Duration,
}

/// What became of the message.
#[derive(Debug)]
struct Recovered {
    case: Case,
    sizing: Sizing,
    /// The deliveries after the kill: when they came, counted from it, and how they ended.
    attempts: Vec<(Duration, Ending, Duration)>,
    effects: usize,
    standing: Standing,
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
async fn recover(case: Case, pace: Pace) -> Recovered {
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
        }
        let killed = began.elapsed();
        service.kill().await;
        let next = start().await;
        port.store(next.port, Ordering::SeqCst);
        (killed, next)
    };
    let (ended, (killed, next)) = tokio::join!(tokio::time::timeout(pace.limit, simulator.run()), killing);
    let report = ended.unwrap_or_else(|_| simulator.report());
    let attempts = report.of(MESSAGE).skip(1).map(|attempt: &Attempt| {
        let after = |time: Duration| time.saturating_sub(killed);
        (after(attempt.sent), attempt.ending.clone(), after(attempt.ended.unwrap_or(report.elapsed)))
    });
    let attempts = attempts.collect();
    let effects = supplier.effects().iter().filter(|ask| ask.path == "/charge").count();
    let standing = place.standing(case.subject, MESSAGE).await;
    next.kill().await;
    place.clear().await;
    Recovered { case, sizing, attempts, effects, standing }
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

impl Recovered {
    /// The deliveries after the kill that were not acked.
    fn burned(&self) -> usize {
        self.attempts.iter().filter(|(_, ending, _)| *ending != Ending::Acked).count()
    }

    /// From the kill until the message was acked.
    fn acked(&self) -> Option<Duration> {
        self.attempts.iter().find(|(_, ending, _)| *ending == Ending::Acked).map(|(_, _, ended)| *ended)
    }

    fn row(&self) -> Vec<String> {
        let is_by_hand = self.case.subject == Subject::ByHand;
        let lease = self.sizing.lease.as_secs();
        let seen = match (self.acked(), self.effects) {
            (None, _) => "not in the time that was looked".to_owned(),
            (Some(acked), 0) => format!("**never**: acked after {:.1} s", acked.as_secs_f64()),
            (Some(acked), _) => format!("{:.1} s", acked.as_secs_f64()),
        };
        let verdict = self.sizing.verdict();
        // The first delivery is the one that was killed.
        let computed = format!(
            "{} s, {}",
            verdict.taken_over().as_secs(),
            verdict.burned_exact().saturating_sub(1)
        );
        vec![
            self.case.subject.name().to_owned(),
            if is_by_hand { "none".to_owned() } else { format!("{lease} s") },
            seen,
            self.burned().to_string(),
            if is_by_hand { "–".to_owned() } else { computed },
        ]
    }
}

async fn all(cases: &[Case], pace: Pace) -> Vec<Recovered> {
    let recovered = futures_util::future::join_all(cases.iter().map(|case| recover(*case, pace))).await;
    let table = Table {
        head: ["", "lease", "processed again after", "attempts burned", "computed"].map(str::to_owned).into(),
        rows: recovered.iter().map(Recovered::row).collect(),
    };
    println!("{table}");
    if is_long() {
        let mut csv = "subject,lease_s,delivery,sent_s,ended_s,ending\n".to_owned();
        for one in &recovered {
            let (name, lease) = (one.case.subject.name(), one.sizing.lease.as_secs());
            for (number, (sent, ending, ended)) in one.attempts.iter().enumerate() {
                let (sent, ended, number) = (sent.as_secs_f64(), ended.as_secs_f64(), number + 2);
                csv += &format!("\"{name}\",{lease},{number},{sent:.3},{ended:.3},\"{ending}\"\n");
            }
        }
        page::keep("recover.csv", &csv);
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
    };
    let renewed = Case { subject: Subject::Renewed, lease: Some(seconds(lease)) };
    let mut cases = vec![renewed, Case { subject: Subject::ByHand, lease: None }];
    if is_long() {
        cases.extend([Subject::Pushonce, Subject::Peer].map(|subject| Case { subject, lease: None }));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let recovered = runtime.block_on(all(&cases, pace));

    let [renewed, by_hand, rest @ ..] = &*recovered else { unreachable!("there are two at least") };
    assert_eq!(renewed.sizing.verdict().burned_exact() - 1, 1);
    assert_eq!((renewed.effects, renewed.standing), (1, Standing::Done));
    assert!(renewed.acked().is_some() && renewed.burned() <= 1, "{renewed:?}");
    // Its row is there, and nobody works on it.
    assert_eq!((by_hand.effects, by_hand.standing, by_hand.burned()), (0, Standing::Begun, 0), "{by_hand:?}");
    for defaults in rest {
        assert_eq!((defaults.effects, defaults.standing), (1, Standing::Done), "{defaults:?}");
        let computed = usize::try_from(defaults.sizing.verdict().burned_exact() - 1).unwrap();
        assert_eq!(defaults.burned(), computed, "{defaults:?}");
    }
    report::test("postgres", "a_killed_holder_costs_its_renewed_lease_and_one_attempt");
}
