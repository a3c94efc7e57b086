//! The simulator itself: delays, attempts, deadlines, limits, retention, and that a seed decides all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use pushonce::sizing::Sizing;
use pushonce::testing::{Ending, Push, PushFault, PushSimulator};

use crate::world::{answering, bare, endings, secs, sent};

fn m(id: &str) -> Push {
    Push::empty().id(id)
}

#[tokio::test(start_paused = true)]
async fn the_delays_double_from_the_minimum_to_the_maximum() {
    let mut simulator = bare(&[500]).retry_policy(secs(10), secs(600)).dead_letter_after(10);
    let report = simulator.publish(m("m-1")).run().await;
    assert_eq!(sent(&report, "m-1"), [0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430].map(secs), "{report}");
    let numbers: Vec<_> = report.of("m-1").map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    assert_eq!((report.acked.len(), report.dead_letters.len(), report.elapsed), (0, 1, secs(2430)));
}

#[tokio::test(start_paused = true)]
async fn a_sizing_sets_all_that_is_the_subscriptions() {
    let sizing = Sizing::default().max_delivery_attempts(7).min_backoff(secs(20)).ack_deadline(secs(30));
    let report = bare(&[500]).sizing(&sizing).publish(m("m-1")).run().await;
    assert_eq!(sent(&report, "m-1"), [0, 20, 60, 140, 300, 620, 1220].map(secs), "{report}");
    assert_eq!(report.dead_letters[0].attempts, 7);

    let hangs = || Router::new().route("/", post(std::future::pending::<()>));
    let mut simulator = PushSimulator::new(hangs()).sizing(&sizing);
    let report = simulator.publish(m("m-1")).run_for(secs(31)).await;
    assert_eq!(endings(&report, "m-1"), [Ending::Deadline], "{report}");
    let mut simulator = bare(&[500]).sizing(&sizing.retention(secs(600)));
    let report = simulator.publish(m("m-1")).run().await;
    assert_eq!((report.expired.len(), report.elapsed), (1, secs(600)), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_factor_shortens_each_delay_and_a_range_of_them_scatters_it() {
    let policy = || bare(&[500]).retry_policy(secs(10), secs(600)).dead_letter_after(8);
    let report = policy().backoff_factor(0.5..=0.5).publish(m("m-1")).run().await;
    assert_eq!(sent(&report, "m-1"), [0, 5, 15, 35, 75, 155, 315, 615].map(secs), "{report}");

    let report = policy().backoff_factor(0.5..=1.5).seed(3).publish(m("m-1")).run().await;
    let sent = sent(&report, "m-1");
    let delays: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (delay, exact) in delays.iter().zip([10, 20, 40, 80, 160, 320, 600].map(secs)) {
        assert!(*delay >= exact / 2 && *delay <= exact.mul_f64(1.5) + Duration::from_millis(1), "{report}");
        assert_ne!(*delay, exact, "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_retry_policy_a_nack_is_redelivered_at_once_and_no_attempt_is_sent() {
    let report = bare(&[500, 500, 204]).publish(m("m-1")).run().await;
    assert_eq!(sent(&report, "m-1"), [0, 1, 2].map(Duration::from_millis), "{report}");
    assert_eq!(report.acked, ["m-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_push_backoff_holds_up_the_whole_subscription() {
    let mut simulator = bare(&[500]).push_backoff();
    let report = simulator.publish(m("m-1")).run_for(secs(900)).await;
    // 100 ms, doubled to at most 60 s: 24 attempts in 15 minutes, and the 25th thereafter.
    assert_eq!(report.of("m-1").filter(|attempt| attempt.sent < secs(900)).count(), 24, "{report}");

    // An ack takes one step back: three, two, three, four.
    let mut simulator = bare(&[500, 500, 500, 200, 500, 500, 200]).push_backoff();
    simulator.publish(m("m-1")).run().await;
    let report = simulator.publish(m("m-2")).run().await;
    assert_eq!(sent(&report, "m-1"), [0, 100, 300, 700].map(Duration::from_millis), "{report}");
    assert_eq!(sent(&report, "m-2"), [700, 1100, 1900].map(Duration::from_millis), "{report}");

    // A healthy message waits for the poisoned one, though no policy of its own tells it to.
    let app = Router::new().route(
        "/",
        post(
            async |bytes: bytes::Bytes| {
                if bytes == "poison" { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
            },
        ),
    );
    let mut simulator = PushSimulator::new(app).push_backoff().retry_policy(secs(600), secs(600));
    simulator.publish(Push::bytes("poison").unwrapped().id("poison")).run_for(Duration::from_millis(1)).await;
    let report = simulator.publish(Push::bytes("well").unwrapped().id("well")).run_for(secs(1)).await;
    assert_eq!(sent(&report, "well"), [Duration::from_millis(100)], "{report}");
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_push_is_hung_up_on_at_the_deadline_and_an_answer_in_time_counts() {
    let app = |seconds| {
        let route = post(async move || tokio::time::sleep(secs(seconds)).await);
        PushSimulator::new(Router::new().route("/", route))
            .retry_policy(secs(10), secs(600))
            .dead_letter_after(2)
    };
    let report = app(10).publish(m("m-1")).run().await;
    assert_eq!(endings(&report, "m-1"), [Ending::Acked], "at the deadline is in time: {report}");

    let report = app(11).publish(m("m-1")).run().await;
    assert_eq!(endings(&report, "m-1"), [Ending::Deadline, Ending::Deadline], "{report}");
    assert_eq!(sent(&report, "m-1"), [0, 20].map(secs));
    assert_eq!(report.dead_letters[0].at, secs(30), "a missed deadline counts as a nack");
}

#[tokio::test(start_paused = true)]
async fn only_the_documented_statuses_ack() {
    for status in [200, 201, 202, 204] {
        let report = bare(&[status]).dead_letter_after(1).publish(m("m-1")).run().await;
        assert!(report.all_acked(), "{status}: {report}");
    }
    for status in [203, 205, 206, 301, 304, 400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 504] {
        let report = bare(&[status]).dead_letter_after(1).publish(m("m-1")).run().await;
        assert_eq!(report.dead_letters.len(), 1, "{status}: {report}");
        assert!(!report.all_acked());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_gone_and_is_no_dead_letter() {
    let day = secs(24 * 60 * 60);
    let mut simulator = bare(&[500]).retry_policy(secs(600), secs(600)).retention(day);
    let report = simulator.publish(m("m-1")).run().await;
    assert_eq!((report.expired.as_slice(), report.elapsed), (["m-1".to_owned()].as_slice(), day), "{report}");
    assert_eq!(report.deliveries.len(), 144, "one every 600 s, and none at the end of the day");
    assert!(report.dead_letters.is_empty() && report.acked.is_empty());

    // Also where more attempts are left than the retention has time for.
    let mut simulator =
        bare(&[500]).retry_policy(secs(600), secs(600)).retention(secs(1000)).dead_letter_after(5);
    let report = simulator.publish(m("m-1")).run().await;
    assert_eq!((report.expired.len(), report.dead_letters.len()), (1, 0), "{report}");
    // A message that is in work as its time ends may still be acked.
    let app = Router::new().route("/", post(async || tokio::time::sleep(secs(5)).await));
    let report = PushSimulator::new(app).retention(secs(3)).publish(m("m-1")).run().await;
    assert_eq!(report.acked, ["m-1"], "{report}");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_are_outstanding() {
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (busy, most) = (now.clone(), peak.clone());
    let app = Router::new().route(
        "/",
        post(async move || {
            most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(secs(1)).await;
            busy.fetch_sub(1, Ordering::SeqCst);
        }),
    );
    let mut simulator = PushSimulator::new(app).outstanding(7).fault_rate(PushFault::Twin, 0.5);
    for number in 0..100 {
        simulator.publish(m(&format!("m-{number}")));
    }
    let report = simulator.run().await;
    assert_eq!((peak.load(Ordering::SeqCst), report.acked.len()), (7, 100), "{report}");
    assert!(report.deliveries.len() > 100, "twins count too: {report}");
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_by_its_time_or_its_limit_and_goes_on_after() {
    let mut simulator = bare(&[500, 500, 200]).retry_policy(secs(10), secs(600));
    let report = simulator.publish(m("m-1")).run_for(secs(15)).await;
    assert_eq!(
        (report.open.as_slice(), report.deliveries.len()),
        (["m-1".to_owned()].as_slice(), 2),
        "{report}"
    );
    assert_eq!(report.elapsed, secs(15));
    let report = simulator.publish(m("m-2")).run().await;
    assert_eq!(report.acked, ["m-2", "m-1"], "{report}");
    assert_eq!(sent(&report, "m-2"), [secs(15)]);
    assert_eq!(simulator.run_for(secs(60)).await.elapsed, secs(30 + 60), "time passes with nothing to do");

    let report = bare(&[500]).delivery_limit(50).publish(m("m-1")).run().await;
    assert_eq!((report.deliveries.len(), report.open.len()), (50, 1));

    // What is unanswered at the end of a run is answered in the next one.
    let app = Router::new().route("/", post(async || tokio::time::sleep(secs(5)).await));
    let mut simulator = PushSimulator::new(app);
    let report = simulator.publish(m("m-1")).run_for(secs(2)).await;
    assert_eq!(endings(&report, "m-1"), [Ending::Open]);
    assert_eq!(endings(&simulator.run().await, "m-1"), [Ending::Acked]);
}

#[tokio::test(start_paused = true)]
async fn a_seed_decides_all_that_is_drawn() {
    async fn told(seed: u64) -> String {
        let mut simulator =
            PushSimulator::new(Router::new().route("/", answering(&[500, 200, 503, 204, 204])))
                .retry_policy(secs(1), secs(60))
                .backoff_factor(0.5..=1.5)
                .reordering(secs(30))
                .dead_letter_after(5)
                .seed(seed);
        for fault in [
            PushFault::LostRequest,
            PushFault::LostAnswer,
            PushFault::HangUp(Duration::ZERO),
            PushFault::Twin,
            PushFault::LostAck,
        ] {
            simulator = simulator.fault_rate(fault, 0.2);
        }
        for number in 0..50 {
            simulator.publish(m(&format!("m-{number}")));
        }
        let report = simulator.run().await;
        let letters: Vec<_> = report.dead_letters.iter().map(|letter| letter.push.body()).collect();
        format!("{report}{letters:?}")
    }
    let (one, two) = (told(1).await, told(2).await);
    assert_eq!(one, told(1).await);
    assert_ne!(one, two);
    assert!(one.contains("dead-lettered after 5"), "{one}");
}

#[tokio::test(start_paused = true)]
async fn reordering_lets_messages_overtake_each_other() {
    let first = |reordering| async move {
        let mut simulator = bare(&[200]).reordering(reordering).seed(1);
        for number in 0..20 {
            simulator.publish(m(&format!("m-{number}")));
        }
        let report = simulator.run().await;
        assert!(report.all_acked());
        report.acked
    };
    let published: Vec<_> = (0..20).map(|number| format!("m-{number}")).collect();
    assert_eq!(first(Duration::ZERO).await, published);
    let mut overtaken = first(secs(10)).await;
    assert_ne!(overtaken, published);
    overtaken.sort_by_key(|id| published.iter().position(|published| published == id));
    assert_eq!(overtaken, published);
}

#[tokio::test]
async fn time_that_runs_does_too() {
    let report =
        bare(&[500, 200]).retry_policy(Duration::from_millis(5), secs(1)).publish(m("m-1")).run().await;
    assert_eq!(endings(&report, "m-1"), [Ending::Nacked, Ending::Acked], "{report}");
    assert!(sent(&report, "m-1")[1] >= Duration::from_millis(5));
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    let refused = |set: fn(PushSimulator<()>) -> PushSimulator<()>| {
        std::panic::catch_unwind(|| drop(set(PushSimulator::new(())))).is_err()
    };
    assert!(!refused(|simulator| simulator
        .retry_policy(secs(10), secs(10))
        .fault_rate(PushFault::Twin, 1.0)));
    assert!(refused(|simulator| simulator.retry_policy(secs(11), secs(10))));
    assert!(refused(|simulator| simulator.backoff_factor(-0.1..=1.0)));
    assert!(refused(|simulator| simulator.backoff_factor(f64::NAN..=1.0)));
    assert!(refused(|simulator| simulator.backoff_factor(1.0..=0.5)));
    assert!(refused(|simulator| simulator.backoff_factor(0.0..=f64::INFINITY)));
    assert!(refused(|simulator| simulator.backoff_factor(0.0..=1e300)));
    assert!(!refused(|simulator| simulator.backoff_factor(0.0..=1000.0)));
    assert!(refused(|simulator| simulator.dead_letter_after(0)));
    assert!(refused(|simulator| simulator.outstanding(0)));
    assert!(refused(|simulator| simulator.fault_rate(PushFault::Twin, 1.5)));
    assert!(refused(|simulator| simulator.fault_rate(PushFault::Twin, f64::NAN)));
    for name in ["orders", "projects/p/topics/t", "projects//subscriptions/s", "projects/p/subscriptions/"] {
        assert!(
            std::panic::catch_unwind(|| drop(PushSimulator::new(()).subscription(name))).is_err(),
            "{name}"
        );
    }
}
