//! Races: whatever comes at once, one wins, and nobody meets an error.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use pushonce::{Key, RunError, Store, lock};

use crate::fake_answers::FakeAnswers;
use crate::s3::S3;
use crate::{key, record, report, shared, standing, written};

const RACERS: usize = 20;
/// Rounds, each on its own key: a server may make those who contend for one object wait by the second.
const AT_ONCE: usize = 10;

/// Runs the key's work so often at once: how often it ran, and that nobody met an error.
async fn race(store: &Arc<dyn Store>, key: &Key) -> usize {
    let ran = Arc::new(AtomicUsize::new(0));
    let one = || {
        let ran = ran.clone();
        lock(key, store).run(async move {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    };
    let ends = join_all((0..RACERS).map(|_| one())).await;
    let won = ends.iter().filter(|end| end.is_ok()).count();
    assert!(ends.iter().all(|end| matches!(end, Ok(()) | Err(RunError::Skipped(_)))), "{ends:?}");
    assert_eq!(won, ran.load(Ordering::SeqCst));
    won
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_first_claims_one_wins_and_neighbours_all_do() {
    let s3 = S3::start().await;
    let store = &shared(s3.store());
    let round = |round: usize| async move {
        let contended = key(&round.to_string());
        let neighbours = (0..5).map(|at| lock(key(&format!("{round}/{at}")), store).run(async { Ok(()) }));
        let (won, neighbours) = tokio::join!(race(store, &contended), join_all(neighbours));
        assert_eq!(won, 1, "round {round}");
        assert!(neighbours.iter().all(Result::is_ok), "round {round}: {neighbours:?}");
    };
    stream::iter(0..200).for_each_concurrent(AT_ONCE, round).await;
    report::test("s3", "of_twenty_first_claims_one_wins_and_neighbours_all_do");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_take_overs_one_wins() {
    let s3 = S3::start().await;
    let store = s3.store();
    let keys: Vec<_> = (0..60).map(|round| key(&round.to_string())).collect();
    for key in &keys {
        let _ = written(store.swap(key, None, &record(1)).await.unwrap());
    }
    // All of them lapse at once, since the time of an object is a matter of seconds.
    while standing(&store, keys.last().unwrap()).await.age < record(1).lease {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let store = &shared(store);
    let take_over = |key: Key| async move {
        assert_eq!(race(store, &key).await, 1, "{key}");
        let fence = store.read(&key).await.unwrap().unwrap().record.fence;
        assert!(fence > record(1).fence, "{key} was not taken over");
    };
    stream::iter(keys).for_each_concurrent(AT_ONCE, take_over).await;
    report::test("s3", "of_twenty_take_overs_one_wins");
}

// F83
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_are_all_refused_with_409_are_tried_again_and_one_wins() {
    let s3 = S3::start().await;
    let fake = FakeAnswers::before(&s3.host).await;
    let store = shared(s3.builder(&fake.host()).build().unwrap());
    for round in 0..10 {
        // None of these creates reaches the server, so whoever takes one for "exists" leaves the key undone.
        fake.refuse_creates(RACERS);
        assert_eq!(race(&store, &key(&round.to_string())).await, 1, "round {round}");
        let mut sent = HashMap::<_, usize>::new();
        for (method, _) in fake.take() {
            *sent.entry(method).or_default() += 1;
        }
        assert!(sent[&http::Method::PUT] > RACERS && sent[&http::Method::GET] >= RACERS, "{sent:?}");
    }
    report::test("s3", "creates_that_are_all_refused_with_409_are_tried_again_and_one_wins");
}
