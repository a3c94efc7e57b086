//! The payload check: the same key with other data.

use pushonce::{PayloadCheck, attribute};
use serde_json::{Value, json};
use tracing::Level;

use crate::log::Log;
use crate::world::{Runs, World, app, message, with_data};

fn order(id: &str, data: &str) -> Value {
    let mut message = with_data(id, data);
    message["attributes"] = json!({ "po": "1", "sent": id });
    message
}

#[tokio::test]
async fn another_payload_under_a_business_key_alerts_or_is_refused() {
    for (check, status) in [(PayloadCheck::Alert, 204), (PayloadCheck::Refuse, 409)] {
        let (world, runs) = (World::new(), Runs::default());
        let app = app(runs.answering(&[200]), world.layer().key(attribute("po")).payload_check(check));
        assert_eq!(message(&app, &order("m-1", "a")).await.told(), (200, "ran"));
        // Attributes are not the payload.
        assert_eq!(message(&app, &order("m-2", "a")).await.told(), (204, "duplicate"));
        let (before, (log, _guard)) = (world.record(("orders", "1")).await, Log::capture());
        assert_eq!(message(&app, &order("m-3", "b")).await.told(), (status, "conflict"));
        let line = log.outcome();
        assert_eq!((line.field("event"), line.level), ("conflict", Level::ERROR));
        assert_eq!((runs.count(), world.record(("orders", "1")).await), (1, before));
    }
}

#[tokio::test]
async fn another_payload_under_a_message_id_is_another_message_and_never_acked() {
    for check in [PayloadCheck::Alert, PayloadCheck::Refuse] {
        let (world, runs) = (World::new(), Runs::default());
        let app = app(runs.answering(&[200]), world.layer().payload_check(check));
        assert_eq!(message(&app, &order("m", "a")).await.told(), (200, "ran"));
        assert_eq!(message(&app, &order("m", "a")).await.told(), (204, "duplicate"));
        assert_eq!(message(&app, &order("m", "b")).await.told(), (500, "conflict"));
        assert_eq!(runs.count(), 1);
    }
}

#[tokio::test]
async fn a_record_without_a_digest_matches_any_payload() {
    let (world, runs) = (World::new(), Runs::default());
    let before = app(runs.answering(&[200]), world.layer());
    assert_eq!(message(&before, &order("m", "a")).await.told(), (200, "ran"));
    let after = app(runs.answering(&[200]), world.layer().payload_check(PayloadCheck::Refuse));
    assert_eq!(message(&after, &order("m", "b")).await.told(), (204, "duplicate"));
}

#[tokio::test]
async fn a_claim_after_a_release_replaces_the_digest() {
    let (world, runs) = (World::new(), Runs::default());
    let app = app(runs.answering(&[500, 200]), world.layer().payload_check(PayloadCheck::Alert));
    assert_eq!(message(&app, &order("m", "a")).await.told(), (500, "failed"));
    assert_eq!(message(&app, &order("m", "b")).await.told(), (200, "ran"));
    assert_eq!(message(&app, &order("m", "b")).await.told(), (204, "duplicate"));
    assert_eq!(message(&app, &order("m", "a")).await.told(), (500, "conflict"));
}

#[tokio::test]
async fn data_that_cannot_be_decoded_is_refused_before_the_claim() {
    let (world, runs) = (World::new(), Runs::default());
    let app = app(runs.answering(&[200]), world.layer().payload_check(PayloadCheck::Alert));
    let told = message(&app, &json!({ "messageId": "m", "data": "!!" })).await;
    assert_eq!(told.told(), (400, "refused"));
    assert_eq!((runs.count(), world.memory.len()), (0, 0));
}
