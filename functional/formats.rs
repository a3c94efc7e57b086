//! Records of an older and of a newer version on one key: rolling deployments share a store.

use std::time::{SystemTime, UNIX_EPOCH};

use pushonce::store::Record;
use pushonce::store::record::State;
use pushonce::{Key, Store};
use serde_json::{Value, json};

use crate::stage::{Stage, by_hand, key, push, scenarios};

scenarios! {
    on both:
        records_of_the_first_version_are_understood
        unknown_fields_of_a_newer_minor_survive_a_run
        a_record_of_a_newer_major_is_answered_503_and_left_untouched;
}

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/records/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read(path).expect("a golden record");
    serde_json::from_slice(&document).expect("JSON")
}

/// Puts a document under the key, past all code of ours that knows what a record is.
async fn plant(stage: &Stage, key: &Key, document: &Value) {
    let any = Record::decode(golden("released").to_string().as_bytes()).expect("a record");
    let _ = stage.store.swap(key, None, &any).await.expect("the store answers");
    stage.site.emulator().rewrite(key, "record", &document.to_string()).await;
}

/// The same, written now: one of the emulators tells no time and goes by what the record says.
fn fresh(mut document: Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    document["written_us"] = u64::try_from(now.as_micros()).expect("a clock before 586524").into();
    document
}

async fn records_of_the_first_version_are_understood(stage: &Stage) {
    let a = stage.instance("a", 30).await;
    for (name, status, outcome, history) in [
        ("done", 204, "duplicate", None),
        ("claimed", 503, "in-progress", None),
        ("started", 204, "lost", None),
        ("released", 200, "ran", Some("Failed { runs: 2 }")),
    ] {
        let before = stage.supplier.effects().len();
        plant(stage, &key("messages", name), &fresh(golden(name))).await;
        assert_eq!(push(&a, by_hand("/", name)).await, (status, outcome.into()), "{name}");
        let told: Vec<_> =
            stage.supplier.effects()[before..].iter().map(|effect| effect.history().to_owned()).collect();
        assert_eq!(told, history.map(str::to_owned).into_iter().collect::<Vec<_>>(), "{name}");
    }
    let was = golden("released")["fence"].as_u64().expect("a number");
    assert!(stage.record(&key("messages", "released")).await.record.fence > was);
}

async fn unknown_fields_of_a_newer_minor_survive_a_run(stage: &Stage) {
    let a = stage.instance("a", 30).await;
    let key = key("messages", "m-1");
    let newer = golden("newer_minor");
    plant(stage, &key, &newer).await;
    assert_eq!(push(&a, by_hand("/", "m-1")).await, (200, "ran".into()));
    let record = stage.record(&key).await.record;
    assert_eq!(record.state, State::Done);
    assert_eq!(json!(record.format), newer["format"]);
    for field in ["colour", "region"] {
        assert_eq!(record.unknown.get(field), Some(&newer[field]), "{record:?}");
    }
}

async fn a_record_of_a_newer_major_is_answered_503_and_left_untouched(stage: &Stage) {
    let a = stage.instance("a", 30).await;
    let key = key("messages", "m-1");
    plant(stage, &key, &golden("newer_major")).await;
    let before = stage.site.emulator().raw_read(&key).await;
    for _ in 0..2 {
        assert_eq!(push(&a, by_hand("/", "m-1")).await, (503, "unavailable".into()));
    }
    assert!(stage.supplier.effects().is_empty());
    let after = stage.site.emulator().raw_read(&key).await;
    // Not the whole answer, whose times of reading differ.
    let standing = |found: Option<_>| {
        let found: gcloud_sdk::google::datastore::v1::EntityResult = found.expect("an entity");
        (found.entity, found.version)
    };
    assert_eq!(standing(after), standing(before));
}
