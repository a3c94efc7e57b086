//! The store on Google Cloud Storage, as our fake of it answers: about one write per second of one object.
#![cfg(test)]

#[path = "support/fake_answers.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod fake_answers;
#[path = "support/fake_gcs.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod fake_gcs;
#[path = "support/report.rs"]
mod report;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use axum::{Router, routing::post};
use fake_answers::{FakeAnswers, Instead};
use fake_gcs::FakeGcs;
use futures_util::future::join_all;
#[cfg(feature = "submit")]
use pushonce::publish::{Message, PublishError, Publisher};
#[cfg(feature = "submit")]
use pushonce::store::BoxFuture;
use pushonce::store::record::{Id, Record, State};
use pushonce::store::{Bucket, BucketBuilder, Filter, Maintain as _, Page, Standing, StoreError, Swap};
#[cfg(feature = "submit")]
use pushonce::submit::{SubmitError, Submitter};
use pushonce::testing::Push;
use pushonce::{IdempotentLayer, IntoKey, Key, Outcome, RunError, Skip, Store, lock};

const RACERS: usize = 20;

fn builder(host: &str) -> BucketBuilder {
    // Fake and client have one clock here.
    Bucket::gcs(fake_gcs::client(host)).clock_margin(Duration::ZERO)
}

fn store(fake: &FakeGcs) -> Arc<dyn Store> {
    Arc::new(builder(&fake.host()).build().unwrap())
}

fn key(text: &str) -> Key {
    ("orders", text).into_key().unwrap()
}

fn record() -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"holder":"0a","token":"01",
        "lease_us":1000,"ttl_us":604800000000,"ended":"fresh","written_us":1700000000000000,
        "expires_us":1800000000000001}"#;
    Record::decode(document.as_bytes()).unwrap()
}

async fn state(store: &Arc<dyn Store>, key: &Key) -> State {
    store.read(key).await.unwrap().expect("a record stands under the key").record.state
}

// F84
#[tokio::test]
async fn work_that_is_done_at_once_is_recorded_before_it_returns() {
    let fake = FakeGcs::start().await;
    let store = store(&fake);
    for at in 0..3 {
        let key = key(&at.to_string());
        lock(&key, &store).run(async { Ok(()) }).await.unwrap();
        // Not in the background: it is done when the caller is told.
        assert_eq!(state(&store, &key).await, State::Done);
        let again = lock(&key, &store).run(async { Ok(()) }).await;
        assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
    }
    assert!(fake.put_off() >= 3, "no completion met the limit, so nothing was shown");
    report::test("fake-gcs", "work_that_is_done_at_once_is_recorded_before_it_returns");
}

// F84
#[tokio::test]
async fn a_delivery_whose_handler_returns_at_once_is_acked_once_with_its_key_done() {
    let fake = FakeGcs::start().await;
    let store = store(&fake);
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = ran.clone();
    let handler = post(move || async move {
        counts.fetch_add(1, Ordering::SeqCst);
        StatusCode::OK
    });
    let app = Router::new().route("/", handler.layer(IdempotentLayer::new("charge", store.clone())));
    let push = Push::json(&serde_json::json!({ "order": 1 }));
    let first = push.send(&app).await;
    // Not `uncertain`, which would be acked too.
    assert_eq!((first.status, first.outcome), (StatusCode::OK, Some(Outcome::Ran)));
    let second = push.send(&app).await;
    assert_eq!((second.status, second.outcome), (StatusCode::NO_CONTENT, Some(Outcome::Duplicate)));
    assert!(fake.put_off() > 0, "the completion did not meet the limit, so nothing was shown");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    report::test("fake-gcs", "a_delivery_whose_handler_returns_at_once_is_acked_once_with_its_key_done");
}

// F84
#[tokio::test]
async fn a_claim_right_after_a_release_is_won_or_put_off_and_never_held() {
    let fake = FakeGcs::start().await;
    let store = store(&fake);
    let key = key("po-1");
    let fails = async { Err::<(), _>("no".into()) };
    assert!(matches!(lock(&key, &store).run(fails).await, Err(RunError::Work(_))));
    assert_eq!(state(&store, &key).await, State::Released);
    let mut put_off = 0;
    loop {
        match lock(&key, &store).run(async { Ok(()) }).await {
            Ok(()) => break,
            // As a delivery that is answered 503 and comes again.
            Err(RunError::Store(error)) if error.is_transient() && !error.may_have_written() => put_off += 1,
            other => panic!("after {put_off} times: {other:?}"),
        }
    }
    assert_eq!(state(&store, &key).await, State::Done);
    report::test("fake-gcs", "a_claim_right_after_a_release_is_won_or_put_off_and_never_held");
}

// F84
#[tokio::test]
async fn a_write_that_is_put_off_was_certainly_not_written_and_is_sent_once() {
    let fake = FakeGcs::start().await;
    let store = store(&fake);
    let Swap::Written(version) = store.swap(&key("k"), None, &record()).await.unwrap() else {
        panic!("a create is written");
    };
    for seen in [None, Some(&version)] {
        let before = fake.put_off();
        let error = store.swap(&key("k"), seen, &record()).await.unwrap_err();
        assert!(error.is_transient() && !error.may_have_written(), "{error:?}");
        assert_eq!(fake.put_off(), before + 1);
    }
    assert_eq!(store.read(&key("k")).await.unwrap().unwrap().version, version);
    report::test("fake-gcs", "a_write_that_is_put_off_was_certainly_not_written_and_is_sent_once");
}

#[tokio::test]
async fn of_twenty_racers_one_creates_and_one_updates() {
    let fake = FakeGcs::without_pace().await;
    let store = store(&fake);
    for round in 0..50 {
        let key = key(&round.to_string());
        let mut seen = None;
        for _ in 0..2 {
            let records: Vec<_> = (1..=RACERS)
                .map(|token| Record { token: Id::from_bits(token as u128), ..record() })
                .collect();
            let swaps = join_all(records.iter().map(|next| store.swap(&key, seen.as_ref(), next))).await;
            let mut winners: Vec<_> = swaps
                .into_iter()
                .filter_map(|swap| match swap.unwrap() {
                    Swap::Written(version) => Some(version),
                    Swap::Lost(Standing::Unknown) => None,
                    Swap::Lost(other) => panic!("nobody can say that {other:?} stands"),
                })
                .collect();
            assert_eq!(winners.len(), 1, "round {round}");
            seen = winners.pop();
            assert_eq!(store.read(&key).await.unwrap().map(|stored| stored.version), seen);
        }
    }
    report::test("fake-gcs", "of_twenty_racers_one_creates_and_one_updates");
}

// F65, F85
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_ours_and_runs_once() {
    for cut in [Instead::CutBefore, Instead::CutAfter] {
        for at in 0..2 {
            let fake = FakeGcs::without_pace().await;
            let wire = Arc::new(FakeAnswers::before(&fake.host()).await);
            let store: Arc<dyn Store> = Arc::new(builder(&wire.host()).build().unwrap());
            let ran = Arc::new(AtomicUsize::new(0));
            let (counts, cuts) = (ran.clone(), wire.clone());
            if at == 0 {
                wire.next_writes([cut]);
            }
            let work = async move {
                counts.fetch_add(1, Ordering::SeqCst);
                if at == 1 {
                    cuts.next_writes([cut]);
                }
                Ok(())
            };
            lock(key("k"), &store).run(work).await.unwrap_or_else(|error| panic!("{cut:?} {at}: {error:?}"));
            let again = lock(key("k"), &store).run(async { Ok(()) }).await;
            assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
            assert_eq!(ran.load(Ordering::SeqCst), 1, "{cut:?} {at}");
        }
    }
    report::test("fake-gcs", "a_write_whose_answer_was_lost_is_ours_and_runs_once");
}

#[tokio::test]
async fn pages_go_on_where_the_server_stops() {
    let fake = FakeGcs::without_pace().await;
    let store = builder(&fake.host()).build().unwrap();
    let mut keys: Vec<_> = (0..10).map(|at| key(&at.to_string())).collect();
    keys.push(("mail", "a").into_key().unwrap());
    for key in &keys {
        let _ = store.swap(key, None, &record()).await.unwrap();
    }
    for limit in [2, 7, 100] {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let listing = store.list(&Filter::default(), &Page { after, limit }).await.unwrap();
            all.extend(listing.found.into_iter().map(|found| found.key));
            after = listing.next;
            if after.is_none() {
                break;
            }
        }
        let mut right: Vec<_> = keys.iter().map(ToString::to_string).collect();
        all.sort();
        right.sort();
        assert_eq!(all, right, "{limit}");
    }
    report::test("fake-gcs", "pages_go_on_where_the_server_stops");
}

#[tokio::test]
async fn a_server_that_keeps_no_conditions_fails_the_check() {
    let fake = FakeGcs::without_pace().await;
    builder(&fake.host()).build().unwrap().check().await.unwrap();
    let wire = FakeAnswers::before(&fake.host()).await;
    wire.drop_header("x-goog-if-generation-match");
    let refused = builder(&wire.host()).build().unwrap().check().await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("cannot replace an object on a condition"), "{refused}");

    // A store that was handed in is asked before its first write, whether or not anybody checks it.
    let client = fake_gcs::client(&wire.host()).build().unwrap();
    let store: Arc<dyn Store> = Arc::new(Bucket::new(Arc::new(client), "handed-in").unwrap());
    let ran = lock(key("po-1"), &store).run(async { Ok(()) }).await;
    assert!(matches!(ran, Err(RunError::Store(StoreError::Refused { .. }))), "{ran:?}");
    assert!(store.read(&key("po-1")).await.unwrap().is_none());
    report::test("fake-gcs", "a_server_that_keeps_no_conditions_fails_the_check");
}

#[tokio::test]
async fn an_object_is_json_in_lines_of_its_content_type() {
    let fake = FakeGcs::without_pace().await;
    let store = builder(&fake.host()).prefix("ledger/eu").build().unwrap();
    let _ = store.swap(&key("po-1"), None, &record()).await.unwrap();
    let found = store.list(&Filter::default(), &Page::default()).await.unwrap().found;
    assert_eq!(found.len(), 1);
    let hash = "a19de901db2bd3757edcb47545ffca7ad6418b310af301943081b91d46093e56";
    let object = fake.object(&format!("ledger/eu/orders/{hash}.json"));
    let (content_type, body) = object.expect("an object at the promised place");
    assert_eq!(content_type, "application/json");
    assert!(body.starts_with(b"{\n"));
    report::test("fake-gcs", "an_object_is_json_in_lines_of_its_content_type");
}

/// The figure is told when the store is built, before any message.
#[tokio::test]
async fn a_bucket_of_google_says_its_limit_when_it_is_built() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    // A second subscriber, since an event that only one in the process could see may be switched off by others.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish());
    tracing::subscriber::with_default(subscriber, || builder("127.0.0.1:1").build().unwrap());
    let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    for part in ["about one write per second of one object", "GoogleCloudStorage(fake-bucket)", "submit side"]
    {
        assert!(lines[0].contains(part), "{said}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// F84
#[cfg(feature = "submit")]
#[tokio::test]
async fn a_submission_is_moved_on_as_soon_as_its_key_may_be_written_again() {
    let fake = FakeGcs::start().await;
    let submitter = Submitter::new(store(&fake), Arc::new(Accepts), "projects/p/topics/tasks");
    let submit = || submitter.submit("charge", &1).idempotency_key("k").send();
    let submitted = submit().await.unwrap();
    assert!(!submitted.duplicate && fake.put_off() > 0, "{submitted:?}");
    // The SHA-256 of `11.type:charge|1.k`.
    let key = "pushonce/idempotency/type:charge/a12ffb8a07715e01d05aa056f960ec33103bdb5839c1a993844ea3c797a250d1.json";
    let id = submitted.task.task_id.to_string();
    let task = format!("pushonce/tasks/{}/{id}.json", &id[id.len() - 1..]);
    for name in [key, &task] {
        let (_, body) = fake.object(name).unwrap_or_else(|| panic!("{name}"));
        let shown = serde_json::from_slice::<serde_json::Value>(&body).unwrap()["shown"].take();
        assert_eq!(
            (&shown["state"], &shown["task_id"]),
            (&"processing".into(), &id.clone().into()),
            "{name}"
        );
    }
    let again = submit().await.unwrap_err();
    assert!(matches!(again, SubmitError::InProgress { task_id, .. } if task_id == submitted.task.task_id));
    report::test("fake-gcs", "a_submission_is_moved_on_as_soon_as_its_key_may_be_written_again");
}

#[cfg(feature = "submit")]
#[derive(Debug)]
struct Accepts;

#[cfg(feature = "submit")]
impl Publisher for Accepts {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Ok("1".into()) })
    }
}
