//! The keys: fetched once for all who wait, kept for their life, and asked for again with restraint.

use std::time::Duration;

use futures_util::future::join_all;
use http::HeaderValue;
use http::header::{AGE, CACHE_CONTROL};
use serde_json::json;

use crate::world::{Mode, World, seconds};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) async fn world() -> World {
    World::new(Mode::Verify).await
}

/// Status and reason of a push with this token.
pub(crate) async fn pushed(world: &World, token: &str) -> (u16, String) {
    let before = world.refusals().len();
    let answer = world.push(token).await;
    let [line] = &world.refusals()[before..] else { panic!("a reason is logged once in ten seconds") };
    (answer.status, line.field("reason").to_owned())
}

/// A token under a key id that nobody knows.
pub(crate) fn unknown(world: &World, kid: &str) -> String {
    let claims = json!({ "aud": "orders", "exp": world.now() + 60 });
    world.keys.sign(&json!({ "alg": "RS256", "kid": kid }), &claims)
}

pub(crate) async fn good(world: &World) {
    let answer = world.push(&world.token()).await;
    assert_eq!(answer.status, 200, "{:?}", world.log.lines().last());
}

#[tokio::test]
async fn twenty_at_a_cold_start_are_let_in_by_one_fetch() {
    let world = world().await;
    world.keys.delay(Duration::from_millis(50));
    let token = world.token();
    let answers = join_all((0..20).map(|_| world.push(&token))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!((world.keys.fetches(), world.callers().len()), (1, 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_threads_at_once_make_one_fetch_too() {
    let world = world().await;
    let token = world.token();
    let pushes: Vec<_> = (0..200).map(|_| tokio::spawn(world.push(&token))).collect();
    for answer in join_all(pushes).await {
        assert_eq!(answer.unwrap().status, 200);
    }
    assert_eq!((world.keys.fetches(), world.callers().len()), (1, 200));
}

#[tokio::test]
async fn keys_are_fetched_again_when_their_life_is_over() {
    let world = world().await;
    world.keys.header(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    world.keys.header(AGE, HeaderValue::from_static("600"));
    for (after, fetches) in [(0, 1), (2999, 1), (1, 2), (2999, 2), (1, 3)] {
        world.clock.advance(seconds(after));
        good(&world).await;
        assert_eq!(world.keys.fetches(), fetches);
    }
}

#[tokio::test]
async fn no_server_makes_us_ask_each_time_or_never() {
    let world = world().await;
    world.keys.header(CACHE_CONTROL, HeaderValue::from_static("no-store, max-age=0"));
    for (after, fetches) in [(0, 1), (59, 1), (1, 2)] {
        world.clock.advance(seconds(after));
        good(&world).await;
        assert_eq!(world.keys.fetches(), fetches);
    }
    world.keys.header(CACHE_CONTROL, HeaderValue::from_static("max-age=99999999"));
    world.clock.advance(seconds(60));
    good(&world).await;
    world.clock.advance(DAY - seconds(1));
    good(&world).await;
    assert_eq!(world.keys.fetches(), 3);
    world.clock.advance(seconds(1));
    good(&world).await;
    assert_eq!(world.keys.fetches(), 4);
}

#[tokio::test]
async fn a_new_key_is_found_by_its_first_token() {
    let world = world().await;
    let old = world.token();
    assert_eq!(world.push(&old).await.status, 200);
    world.keys.rotate();
    world.clock.advance(seconds(30));
    good(&world).await;
    assert_eq!((world.push(&old).await.status, world.keys.fetches()), (200, 2));
}

/// What Google publishes a new key days ahead for.
#[tokio::test]
async fn a_key_that_signs_at_once_is_not_found_for_thirty_seconds() {
    let world = world().await;
    good(&world).await;
    world.keys.rotate();
    world.clock.advance(seconds(29));
    assert_eq!(pushed(&world, &world.token()).await, (401, "unknown-key".to_owned()));
    world.clock.advance(seconds(1));
    good(&world).await;
}

#[tokio::test]
async fn a_key_that_was_withdrawn_is_not_believed_after_the_next_fetch() {
    let world = world().await;
    let old = world.claims().issued(pushonce::Clock::wall(&world.clock) + HOUR - seconds(1));
    let old = world.keys.token(&old);
    good(&world).await;
    world.keys.rotate();
    world.keys.retire();
    world.clock.advance(HOUR);
    assert_eq!(pushed(&world, &old).await, (401, "unknown-key".to_owned()));
    good(&world).await;
    assert_eq!(world.keys.fetches(), 2);
}

#[tokio::test]
async fn a_flood_of_key_ids_costs_one_fetch_in_thirty_seconds() {
    let world = world().await;
    good(&world).await;
    for round in 0..3 {
        let tokens: Vec<_> = (0..50).map(|n| unknown(&world, &format!("{round}-{n}"))).collect();
        for answer in join_all(tokens.iter().map(|token| world.push(token))).await {
            assert_eq!(answer.status, 401);
        }
        assert_eq!(world.keys.fetches(), 1 + round);
        // The flood keeps nobody out.
        good(&world).await;
        world.clock.advance(seconds(29));
        assert_eq!(world.push(&tokens[0]).await.status, 401);
        assert_eq!(world.keys.fetches(), 1 + round);
        world.clock.advance(seconds(1));
    }
}

#[tokio::test]
async fn who_has_a_key_that_will_do_does_not_wait_for_a_slow_server() {
    let world = world().await;
    good(&world).await;
    world.clock.advance(HOUR);
    world.keys.delay(DAY);
    let slow = tokio::spawn(world.push(&world.token()));
    while world.keys.fetches() < 2 {
        tokio::task::yield_now().await;
    }
    good(&world).await;
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test]
async fn callers_that_hang_up_do_not_make_the_next_one_ask_anew() {
    let world = world().await;
    world.keys.delay(Duration::from_millis(200));
    for _ in 0..5 {
        let push = tokio::spawn(world.push(&world.token()));
        while world.keys.fetches() == 0 {
            tokio::task::yield_now().await;
        }
        push.abort();
        assert!(push.await.unwrap_err().is_cancelled());
    }
    good(&world).await;
    assert_eq!((world.keys.fetches(), world.callers().len()), (1, 1));
}

/// The timers of a test on paused time run out whenever nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn on_paused_time_keys_are_fetched_all_the_same() {
    for _ in 0..20 {
        let world = world().await;
        good(&world).await;
        assert_eq!(world.keys.fetches(), 1);
    }
}
