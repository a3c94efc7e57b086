//! The shapes of a push that the emulator can send, end to end.

use pushonce::store::record::State;

use crate::front::{Answer, Front};
use crate::pubsub::{Message, Push};
use crate::stage::{SOON, Stage, by_hand, key, order, push, scenarios};

scenarios! {
    on both: ;
    on one:
        an_unwrapped_push_runs_once_by_its_metadata
        a_message_without_its_business_key_is_refused
        a_hundred_attributes_pass_as_headers
        a_message_of_ten_megabytes_passes
}

async fn an_unwrapped_push_runs_once_by_its_metadata(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &front.url("/"), Push::new().unwrapped()).await;
    stage.subscribe("by-order", "orders", &front.url("/orders"), Push::new().unwrapped()).await;
    // F22: an attribute that looks like a CloudEvent's id decides nothing.
    let message = order("po-1").attribute("ce-id", "x").attribute("ce-specversion", "1.0");
    let id = stage.pubsub.publish("orders", message).await;

    let answers = front.await_answers(SOON, |answers| answers.len() == 2).await;
    assert!(answers.iter().all(|answer| answer.outcome == "ran"), "{front}");
    let effects = stage.supplier.effects();
    assert!(effects.iter().all(|effect| effect.body == r#"{"po_id":"po-1"}"#), "{}", stage.supplier);
    // The same message, wrapped: its id is the same, and so is its order.
    for path in ["/", "/orders"] {
        assert_eq!(push(&a, by_hand(path, &id)).await, (204, "duplicate".into()), "{path}");
    }
    assert_eq!(stage.supplier.effects().len(), 2);
}

async fn a_message_without_its_business_key_is_refused(stage: &Stage) {
    let a = stage.instance("a", 30).await;
    let front = Front::of([&a]).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("by-order", "orders", &front.url("/orders"), Push::new()).await;
    stage.pubsub.publish("orders", Message::new(r#"{"customer":7}"#)).await;
    // Twice: it is nacked, and comes again.
    let answers = front.await_answers(SOON, |answers| answers.len() == 2).await;
    let unkeyed = Answer { path: "/orders".into(), status: 422, outcome: "unkeyed".into() };
    assert_eq!(answers, [unkeyed.clone(), unkeyed]);
    assert!(stage.supplier.effects().is_empty());
}

// F19
async fn a_hundred_attributes_pass_as_headers(stage: &Stage) {
    let a = stage.instance("a", 30).await;
    stage.pubsub.topic("orders").await;
    // Past the front, which has a server of another kind.
    stage.subscribe("charge", "orders", &a.url("/orders"), Push::new().unwrapped()).await;
    let many =
        (1..100).fold(order("po-1"), |message, n| message.attribute(&format!("a{n}"), &"v".repeat(1024)));
    stage.pubsub.publish("orders", many).await;
    stage.await_state(&key("orders", "po-1"), State::Done).await;
    assert_eq!(stage.supplier.effects().len(), 1);
}

// F06
async fn a_message_of_ten_megabytes_passes(stage: &Stage) {
    let a = stage.instance("a", 30).await;
    stage.pubsub.topic("orders").await;
    stage.subscribe("charge", "orders", &a.url("/"), Push::new().ack_deadline(60)).await;
    let data = vec![b'x'; 10_000_000];
    let id = stage.pubsub.publish("orders", Message::new(&data)).await;
    stage.await_state(&key("messages", &id), State::Done).await;
    let effects = stage.supplier.effects();
    assert!(effects.len() == 1 && effects[0].body == data);
}
