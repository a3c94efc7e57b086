//! What goes wrong on the way: what is known of the write then, and what a lease makes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use pushonce::store::{Bucket, Maintain as _, StoreError, Version};
use pushonce::{RunError, Skip, Store, lock};

use crate::fake_answers::{FakeAnswers, Instead};
use crate::s3::S3;
use crate::{is_lost, key, record, report, shared, standing, told, written};

/// A store behind a fake, both on the real server.
async fn behind_a_fake() -> (S3, FakeAnswers, Bucket) {
    let s3 = S3::start().await;
    let fake = FakeAnswers::before(&s3.host).await;
    let store = s3.builder(&fake.host()).request_timeout(Duration::from_secs(2)).build().unwrap();
    (s3, fake, store)
}

#[tokio::test]
async fn each_answer_says_whether_the_write_may_have_landed_and_is_asked_for_once() {
    let (_s3, fake, store) = behind_a_fake().await;
    let seen = written(store.swap(&key("update"), None, &record(1)).await.unwrap());
    fake.take();
    for (answer, may_have_written) in [
        // F84
        (Instead::Answer(429, "TooManyRequests"), false),
        (Instead::Answer(429, ""), false),
        (Instead::Answer(503, "SlowDown"), false),
        (Instead::Answer(503, "ServiceUnavailable"), true),
        (Instead::Answer(500, "InternalError"), true),
        (Instead::Answer(502, ""), true),
        (Instead::CutBefore, true),
        (Instead::Silence, true),
    ] {
        for (key, seen) in [(key("create"), None), (key("update"), Some(&seen))] {
            fake.next_writes([answer]);
            let error = store.swap(&key, seen, &record(2)).await.unwrap_err();
            assert!(error.is_transient(), "{answer:?}: {error:?}");
            assert_eq!(error.may_have_written(), may_have_written, "{answer:?}: {error:?}");
            assert_eq!(fake.take().len(), 1, "{answer:?} was sent again");
        }
        fake.next_reads([answer]);
        let error = store.read(&key("update")).await.unwrap_err();
        assert!(error.is_transient() && !error.may_have_written(), "{answer:?}: {error:?}");
        assert_eq!(fake.take().len(), 1, "{answer:?} was sent again");
    }
    assert_eq!(standing(&store, &key("update")).await.record, record(1));
    report::test("s3", "each_answer_says_whether_the_write_may_have_landed_and_is_asked_for_once");
}

// F83
#[tokio::test]
async fn a_conflict_is_lost_and_never_says_what_stands() {
    let (_s3, fake, store) = behind_a_fake().await;
    fake.next_writes([Instead::Answer(409, "ConditionalRequestConflict")]);
    assert!(is_lost(&store.swap(&key("k"), None, &record(1)).await.unwrap()));
    assert!(store.read(&key("k")).await.unwrap().is_none());
    let seen = written(store.swap(&key("k"), None, &record(1)).await.unwrap());
    fake.next_writes([Instead::Answer(409, "ConditionalRequestConflict"), Instead::Answer(404, "NoSuchKey")]);
    for _ in 0..2 {
        assert!(is_lost(&store.swap(&key("k"), Some(&seen), &record(2)).await.unwrap()));
    }
    let _ = written(store.swap(&key("k"), Some(&seen), &record(2)).await.unwrap());
    report::test("s3", "a_conflict_is_lost_and_never_says_what_stands");
}

// F65, F85
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_ours_and_runs_once() {
    for cut in [Instead::CutBefore, Instead::CutAfter] {
        // The claim, then the completion.
        for at in 0..2 {
            let (_s3, fake, store) = behind_a_fake().await;
            let store = shared(store);
            let ran = Arc::new(AtomicUsize::new(0));
            let counts = ran.clone();
            let key = key("po-1");
            if at == 0 {
                fake.next_writes([cut]);
            }
            let fake = Arc::new(fake);
            let cuts = fake.clone();
            let work = async move {
                counts.fetch_add(1, Ordering::SeqCst);
                if at == 1 {
                    cuts.next_writes([cut]);
                }
                Ok(())
            };
            lock(&key, &store).run(work).await.unwrap_or_else(|error| panic!("{cut:?} {at}: {error:?}"));
            let again = lock(&key, &store).run(async { Ok(()) }).await;
            assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))));
            assert_eq!(ran.load(Ordering::SeqCst), 1, "{cut:?} {at}");
        }
    }
    report::test("s3", "a_write_whose_answer_was_lost_is_ours_and_runs_once");
}

#[tokio::test]
async fn an_answer_that_was_lost_on_the_store_alone_leaves_the_write_open() {
    let (_s3, fake, store) = behind_a_fake().await;
    fake.next_writes([Instead::CutAfter]);
    let error = store.swap(&key("k"), None, &record(1)).await.unwrap_err();
    assert!(error.may_have_written(), "{error:?}");
    let stands = standing(&store, &key("k")).await;
    assert_eq!(stands.record, record(1));
    // Nobody sent it again under the caller's feet.
    assert_eq!(fake.take().iter().filter(|(method, _)| *method == Method::PUT).count(), 1);
    report::test("s3", "an_answer_that_was_lost_on_the_store_alone_leaves_the_write_open");
}

#[tokio::test]
async fn a_server_that_is_away_takes_no_write_and_is_found_when_it_is_back() {
    let (s3, fake, store) = behind_a_fake().await;
    let host = fake.host();
    let store = shared(store);
    let (probe, k) = (store.clone(), key("probe"));
    let back = Arc::new(std::sync::Mutex::new(None));
    let (upstream, keep) = (s3.host.clone(), back.clone());
    let work = async move {
        // Between claim and completion it goes, for as long as a restart may take.
        drop(fake);
        let error = loop {
            // A connection that is being closed may still take a request, and then nobody knows.
            match probe.swap(&k, None, &record(1)).await {
                Err(error) if !error.may_have_written() => break error,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
                Ok(swap) => panic!("a server that is away answered {swap:?}"),
            }
        };
        assert!(error.is_transient(), "{error:?}");
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            *keep.lock().unwrap() = Some(FakeAnswers::before_at(&host, &upstream).await);
        });
        Ok(())
    };
    lock(key("po-1"), &store).run(work).await.unwrap();
    let again = lock(key("po-1"), &store).run(async { Ok(()) }).await;
    assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
    assert!(s3.store().read(&key("probe")).await.unwrap().is_none());
    report::test("s3", "a_server_that_is_away_takes_no_write_and_is_found_when_it_is_back");
}

#[tokio::test]
async fn a_set_up_that_works_passes_the_check_and_leaves_nothing_behind() {
    let s3 = S3::start().await;
    let store = s3.store();
    store.check().await.unwrap();
    let listing = store.list(&Default::default(), &Default::default()).await.unwrap();
    assert!(listing.found.is_empty() && listing.next.is_none(), "{listing:?}");
    report::test("s3", "a_set_up_that_works_passes_the_check_and_leaves_nothing_behind");
}

/// What each call of the store says of one fault.
async fn every_call(store: &Bucket) -> Vec<StoreError> {
    let (k, version) = (key("k"), Version::text("\"0\"\n"));
    let calls = [
        store.read(&k).await.map(drop),
        store.check().await,
        store.swap(&k, None, &record(1)).await.map(drop),
        store.swap(&k, Some(&version), &record(1)).await.map(drop),
        store.list(&Default::default(), &Default::default()).await.map(drop),
    ];
    calls.into_iter().map(|call| call.expect_err("a fault")).collect()
}

#[tokio::test]
async fn keys_that_are_not_valid_are_refused_by_every_call_and_never_told() {
    let s3 = S3::start().await;
    let wrong = s3.client(&s3.host).with_secret_access_key("pa55w0rd").with_token("t0ken");
    let unknown = s3.client(&s3.host).with_access_key_id("nobody").with_secret_access_key("pa55w0rd");
    for client in [wrong, unknown] {
        let store = Bucket::s3(client).build().unwrap();
        for error in every_call(&store).await {
            assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
            assert!(told(&error).contains("the credentials are not valid"), "{}", told(&error));
            let all = format!("{} {error:?} {store:?}", told(&error));
            assert!(!all.contains("pa55w0rd") && !all.contains("t0ken"), "{all}");
        }
    }
    report::test("s3", "keys_that_are_not_valid_are_refused_by_every_call_and_never_told");
}

// A server that makes a bucket of the first object that is put into it cannot show this.
#[tokio::test]
async fn what_must_be_mended_is_refused_by_every_call() {
    let (_s3, fake, store) = behind_a_fake().await;
    for (status, code, remedy) in
        [(404, "NoSuchBucket", "there is no such bucket"), (403, "AccessDenied", "s3:PutObject")]
    {
        let answer = Instead::Answer(status, code);
        fake.next_reads([answer; 3]);
        fake.next_writes([answer; 2]);
        for error in every_call(&store).await {
            assert!(matches!(error, StoreError::Refused { .. }), "{code}: {error:?}");
            assert!(error.to_string().contains(remedy), "{code}: {error}");
        }
    }
    report::test("s3", "what_must_be_mended_is_refused_by_every_call");
}
