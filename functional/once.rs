//! A message runs once: redelivered, nacked, at once on two instances, over two subscriptions.

use http::StatusCode;
use pushonce::store::record::{Ended, Progress, State};

use crate::client;
use crate::front::{Answer, Front};
use crate::pubsub::Push;
use crate::stage::{SOON, Stage, by_hand, key, order, push, scenarios, told};

scenarios! {
    on both: a_message_runs_once a_message_that_comes_twice_at_once_runs_once;
    on one:
        a_message_that_was_nacked_runs_once_more_and_is_then_done
        two_subscriptions_of_one_consumer_run_a_message_once
        two_consumers_of_one_topic_each_run_a_message
        an_order_published_twice_runs_once_under_its_business_key
}

async fn a_message_runs_once(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a]).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new()).await;
    let id = stage.pubsub.publish("orders", order("po-1")).await;

    let answers = front.await_answers(SOON, |answers| !answers.is_empty()).await;
    assert_eq!(answers, [Answer { path: "/".into(), status: 200, outcome: "ran".into() }]);
    let effects = stage.supplier.effects();
    assert_eq!((effects.len(), effects[0].history()), (1, "Fresh"));
    assert_eq!(effects[0].body, r#"{"po_id":"po-1"}"#);
    let stored = stage.record(&key("messages", &id)).await;
    assert_eq!((stored.record.state, stored.record.fence), (State::Done, effects[0].fence()));
    let receipt = stored.record.receipt.clone().expect("a receipt");
    assert_eq!((receipt.progress, receipt.message.as_deref()), (Progress::Finished, Some(id.as_str())));
    let subscription = format!("projects/pushonce/subscriptions/{}", stage.pubsub.name("charge"));
    assert_eq!(receipt.delivery.as_deref(), Some(&*subscription));

    // The same message again, on either instance.
    for instance in [&a, &b] {
        assert_eq!(push(instance, by_hand("/", &id)).await, (204, "duplicate".into()));
    }
    assert_eq!(stage.supplier.effects().len(), 1);
    let after = stage.record(&key("messages", &id)).await;
    assert_eq!((after.record, after.version), (stored.record, stored.version), "a duplicate writes nothing");
}

async fn a_message_that_comes_twice_at_once_runs_once(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    stage.supplier.hold();
    let first = client::send_in_background(client::local(a.port), by_hand("/", "m-1"));
    stage.supplier.await_effects(SOON, |effects| effects.len() == 1).await;

    let second = client::send(client::local(b.port), by_hand("/", "m-1")).await.expect("an answer");
    assert_eq!(told(&second), (503, "in-progress".into()));
    let wait: u64 = second.headers()["retry-after"].to_str().expect("text").parse().expect("seconds");
    assert!((1..=31).contains(&wait), "{wait}");

    stage.supplier.release();
    assert_eq!(told(&first.answer().await.expect("an answer")), (200, "ran".into()));
    assert_eq!(push(&b, by_hand("/", "m-1")).await, (204, "duplicate".into()));
    assert_eq!(stage.supplier.effects().len(), 1);
}

async fn a_message_that_was_nacked_runs_once_more_and_is_then_done(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.supplier.answer(500, 1);
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new()).await;
    let id = stage.pubsub.publish("orders", order("po-1")).await;

    let answers = front.await_answers(SOON, |answers| answers.iter().any(Answer::acks)).await;
    let told: Vec<_> = answers.iter().map(|answer| (answer.status, answer.outcome.as_str())).collect();
    assert_eq!(told, [(500, "failed"), (200, "ran")]);
    let effects = stage.supplier.effects();
    assert_eq!(effects.len(), 2);
    assert_eq!((effects[0].history(), effects[1].history()), ("Fresh", "Failed { runs: 1 }"));
    assert_eq!(effects[0].id(), effects[1].id(), "a supplier that knows the key can drop the repeat");
    assert!(effects[1].fence() > effects[0].fence());
    assert_eq!(stage.record(&key("messages", &id)).await.record.state, State::Done);
    assert_eq!(push(&a, by_hand("/", &id)).await, (204, "duplicate".into()));
}

// F102
async fn two_subscriptions_of_one_consumer_run_a_message_once(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("first", "orders", &front.url("/?first"), Push::new()).await;
    stage.subscribe("second", "orders", &front.url("/?second"), Push::new()).await;
    stage.pubsub.publish("orders", order("po-1")).await;

    let acked = |answers: &[Answer], path| answers.iter().any(|answer| answer.path == path && answer.acks());
    let both = |answers: &[Answer]| acked(answers, "/?first") && acked(answers, "/?second");
    let answers = front.await_answers(SOON, both).await;
    assert_eq!(answers.iter().filter(|answer| answer.outcome == "ran").count(), 1, "{front}");
    assert_eq!(stage.supplier.effects().len(), 1);
}

// F102
async fn two_consumers_of_one_topic_each_run_a_message(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("messages", "orders", &front.url("/"), Push::new()).await;
    stage.subscribe("status", "orders", &front.url("/status"), Push::new()).await;
    let id = stage.pubsub.publish("orders", order("po-1")).await;

    let answers = front.await_answers(SOON, |answers| answers.len() == 2).await;
    assert!(answers.iter().all(|answer| answer.outcome == "ran"), "{front}");
    let effects = stage.supplier.effects();
    assert_eq!(effects.len(), 2);
    assert_ne!(effects[0].id(), effects[1].id());
    for consumer in ["messages", "status"] {
        assert_eq!(stage.record(&key(consumer, &id)).await.record.state, State::Done);
    }
}

// F17
async fn an_order_published_twice_runs_once_under_its_business_key(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("by-order", "orders", &front.url("/orders"), Push::new()).await;
    let first = stage.pubsub.publish("orders", order("po-1")).await;
    front.await_answers(SOON, |answers| answers.len() == 1).await;
    let second = stage.pubsub.publish("orders", order("po-1")).await;
    assert_ne!(first, second);

    let answers = front.await_answers(SOON, |answers| answers.len() == 2).await;
    assert_eq!(answers[1], Answer { path: "/orders".into(), status: 204, outcome: "duplicate".into() });
    assert_eq!(stage.supplier.effects().len(), 1);
    let record = stage.record(&key("orders", "po-1")).await.record;
    assert_eq!((record.state, record.ended), (State::Done, Ended::Fresh));

    // By its default key a republish is another message.
    for id in [&first, &second] {
        let (status, outcome) = push(&a, by_hand("/", id)).await;
        assert_eq!((StatusCode::from_u16(status).expect("a status"), &*outcome), (StatusCode::OK, "ran"));
    }
}
