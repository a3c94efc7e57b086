//! How things end: a poison message at the dead-letter topic, an instance at SIGTERM.

use std::time::Duration;

use pushonce::store::record::State;

use crate::client;
use crate::front::Front;
use crate::process::Instance;
use crate::pubsub::Push;
use crate::stage::{SOON, Stage, by_hand, key, order, push, push_until_acked, scenarios, told};

scenarios! {
    on both: ;
    on one:
        a_poison_message_is_dead_lettered_after_exactly_its_attempts
        work_in_flight_at_sigterm_ends_and_is_answered
        work_longer_than_the_drain_is_left_to_lapse
}

/// Cloud Run kills this long after SIGTERM.
const KILLED_AFTER: Duration = Duration::from_secs(10);

async fn a_poison_message_is_dead_lettered_after_exactly_its_attempts(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.supplier.answer(500, 6);
    stage.pubsub.topic("orders").await;
    stage.pubsub.topic("dead").await;
    stage.pubsub.pull_from("dead-pull", "dead").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new().dead_letter("dead", 5)).await;
    let id = stage.pubsub.publish("orders", order("po-1")).await;

    let dead = stage.pubsub.pull("dead-pull", SOON).await;
    assert_eq!(dead["attributes"]["CloudPubSubDeadLetterSourceDeliveryCount"], "5");
    assert_eq!(dead["attributes"]["po_id"], "po-1");
    let effects = stage.supplier.effects();
    let told: Vec<_> = effects.iter().map(|effect| effect.history().to_owned()).collect();
    let failed = |runs| format!("Failed {{ runs: {runs} }}");
    assert_eq!(told, ["Fresh".to_owned(), failed(1), failed(2), failed(3), failed(4)]);
    assert!(effects.iter().all(|effect| effect.id() == effects[0].id()));
    assert!(effects.is_sorted_by(|one, next| one.fence() < next.fence()));
    let answers = front.await_answers(SOON, |answers| answers.len() == 5).await;
    assert!(answers.iter().all(|answer| answer.outcome == "failed"), "{front}");
    let record = stage.record(&key("messages", &id)).await.record;
    assert_eq!((record.state, record.runs), (State::Released, 5));
}

async fn begin(stage: &Stage, on: &Instance) -> client::InFlight {
    stage.supplier.hold();
    let pushed = client::send_in_background(client::local(on.port), by_hand("/", "m-1"));
    stage.supplier.await_effects(SOON, |effects| effects.len() == 1).await;
    pushed
}

// F56
async fn work_in_flight_at_sigterm_ends_and_is_answered(stage: &Stage) {
    let (mut a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let pushed = begin(stage, &a).await;
    a.process.term();
    a.process.await_log(SOON, "stopping").await;
    let refused = client::send(client::local(a.port), by_hand("/", "m-2")).await;
    assert!(refused.is_err(), "nothing new is accepted: {refused:?}");

    stage.supplier.release();
    assert_eq!(told(&pushed.answer().await.expect("an answer")), (200, "ran".into()));
    assert!(a.process.ended(KILLED_AFTER).await.success());
    a.process.await_log(SOON, "\"cancelled\":false,\"left\":0").await;
    assert_eq!(push(&b, by_hand("/", "m-1")).await, (204, "duplicate".into()));
    assert_eq!(stage.supplier.effects().len(), 1);
}

// F56
async fn work_longer_than_the_drain_is_left_to_lapse(stage: &Stage) {
    let (mut a, b) = tokio::join!(stage.instance("a", 12), stage.instance("b", 12));
    let pushed = begin(stage, &a).await;
    let held = stage.record(&key("messages", "m-1")).await;
    a.process.term();
    // Cancelled, and answered: Pub/Sub need not wait for its deadline.
    assert_eq!(told(&pushed.answer().await.expect("an answer")), (503, "unavailable".into()));
    assert!(a.process.ended(KILLED_AFTER).await.success());
    a.process.await_log(SOON, "\"cancelled\":true,\"left\":0").await;

    // What it began may go on elsewhere, so its key is not given back before the lease is over.
    let left = stage.record(&key("messages", "m-1")).await;
    assert_eq!((left.record, left.version), (held.record, held.version));
    let answers = push_until_acked(&b, SOON, || by_hand("/", "m-1")).await;
    assert_eq!(answers.last(), Some(&(200, "ran".into())));
    assert_eq!(answers[0], (503, "in-progress".into()));
    assert_eq!(stage.supplier.effects()[1].history(), "Unknown { runs: 1 }");
}
