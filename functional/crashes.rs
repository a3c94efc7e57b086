//! Holders that crash, stand still, outlive the ack deadline, or lose their caller.

use std::collections::HashMap;
use std::time::Duration;

use pushonce::maintain::{Page, Uncertain, Why, uncertain};
use pushonce::store::record::{Ended, State};

use crate::client;
use crate::front::{Answer, Front};
use crate::pubsub::Push;
use crate::stage::{SOON, Stage, by_hand, key, order, push, push_until_acked, scenarios, told};
use crate::supplier::Effect;

scenarios! {
    on every:
        a_killed_holder_is_taken_over_when_its_lease_lapses
        a_holder_that_stood_still_past_its_lease_is_fenced_out
        a_holder_that_outlived_its_lease_but_was_not_replaced_is_recorded;
    on one:
        a_push_that_outlives_its_ack_deadline_runs_once
        work_whose_caller_hung_up_is_recorded
        a_fleet_whose_instances_are_killed_records_every_message_once
}

/// The lease where it is to lapse; a third of it is the time that a claim may take.
const LEASE: u32 = 3;

// F60
async fn a_killed_holder_is_taken_over_when_its_lease_lapses(stage: &Stage) {
    let (mut a, b) = tokio::join!(stage.instance("a", LEASE), stage.instance("b", LEASE));
    let front = Front::of([&a]).await;
    stage.supplier.hold();
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new()).await;
    let id = stage.pubsub.publish("orders", order("po-1")).await;
    stage.supplier.await_effects(SOON, |effects| effects.len() == 1).await;
    let held = stage.record(&key("messages", &id)).await;
    assert_eq!(held.record.state, State::Claimed);
    front.turn_to([&b]);
    a.process.kill_9().await;

    // Pub/Sub itself tries again until the lease is over.
    let answers = front.await_answers(SOON, |answers| answers.iter().any(Answer::acks)).await;
    let (last, before) = answers.split_last().expect("an answer");
    assert_eq!(last.outcome, "ran", "{front}");
    assert!(before.iter().all(|answer| answer.status == 502 || answer.outcome == "in-progress"), "{front}");
    let effects = stage.supplier.effects();
    assert_eq!(effects.len(), 2);
    assert_eq!((effects[0].history(), effects[1].history()), ("Fresh", "Unknown { runs: 1 }"));
    assert_eq!(effects[0].id(), effects[1].id());
    assert_eq!(effects[0].fence(), held.record.fence);
    assert!(effects[1].fence() > held.record.fence);
    // Within the lease nobody else began; it is counted from the write, which came before the effect.
    let between = effects[1].at - effects[0].at;
    assert!(between > Duration::from_secs(LEASE.into()) - Duration::from_secs(1), "{between:?}");

    let done = stage.record(&key("messages", &id)).await.record;
    assert_eq!((done.state, done.fence), (State::Done, effects[1].fence()));
    assert_ne!(done.holder, held.record.holder);
    assert_eq!(push(&b, by_hand("/", &id)).await, (204, "duplicate".into()));
}

// F58, F63 (b)
async fn a_holder_that_stood_still_past_its_lease_is_fenced_out(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", LEASE), stage.instance("b", LEASE));
    stage.supplier.hold();
    let zombie = client::send_in_background(client::local(a.port), by_hand("/", "m-1"));
    stage.supplier.await_effects(SOON, |effects| effects.len() == 1).await;
    a.process.stop().await;

    let answers = push_until_acked(&b, SOON, || by_hand("/", "m-1")).await;
    let (last, before) = answers.split_last().expect("an answer");
    assert_eq!(*last, (200, "ran".into()));
    assert!(!before.is_empty() && before.iter().all(|answer| *answer == (503, "in-progress".into())));
    let effects = stage.supplier.effects();
    assert_eq!(effects[1].history(), "Unknown { runs: 1 }");
    assert!(effects[1].fence() > effects[0].fence());
    let recorded = stage.record(&key("messages", "m-1")).await;
    assert_eq!((recorded.record.state, recorded.record.fence), (State::Done, effects[1].fence()));

    // It wakes, its work succeeds, and its completion comes too late.
    stage.supplier.release();
    a.process.cont();
    // Acked: a nack would repeat what was done.
    assert_eq!(told(&zombie.answer().await.expect("an answer")), (200, "uncertain".into()));
    a.process.await_log(SOON, "\"event\":\"uncertain\"").await;
    let entry = tokio::time::timeout(SOON, uncertain_entry(stage)).await.expect("an operator finds it");
    assert_eq!((&*entry.consumer, &*entry.key), ("messages", "m-1"));
    assert_eq!((entry.why, entry.fence), (Why::FencedOut, effects[0].fence()));
    let after = stage.record(&key("messages", "m-1")).await;
    assert_eq!((after.record, after.version), (recorded.record, recorded.version));
    assert_eq!(stage.supplier.effects().len(), 2);
}

/// The entry of the ledger, as soon as there is one. A page may have none and a next one all the same.
async fn uncertain_entry(stage: &Stage) -> Uncertain {
    let store = stage.site.operated();
    let mut page = Page::default();
    loop {
        let listed = uncertain(&*store, &page).await.expect("the store answers");
        if let Some(entry) = listed.found.into_iter().next() {
            return entry.expect("an entry that can be read");
        }
        page.after = listed.next;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

// F63 (a)
async fn a_holder_that_outlived_its_lease_but_was_not_replaced_is_recorded(stage: &Stage) {
    let a = stage.instance("a", LEASE).await;
    stage.supplier.hold();
    let slow = client::send_in_background(client::local(a.port), by_hand("/", "m-1"));
    stage.supplier.await_effects(SOON, |effects| effects.len() == 1).await;
    let lapsed = async {
        loop {
            let stored = stage.record(&key("messages", "m-1")).await;
            if stored.age > stored.record.lease {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, lapsed).await.expect("a lease lapses");
    stage.supplier.release();
    assert_eq!(told(&slow.answer().await.expect("an answer")), (200, "ran".into()));
    assert_eq!(push(&a, by_hand("/", "m-1")).await, (204, "duplicate".into()));
    assert_eq!(stage.supplier.effects().len(), 1);
}

// F42
async fn a_push_that_outlives_its_ack_deadline_runs_once(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 60), stage.instance("b", 60));
    let front = Front::of([&a, &b]).await;
    stage.supplier.hold();
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new().ack_deadline(5)).await;
    let id = stage.pubsub.publish("orders", order("po-1")).await;

    // The emulator pushes again while the first push is open.
    let nacked = |answer: &Answer| (answer.status, answer.outcome.as_str()) == (503, "in-progress");
    front.await_answers(SOON, |answers| answers.iter().any(nacked)).await;
    stage.supplier.release();
    // A 200 after the deadline is no ack, so the message comes once more.
    let is_duplicate = |answer: &Answer| answer.outcome == "duplicate";
    let answers = front.await_answers(SOON, |answers| answers.iter().any(is_duplicate)).await;
    assert!(answers.iter().filter(|answer| answer.outcome == "ran").count() <= 1, "{front}");
    assert_eq!(stage.supplier.effects().len(), 1);
    assert_eq!(stage.record(&key("messages", &id)).await.record.state, State::Done);
}

// F48
async fn work_whose_caller_hung_up_is_recorded(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    for (message, status, state) in [("m-1", 200, State::Done), ("m-2", 500, State::Released)] {
        let before = stage.supplier.effects().len();
        stage.supplier.hold_then(status);
        let pushed = client::send_in_background(client::local(a.port), by_hand("/", message));
        stage.supplier.await_effects(SOON, |effects| effects.len() == before + 1).await;
        pushed.hang_up().await;
        assert_eq!(push(&b, by_hand("/", message)).await, (503, "in-progress".into()), "it goes on");
        stage.supplier.release();
        stage.await_state(&key("messages", message), state).await;
    }
    assert_eq!(push(&b, by_hand("/", "m-1")).await, (204, "duplicate".into()));
    assert_eq!(stage.record(&key("messages", "m-2")).await.record.ended, Ended::Failed);
    assert_eq!(push(&b, by_hand("/", "m-2")).await, (200, "ran".into()));
    assert_eq!(stage.supplier.effects().len(), 3);
}

async fn a_fleet_whose_instances_are_killed_records_every_message_once(stage: &Stage) {
    const MESSAGES: usize = 20;
    let (mut a, mut b, c) =
        tokio::join!(stage.instance("a", LEASE), stage.instance("b", LEASE), stage.instance("c", LEASE));
    let front = Front::of([&a, &b, &c]).await;
    stage.supplier.take_time(Duration::from_millis(700), 3 * MESSAGES);
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new()).await;
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        ids.push(stage.pubsub.publish("orders", order("po-1")).await);
    }
    // Each time with effects asked for and not recorded, the second time reruns among them.
    stage.supplier.await_effects(SOON, |effects| effects.len() >= MESSAGES / 2).await;
    front.turn_to([&b, &c]);
    a.process.kill_9().await;
    stage.supplier.await_effects(SOON, |effects| effects.len() > MESSAGES).await;
    front.turn_to([&c]);
    b.process.kill_9().await;

    for id in &ids {
        stage.await_state(&key("messages", id), State::Done).await;
    }
    let effects = stage.supplier.effects();
    let mut runs: HashMap<&str, Vec<&Effect>> = HashMap::new();
    for effect in &effects {
        runs.entry(effect.id()).or_default().push(effect);
    }
    assert_eq!(runs.len(), MESSAGES, "a supplier that knows the keys has each order once");
    assert!(effects.len() > MESSAGES, "a kill that interrupts nothing shows nothing");
    for runs in runs.values() {
        assert!(runs.len() <= 3, "at most one run more for each kill: {}", stage.supplier);
        for (before, run) in runs.iter().enumerate() {
            let told = if before == 0 { "Fresh".to_owned() } else { format!("Unknown {{ runs: {before} }}") };
            assert_eq!(run.history(), told);
        }
        assert!(runs.is_sorted_by(|one, next| one.fence() < next.fence()));
    }
    for id in &ids {
        assert_eq!(push(&c, by_hand("/", id)).await, (204, "duplicate".into()));
    }
}
