//! `serialize`: the messages of one order run one at a time, on whatever instance, and none is dropped.

use std::collections::HashSet;
use std::time::Duration;

use pushonce::store::record::State;

use crate::client;
use crate::front::{Answer, Front};
use crate::pubsub::Push;
use crate::stage::{SOON, Stage, key, order, push, scenarios, told};

scenarios! {
    on both: ;
    on one:
        the_messages_of_one_order_run_one_at_a_time_and_none_is_dropped
        the_messages_of_another_order_do_not_wait
}

async fn the_messages_of_one_order_run_one_at_a_time_and_none_is_dropped(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    let front = Front::of([&a, &b]).await;
    stage.supplier.take_time(Duration::from_millis(300), 6);
    stage.pubsub.topic("orders").await;
    stage.subscribe("status", "orders", &front.url("/status"), Push::new()).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(stage.pubsub.publish("orders", order("po-1")).await);
    }

    let acked = |answers: &[Answer]| answers.iter().filter(|answer| answer.acks()).count() == 6;
    front.await_answers(SOON, acked).await;
    let effects = stage.supplier.effects();
    assert!(effects.iter().all(|effect| effect.alongside == 0), "{}", stage.supplier);
    assert_eq!(effects.len(), 6);
    assert_eq!(effects.iter().map(|effect| effect.id()).collect::<HashSet<_>>().len(), 6);
    for id in &ids {
        assert_eq!(stage.record(&key("status", id)).await.record.state, State::Done);
    }
}

async fn the_messages_of_another_order_do_not_wait(stage: &Stage) {
    let (a, b) = tokio::join!(stage.instance("a", 30), stage.instance("b", 30));
    stage.supplier.hold();
    let update = |po_id, id| order(po_id).request("/status", id, 1);
    let first = client::send_in_background(client::local(a.port), update("po-1", "m-1"));
    stage.supplier.await_effects(SOON, |effects| effects.len() == 1).await;
    assert_eq!(push(&b, update("po-2", "m-2")).await, (200, "ran".into()));
    assert_eq!(stage.supplier.effects()[1].alongside, 1);

    // Of the same order: nacked after its wait, and its own message can be claimed again at once.
    assert_eq!(push(&b, update("po-1", "m-3")).await, (503, "in-progress".into()));
    stage.supplier.release();
    assert_eq!(told(&first.answer().await.expect("an answer")), (200, "ran".into()));
    assert_eq!(push(&b, update("po-1", "m-3")).await, (200, "ran".into()));
    let effects = stage.supplier.effects();
    assert_eq!((effects.len(), effects[2].history()), (3, "Fresh"), "waiting is no run");
}
