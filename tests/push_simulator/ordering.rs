//! Ordering keys: what the subscription keeps in order, and what becomes of that behind the layer.

use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use pushonce::testing::{Ending, Push, PushFault, PushSimulator, SimulationReport};
use pushonce::{Delivery, History, Lease, Outcome};

use crate::world::{Diary, World, app, bare, endings, order, outcomes, secs, sent};

fn keyed(id: &str, key: &str) -> Push {
    order(id, key).ordering_key(key)
}

fn ids(report: &SimulationReport) -> Vec<&str> {
    report.deliveries.iter().map(|attempt| attempt.message_id.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_nack_holds_back_the_later_messages_of_its_key_and_no_others() {
    let mut simulator = bare(&[500, 200]).ordered().retry_policy(secs(10), secs(600));
    simulator.publish(keyed("a-1", "a")).publish(keyed("a-2", "a")).publish(keyed("b-1", "b"));
    let report = simulator.publish(order("free", "po-1")).run().await;
    assert_eq!(ids(&report), ["a-1", "b-1", "free", "a-1", "a-2"], "{report}");
    assert_eq!(report.acked, ["b-1", "free", "a-1", "a-2"]);
    assert_eq!(sent(&report, "a-2"), [secs(10)]);
    assert_eq!(report.deliveries[0].ordering_key.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn where_order_is_not_kept_a_key_changes_nothing() {
    let mut simulator = bare(&[500, 200]).retry_policy(secs(10), secs(600));
    let report = simulator.publish(keyed("a-1", "a")).publish(keyed("a-2", "a")).run().await;
    assert_eq!(report.acked, ["a-2", "a-1"], "{report}");
    assert_eq!(report.deliveries[0].ordering_key.as_deref(), Some("a"), "it is sent all the same");
}

#[tokio::test(start_paused = true)]
async fn one_message_of_a_key_is_outstanding_at_a_time() {
    let (world, diary) = (World::new(), Diary::default());
    let mut simulator =
        PushSimulator::new(app(diary.noting(secs(2)), world.layer())).ordered().reordering(secs(60)).seed(5);
    for number in 0..5 {
        simulator.publish(keyed(&format!("a-{number}"), "a"));
    }
    let report = simulator.run().await;
    assert_eq!(report.acked, ["a-0", "a-1", "a-2", "a-3", "a-4"], "{report}");
    for pair in report.deliveries.windows(2) {
        assert!(pair[1].sent >= pair[0].ended.unwrap(), "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_brings_the_later_ones_of_its_key_with_it() {
    let lost = |id: &str, attempt| (id == "a-1" && attempt == 1).then_some(PushFault::LostAck);
    let (world, diary) = (World::new(), Diary::default());
    let mut simulator = PushSimulator::new(app(diary.noting(secs(4)), world.layer())).ordered().faults(lost);
    for id in ["a-1", "a-2", "a-3"] {
        simulator.publish(keyed(id, "a"));
    }
    simulator.publish(keyed("b-1", "b"));
    let report = simulator.run().await;
    // At 10 s the ack of the first turns out to be lost: the second has been acked, the third is in work.
    assert_eq!(ids(&report), ["a-1", "b-1", "a-2", "a-3", "a-1", "a-2", "a-3"], "{report}");
    assert_eq!(sent(&report, "a-1"), [0, 12].map(secs), "{report}");
    for id in ["a-1", "a-2", "a-3"] {
        assert_eq!(outcomes(&report, id), [Some(Outcome::Ran), Some(Outcome::Duplicate)], "{report}");
    }
    assert_eq!(report.acked, ["b-1", "a-1", "a-2", "a-3"]);
    assert_eq!(diary.read(), ["a-1", "b-1", "a-2", "a-3"], "each ran once, in order");
}

#[tokio::test(start_paused = true)]
async fn a_twin_keeps_its_key_waiting_until_both_are_answered() {
    let twin = |id: &str, attempt| (id == "a-1" && attempt == 1).then_some(PushFault::Twin);
    let (world, diary) = (World::new(), Diary::default());
    let mut simulator = PushSimulator::new(app(diary.noting(secs(4)), world.layer())).ordered().faults(twin);
    let report = simulator.publish(keyed("a-1", "a")).publish(keyed("a-2", "a")).run().await;
    assert_eq!(endings(&report, "a-1"), [Ending::Acked, Ending::Nacked], "{report}");
    assert_eq!(
        (sent(&report, "a-2"), diary.read()),
        (vec![secs(4)], vec!["a-1".to_owned(), "a-2".to_owned()])
    );
}

/// Each message fails twice, and its handler now and then goes on beyond the ack deadline.
async fn effects(ordered: bool, seed: u64) -> (Vec<String>, SimulationReport) {
    let (world, diary) = (World::new(), Diary::default());
    let noted = diary.clone();
    let handler = post(async move |lease: Lease, delivery: Delivery| {
        let runs = match lease.history() {
            History::Failed { runs } => runs,
            _ => 0,
        };
        if runs < 2 {
            return StatusCode::BAD_GATEWAY;
        }
        let id = delivery.message_id().unwrap();
        let slow = id.ends_with('3');
        tokio::time::sleep(if slow { secs(15) } else { Duration::ZERO }).await;
        noted.note(id);
        StatusCode::OK
    });
    let mut simulator = PushSimulator::new(app(handler, world.layer()))
        .retry_policy(secs(1), secs(60))
        .backoff_factor(0.5..=1.5)
        .fault_rate(PushFault::LostAnswer, 0.1)
        .fault_rate(PushFault::LostAck, 0.1)
        .fault_rate(PushFault::Twin, 0.1)
        .seed(seed);
    if ordered {
        simulator = simulator.ordered();
    }
    for number in 0..5 {
        for key in ["a", "b", "c"] {
            simulator.publish(keyed(&format!("{key}-{number}"), key));
        }
    }
    let report = simulator.run().await;
    assert!(report.all_acked(), "{report}");
    (diary.read(), report)
}

fn in_order(effects: &[String]) -> bool {
    ["a", "b", "c"].iter().all(|key| {
        let numbers: Vec<_> = effects.iter().filter(|id| id.starts_with(key)).collect();
        assert_eq!(numbers.len(), 5, "each once: {effects:?}");
        numbers.is_sorted()
    })
}

#[tokio::test(start_paused = true)]
async fn effects_keep_their_order_through_nacks_overlaps_and_duplicates() {
    for seed in 0..10 {
        let (effects, report) = effects(true, seed).await;
        assert!(in_order(&effects), "seed {seed}: {effects:?}\n{report}");
    }
    // The layer keeps no order by itself: it is the subscription that does.
    let (effects, report) = effects(false, 0).await;
    assert!(!in_order(&effects), "{effects:?}\n{report}");
}

#[tokio::test(start_paused = true)]
async fn a_poison_message_lets_its_key_go_on_without_it() {
    let (world, diary) = (World::new(), Diary::default());
    let noted = diary.clone();
    let handler = post(async move |delivery: Delivery| {
        let id = delivery.message_id().unwrap();
        if id == "a-2" {
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
        noted.note(
            delivery.attribute("CloudPubSubDeadLetterSourceSubscription").map_or(id, |_| "a-2 at last"),
        );
        StatusCode::OK
    });
    let service = app(handler, world.layer());
    let mut simulator =
        PushSimulator::new(service.clone()).ordered().retry_policy(secs(10), secs(600)).dead_letter_after(5);
    for id in ["a-1", "a-2", "a-3"] {
        simulator.publish(keyed(id, "a"));
    }
    let report = simulator.run().await;
    assert_eq!(
        (report.acked.as_slice(), report.dead_letters.len()),
        (["a-1", "a-3"].map(String::from).as_slice(), 1)
    );
    assert_eq!(sent(&report, "a-3"), [secs(150)], "the moment it was given up: {report}");
    // Redriven, it comes last: a dead letter ends the order of its key.
    let mut redrive = PushSimulator::new(service).ordered();
    redrive.publish(report.dead_letters[0].push.clone()).run().await;
    assert_eq!(diary.read(), ["a-1", "a-3", "a-2 at last"]);
}
