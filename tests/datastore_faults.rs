//! What the Datastore store says when the server, the set-up or the network is at fault, shown with a
//! fake server, and what exactly it asks.
#![cfg(test)]

#[path = "support/example.rs"]
mod example;
#[path = "support/fake_datastore.rs"]
mod fake_datastore;

use std::process::Command;
use std::time::Duration;

use fake_datastore::{Answer, FakeDatastore};
use gcloud_sdk::google::datastore::v1 as pb;
use gcloud_sdk::google::datastore::v1::mutation::{
    ConflictDetectionStrategy, ConflictResolutionStrategy, Operation,
};
use gcloud_sdk::google::datastore::v1::value::ValueType;
use gcloud_sdk::prost_types::Timestamp;
use gcloud_sdk::tonic::Code;
use pushonce::store::Maintain as _;
use pushonce::store::record::Record;
use pushonce::store::{Datastore, Standing, StoreError, Swap, Version};
use pushonce::{IntoKey, Key, Store};

const NATIVE: &str =
    "The Cloud Datastore API is not available for Firestore in Native Mode database p1/orders.";

fn key() -> Key {
    ("orders", "po-1").into_key().unwrap()
}

fn record() -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"token":"01","lease_us":1000000,
        "ttl_us":1000000,"ended":"fresh","written_us":1700000000000000,"expires_us":1800000000000000}"#;
    Record::decode(document.as_bytes()).unwrap()
}

fn production(fake: &FakeDatastore) -> Datastore {
    // The fake is not an emulator to the store: it stands in for Google Cloud.
    let named = Datastore::builder("p1").database("orders").emulator("").endpoint(fake.url());
    named.request_timeout(Duration::from_secs(5)).build().unwrap()
}

fn written(version: i64) -> Answer {
    let result = pb::MutationResult { version, ..pb::MutationResult::default() };
    Answer::Commit(pb::CommitResponse { mutation_results: vec![result], ..pb::CommitResponse::default() })
}

/// The entity that the store writes for a record, as a server that tells the given times would find it.
async fn found(read: Option<i64>, updated: Option<i64>) -> Answer {
    let fake = FakeDatastore::start([written(1)]).await;
    let _ = production(&fake).swap(&key(), None, &record()).await.unwrap();
    let commit: pb::CommitRequest = fake.asked()[0].message();
    let Some(Operation::Insert(entity)) = commit.mutations[0].operation.clone() else { panic!("{commit:?}") };
    let at = |seconds| Timestamp { seconds, nanos: 0 };
    let found = pb::EntityResult {
        entity: Some(entity),
        version: 1,
        update_time: updated.map(at),
        ..pb::EntityResult::default()
    };
    Answer::Lookup(pb::LookupResponse {
        found: vec![found],
        read_time: read.map(at),
        ..pb::LookupResponse::default()
    })
}

#[tokio::test]
async fn a_permanent_fault_is_refused_at_start_and_says_what_to_mend() {
    for (code, said, remedy) in [
        (Code::PermissionDenied, "Missing or insufficient permissions.", "roles/datastore.user"),
        (Code::FailedPrecondition, NATIVE, "must be Firestore in Datastore mode"),
        (
            Code::NotFound,
            "The database orders does not exist for project p1",
            "check the project and the database",
        ),
        (
            Code::Unauthenticated,
            "Request had invalid authentication credentials.",
            "Application Default Credentials",
        ),
    ] {
        let fake = FakeDatastore::start([Answer::Status(code, said)]).await;
        let error = production(&fake).check().await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }) && !error.is_transient(), "{error:?}");
        let text = error.to_string();
        for part in [remedy, said, "project `p1`", "database `orders`"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}

#[tokio::test]
async fn a_service_without_permission_does_not_start_and_says_why_in_one_line() {
    let denied = Answer::Status(Code::PermissionDenied, "Missing or insufficient permissions.");
    let fake = FakeDatastore::start([denied]).await;
    let mut orders = tokio::process::Command::new(example::example("orders"));
    orders
        .env("PORT", "0")
        .env("PUSHONCE_STORE", "datastore://p1/orders")
        .env("DATASTORE_EMULATOR_HOST", fake.url())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), orders.output()).await;
    let output = output.expect("it ends").expect("it runs");
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), line.trim_end().lines().count()), (Some(1), 1), "{line}");
    assert!(line.starts_with("orders: not started: ") && line.contains("roles/datastore.user"), "{line}");
}

#[tokio::test]
async fn a_wrong_mode_refuses_a_write_and_is_not_taken_for_a_lost_one() {
    let refuse = || Answer::Status(Code::FailedPrecondition, NATIVE);
    let fake = FakeDatastore::start([refuse(), refuse()]).await;
    let store = production(&fake);
    for seen in [None, Some(Version::number(1))] {
        let error = store.swap(&key(), seen.as_ref(), &record()).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    }
}

// F64
#[tokio::test]
async fn an_outage_or_contention_is_transient_leaves_a_write_open_and_the_next_call_works() {
    let outages =
        [Answer::Status(Code::Unavailable, "try later"), Answer::Status(Code::Aborted, "contention")];
    let fake = FakeDatastore::start(outages.into_iter().chain([written(9)])).await;
    let store = production(&fake);
    for _ in 0..2 {
        let error = store.swap(&key(), None, &record()).await.unwrap_err();
        assert!(error.is_transient() && error.may_have_written(), "{error:?}");
    }
    let swap = store.swap(&key(), None, &record()).await.unwrap();
    assert!(matches!(&swap, Swap::Written(version) if *version == Version::number(9)), "{swap:?}");
    assert_eq!(fake.asked().len(), 3, "one attempt for each call");
}

#[tokio::test]
async fn an_outage_of_a_read_leaves_no_write_open() {
    let fake = FakeDatastore::start([Answer::Status(Code::Unavailable, "try later")]).await;
    let error = production(&fake).read(&key()).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_written(), "{error:?}");
}

#[tokio::test]
async fn a_server_that_reports_a_conflict_as_success_has_not_written() {
    let result = pb::MutationResult { version: 5, conflict_detected: true, ..pb::MutationResult::default() };
    let conflict = pb::CommitResponse { mutation_results: vec![result], ..pb::CommitResponse::default() };
    let fake = FakeDatastore::start([Answer::Commit(conflict)]).await;
    let swap = production(&fake).swap(&key(), Some(&Version::number(4)), &record()).await.unwrap();
    assert!(matches!(swap, Swap::Lost(Standing::Unknown)), "{swap:?}");
}

#[tokio::test]
async fn a_production_server_must_tell_the_time() {
    for (read, updated) in [(None, Some(100)), (Some(100), None), (None, None)] {
        let fake = FakeDatastore::start([found(read, updated).await]).await;
        let error = production(&fake).read(&key()).await.unwrap_err();
        assert!(error.to_string().contains("tells no time"), "{read:?} {updated:?}: {error}");
    }
    let fake = FakeDatastore::start([found(Some(107), Some(100)).await]).await;
    let stored = production(&fake).read(&key()).await.unwrap().unwrap();
    assert_eq!((stored.age, stored.record), (Duration::from_secs(7), record()));
}

#[tokio::test]
async fn a_silent_server_is_given_up_within_the_request_timeout() {
    let fake = FakeDatastore::start([Answer::Silence, Answer::Silence]).await;
    let store = Datastore::builder("p1").emulator("").endpoint(fake.url());
    let store = store.request_timeout(Duration::from_millis(200)).build().unwrap();
    let error = store.swap(&key(), None, &record()).await.unwrap_err();
    assert!(error.is_transient() && error.may_have_written(), "{error:?}");
    let error = store.read(&key()).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_written(), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_answers_others_is_kept() {
    let fake =
        FakeDatastore::start([Answer::Silence, written(1), written(1), Answer::Silence, written(1)]).await;
    let store = Datastore::builder("p1").emulator("").endpoint(fake.url());
    let store = store.request_timeout(Duration::from_secs(2)).build().unwrap();
    // One waits for its own key only: somebody's transaction has locked it, say.
    let (key, record) = (key(), record());
    let others = async {
        while fake.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        store.swap(&key, None, &record).await
    };
    let (unanswered, answered) = tokio::join!(store.swap(&key, None, &record), others);
    assert!(unanswered.is_err_and(|error| error.may_have_written()) && answered.is_ok());
    assert!(store.swap(&key, None, &record).await.is_ok());
    assert_eq!(fake.connections(), 1);
    // And one that answers nobody is not.
    assert!(store.swap(&key, None, &record).await.is_err());
    assert!(store.swap(&key, None, &record).await.is_ok());
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn a_swap_is_one_whole_entity_with_one_condition_outside_any_transaction() {
    let fake = FakeDatastore::start([written(1), written(2)]).await;
    let store = production(&fake);
    let _ = store.swap(&key(), None, &record()).await.unwrap();
    let _ = store.swap(&key(), Some(&Version::number(1)), &record()).await.unwrap();
    let asked = fake.asked();
    for asked in &asked {
        assert_eq!(asked.path, "/google.datastore.v1.Datastore/Commit");
        assert_eq!(asked.headers["x-goog-request-params"], "project_id=p1&database_id=orders");
        let commit: pb::CommitRequest = asked.message();
        assert_eq!(commit.mode(), pb::commit_request::Mode::NonTransactional);
        assert_eq!((commit.mutations.len(), commit.transaction_selector), (1, None));
        let mutation = &commit.mutations[0];
        assert!(mutation.property_mask.is_none() && mutation.property_transforms.is_empty());
        let Some(Operation::Insert(entity) | Operation::Update(entity)) = &mutation.operation else {
            panic!("{mutation:?}")
        };
        assert!(entity.properties.values().all(|value| value.exclude_from_indexes), "{entity:?}");
        let expires = &entity.properties["expires_at"].value_type;
        assert!(
            matches!(expires, Some(ValueType::TimestampValue(at)) if at.seconds == 1_800_000_000),
            "F70: {expires:?}"
        );
    }
    let insert = &asked[0].message::<pb::CommitRequest>().mutations[0];
    assert_eq!(insert.conflict_detection_strategy, None);
    let update = &asked[1].message::<pb::CommitRequest>().mutations[0];
    assert_eq!(update.conflict_detection_strategy, Some(ConflictDetectionStrategy::BaseVersion(1)));
    assert_eq!(update.conflict_resolution_strategy(), ConflictResolutionStrategy::Fail);
}

/// In a process of its own, since credentials are found by the environment.
fn in_a_child(test: &str, environment: &[(&str, &str)]) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("PUSHONCE_TEST_CHILD", "1")
        .env_remove("GOOGLE_APPLICATION_CREDENTIALS")
        .env_remove("DATASTORE_EMULATOR_HOST")
        .env("HOME", "/nonexistent")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

fn is_child() -> bool {
    std::env::var_os("PUSHONCE_TEST_CHILD").is_some()
}

#[tokio::test]
async fn without_credentials_and_network_a_production_store_is_built_and_its_first_call_says_why() {
    if !is_child() {
        // Port 1 answers nobody, as a metadata server does that is not there.
        let nowhere = [("GCE_METADATA_HOST", "127.0.0.1:1")];
        return in_a_child(
            "without_credentials_and_network_a_production_store_is_built_and_its_first_call_says_why",
            &nowhere,
        );
    }
    let store = Datastore::builder("p1").request_timeout(Duration::from_secs(2)).build().unwrap();
    let error = store.swap(&key(), None, &record()).await.unwrap_err();
    eprintln!("{error}: {error:?}");
    assert!(!error.may_have_written(), "{error:?}");
    assert!(error.to_string().contains("no access token"), "{error}");
}

#[tokio::test]
async fn credentials_that_cannot_be_read_are_refused() {
    if !is_child() {
        let missing = [("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/key.json")];
        return in_a_child("credentials_that_cannot_be_read_are_refused", &missing);
    }
    let store = Datastore::new("p1").unwrap();
    let error = store.check().await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("no credentials"), "{error}");
}
