//! What the producer's key and its task are to a consumer that takes one line for either.

use std::sync::Arc;

use axum::{Router, routing::post};
use pushonce::store::Memory;
use pushonce::submit::{SubmitError, Tasks};
use pushonce::testing::Push;
use pushonce::{IdempotentLayer, Outcome, Store, attribute};

use crate::world::{Fault, World};

/// Two copies of one submission, of which the first was published although nobody knew; and what becomes of
/// their pushes under the layer.
async fn two_copies(layer: impl FnOnce(IdempotentLayer, Arc<dyn Store>) -> IdempotentLayer) -> [Outcome; 2] {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let world = World::on(store.clone());
    world.publisher.next(Fault::Unanswered);
    let unknown = world.charge("k").send().await;
    assert!(matches!(unknown, Err(SubmitError::Publish { keyed: true, .. })), "{unknown:?}");
    world.submitted("k").await;
    let layer = layer(IdempotentLayer::new("charge", store.clone()), store);
    let app: Router = Router::new().route("/", post(async || ()).layer(layer));
    let messages = world.publisher.messages.lock().unwrap().clone();
    assert_eq!(messages.len(), 2);
    let mut outcomes = Vec::new();
    for (number, (_, message)) in messages.into_iter().enumerate() {
        let push = Push::bytes(message.data).id(number.to_string());
        let attributes = message.attributes.into_iter();
        let push = attributes.fold(push, |push, (name, value)| push.attribute(name, value));
        outcomes.push(push.send(&app).await.outcome.unwrap());
    }
    outcomes.try_into().unwrap()
}

// F17
#[tokio::test]
async fn a_consumer_drops_the_producers_own_copies_with_one_line() {
    assert_eq!(two_copies(|layer, _| layer).await, [Outcome::Ran, Outcome::Ran], "by the message id");
    let once = [Outcome::Ran, Outcome::Duplicate];
    let by_key = |layer: IdempotentLayer, _| layer.key(attribute("idempotency-key"));
    assert_eq!(two_copies(by_key).await, once, "by the key");
    let by_task = |layer: IdempotentLayer, _| layer.key(attribute("task-id"));
    assert_eq!(two_copies(by_task).await, once, "by the task");
    let followed = |layer: IdempotentLayer, store| layer.follow(Tasks::new(store));
    assert_eq!(two_copies(followed).await, once, "followed");
}
