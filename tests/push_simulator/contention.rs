//! Messages that meet: a handler beyond its ack deadline, a zombie, a crash, and a queue for one entity.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use pushonce::sizing::Sizing;
use pushonce::store::record::State;
use pushonce::testing::{Ending, Push, PushFault, PushSimulator};
use pushonce::{Ack, Delivery, History, Lease, Outcome, attribute};

use crate::world::{Diary, World, answering, app, endings, order, outcomes, secs, sent};

// F42
#[tokio::test(start_paused = true)]
async fn a_handler_beyond_the_ack_deadline_is_not_run_again_beside_itself() {
    let (world, diary) = (World::new(), Diary::default());
    let mut simulator = PushSimulator::new(app(diary.noting(secs(25)), world.layer()))
        .retry_policy(secs(10), secs(600))
        .dead_letter_after(5);
    let report = simulator.publish(order("m-1", "po-1")).run().await;
    // Hung up on at 10 s; at 20 s it is still in work; it ends at 25 s with nobody waiting; at 40 s it is known.
    assert_eq!(sent(&report, "m-1"), [0, 20, 40].map(secs), "{report}");
    assert_eq!(endings(&report, "m-1"), [Ending::Deadline, Ending::Nacked, Ending::Acked], "{report}");
    assert_eq!(outcomes(&report, "m-1"), [None, Some(Outcome::InProgress), Some(Outcome::Duplicate)]);
    assert_eq!(diary.read(), ["m-1"], "one effect");
}

#[tokio::test(start_paused = true)]
async fn without_a_retry_policy_the_same_overlap_burns_an_attempt_each_millisecond() {
    let (world, diary) = (World::new(), Diary::default());
    let simulator = || PushSimulator::new(app(diary.noting(secs(25)), world.layer()));
    let report = simulator().dead_letter_after(12).publish(order("m-1", "po-1")).run().await;
    assert_eq!(report.dead_letters.len(), 1, "though its handler is healthy: {report}");
    assert!(report.dead_letters[0].at < secs(11), "{report}");
    assert_eq!(diary.read(), ["m-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_releases_the_key_and_the_next_attempt_runs_with_its_history() {
    let (world, diary) = (World::new(), Diary::default());
    let noted = diary.clone();
    let handler = post(async move |lease: Lease| {
        noted.note(format!("{:?}", lease.history()));
        if lease.history() == (History::Failed { runs: 2 }) {
            StatusCode::OK
        } else {
            StatusCode::BAD_GATEWAY
        }
    });
    let mut simulator = PushSimulator::new(app(handler, world.layer()))
        .retry_policy(secs(10), secs(600))
        .dead_letter_after(5);
    let report = simulator.publish(order("m-1", "po-1")).run().await;
    let (failed, ran) = (Some(Outcome::Failed), Some(Outcome::Ran));
    assert_eq!(outcomes(&report, "m-1"), [failed, failed, ran], "{report}");
    assert_eq!(diary.read(), ["Fresh", "Failed { runs: 1 }", "Failed { runs: 2 }"]);
}

#[tokio::test(start_paused = true)]
async fn a_zombie_wakes_behind_its_successor_and_changes_nothing() {
    let (world, diary) = (World::new(), Diary::default());
    let noted = diary.clone();
    let handler = post(async move |lease: Lease| {
        let history = lease.history();
        noted.note(format!("begins {history:?} {}", lease.effect_id("charge")));
        // The first run outlives its lease by far.
        let work = if history == History::Fresh { secs(100) } else { secs(1) };
        tokio::time::sleep(work).await;
        noted.note(format!("ends {history:?}"));
        Ack
    });
    let mut simulator = PushSimulator::new(app(handler, world.layer().lease(secs(60))))
        .retry_policy(secs(10), secs(600))
        .dead_letter_after(6);
    simulator.publish(order("m-1", "po-1"));
    let report = simulator.run().await;
    let busy = Some(Outcome::InProgress);
    assert_eq!(outcomes(&report, "m-1"), [None, busy, busy, Some(Outcome::Ran)], "{report}");
    assert_eq!(sent(&report, "m-1"), [0, 20, 40, 80].map(secs));
    let done = world.record("m-1").await.unwrap();
    assert_eq!((done.state, done.runs), (State::Done, 1), "one run before the one that is recorded");

    simulator.run_for(secs(60)).await;
    let diary = diary.read();
    assert_eq!(
        (diary[2].as_str(), diary[3].as_str()),
        ("ends Unknown { runs: 1 }", "ends Fresh"),
        "{diary:?}"
    );
    let ids: Vec<_> = diary[..2].iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(ids[0], ids[1], "the vendor can drop the repeat");
    let after = world.record("m-1").await.unwrap();
    assert_eq!((after.state, after.fence, after.token), (State::Done, done.fence, done.token));
}

/// A queue of messages for one entity, each of which takes a while.
async fn queue(messages: u32, work: Duration, attempts: u32, seed: u64) -> u32 {
    // The layer's own jitter, while a message waits for its entity.
    pushonce::seed(seed);
    let world = World::new();
    let busy = Arc::new(AtomicUsize::new(0));
    let (alone, ran) = (busy.clone(), Diary::default());
    let noted = ran.clone();
    let handler = post(async move |delivery: Delivery| {
        assert_eq!(alone.fetch_add(1, Ordering::SeqCst), 0, "two messages of one entity at once");
        tokio::time::sleep(work).await;
        alone.fetch_sub(1, Ordering::SeqCst);
        noted.note(delivery.message_id().unwrap());
    });
    let layer = world.layer().serialize(attribute("po_id"));
    let mut simulator = PushSimulator::new(app(handler, layer))
        .retry_policy(secs(10), secs(600))
        .backoff_factor(0.5..=1.5)
        .ack_deadline(secs(600))
        .dead_letter_after(attempts)
        .seed(seed);
    for number in 0..messages {
        simulator.publish(order(&format!("m-{number}"), "po-1"));
    }
    let report = simulator.run().await;
    assert!(report.all_acked(), "seed {seed}: {report}");
    let mut ran = ran.read();
    ran.sort();
    ran.dedup();
    assert_eq!((ran.len(), busy.load(Ordering::SeqCst)), (messages as usize, 0), "seed {seed}: {report}");
    report.deliveries.iter().map(|attempt| attempt.number).max().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_queue_for_one_entity_runs_one_at_a_time_and_none_of_it_is_dead_lettered() {
    for (messages, work) in [(10, 5), (50, 5), (10, 60)] {
        // All but one may be ahead; three attempts more, since a freed entity idles until the next one
        // comes for it.
        let ahead = Sizing::default().lease(secs(work)).holders_ahead(messages).real_failures(3);
        let needed = u32::try_from(ahead.verdict().needed()).unwrap();
        for seed in 0..5 {
            let most = queue(messages, secs(work), needed, seed).await;
            assert!(most > 1, "{messages} messages never met");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_key_runs_each_time_only_where_that_is_allowed() {
    let (world, diary) = (World::new(), Diary::default());
    let bare = || Push::json(&serde_json::json!({ "po": "1" })).id("m-1").unwrapped_without_metadata();
    let allowed = app(diary.noting(Duration::ZERO), world.layer().allow_unguarded());
    let mut simulator = PushSimulator::new(allowed)
        .retry_policy(secs(10), secs(600))
        .faults(move |_, attempt| (attempt < 3).then_some(PushFault::LostAnswer));
    let report = simulator.publish(bare()).run().await;
    assert_eq!(outcomes(&report, "m-1"), [Some(Outcome::Unguarded); 3], "{report}");
    assert_eq!(diary.count("none"), 3, "nothing remembers that it ran");

    let strict = app(answering(&[200]), world.layer());
    let report = PushSimulator::new(strict).dead_letter_after(5).publish(bare()).run().await;
    assert_eq!(outcomes(&report, "m-1"), [Some(Outcome::Unkeyed); 5], "{report}");
    assert_eq!(report.dead_letters.len(), 1);
}
