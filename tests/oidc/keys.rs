//! The keys: fetched once for all, kept for their life, asked for again with restraint, and missed when they are gone.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::{AGE, CACHE_CONTROL, LOCATION};
use http::{HeaderValue, StatusCode};
use pushonce::testing::KeyServer;
use serde_json::json;

use crate::world::{Mode, World, seconds};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn world() -> World {
    World::new(Mode::Verify).await
}

/// Status and reason of a push with this token.
async fn pushed(world: &World, token: &str) -> (u16, String) {
    let before = world.refusals().len();
    let answer = world.push(token).await;
    let [line] = &world.refusals()[before..] else { panic!("a reason is logged once in ten seconds") };
    (answer.status, line.field("reason").to_owned())
}

/// A token under a key id that nobody knows.
fn unknown(world: &World, kid: &str) -> String {
    let claims = json!({ "aud": "orders", "exp": world.now() + 60 });
    world.keys.sign(&json!({ "alg": "RS256", "kid": kid }), &claims)
}

async fn good(world: &World) {
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
async fn a_new_key_is_found_and_an_old_one_goes() {
    let world = world().await;
    let old = world.token();
    assert_eq!(world.push(&old).await.status, 200);
    world.keys.rotate();
    world.clock.advance(seconds(30));
    good(&world).await;
    assert_eq!((world.push(&old).await.status, world.keys.fetches()), (200, 2));
    world.keys.retire();
    // As long as the last answer lives, its keys do.
    assert_eq!(world.push(&old).await.status, 200);
    world.clock.advance(HOUR - seconds(1));
    let (old, new) = (world.keys.kid(), world.token());
    assert_eq!(world.push(&new).await.status, 200);
    assert_eq!(world.keys.fetches(), 2, "{old}");
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
async fn without_keys_the_answer_is_503_and_a_dead_server_is_left_alone() {
    let world = world().await;
    world.keys.down();
    let token = world.token();
    let answers = join_all((0..20).map(|_| world.push(&token))).await;
    for answer in &answers {
        assert_eq!((answer.status, answer.header("pushonce-outcome")), (503, "unauthorized"));
        assert_eq!((answer.header("retry-after"), answer.header("www-authenticate")), ("6", ""));
    }
    assert_eq!(world.keys.fetches(), 1);
    world.clock.advance(seconds(4));
    assert_eq!(world.push(&token).await.header("retry-after"), "2");
    assert_eq!(world.keys.fetches(), 1);
    world.clock.advance(seconds(1));
    assert_eq!((world.push(&token).await.status, world.keys.fetches()), (503, 2));
    world.keys.up();
    assert_eq!((world.push(&token).await.status, world.keys.fetches()), (503, 2));
    world.clock.advance(seconds(5));
    good(&world).await;
    assert_eq!((world.keys.fetches(), world.callers().len()), (3, 1));
    assert_eq!(world.trips().creates.made.count, 1);
}

#[tokio::test]
async fn the_last_keys_are_used_while_the_server_is_down() {
    let world = world().await;
    good(&world).await;
    world.keys.down();
    world.clock.advance(HOUR);
    good(&world).await;
    let warned = |world: &World| {
        let lines = world.log.lines().into_iter();
        lines.filter(|line| line.field("message").contains("could not be fetched")).collect::<Vec<_>>()
    };
    let lines = warned(&world);
    assert_eq!((lines.len(), lines[0].field("age_seconds")), (1, "3600"), "{lines:?}");
    assert_eq!(lines[0].level, tracing::Level::WARN);
    // The failure is remembered, and then the server is asked again.
    good(&world).await;
    assert_eq!(world.keys.fetches(), 2);
    world.clock.advance(seconds(5));
    good(&world).await;
    assert_eq!((world.keys.fetches(), warned(&world).len()), (3, 2));
    // A key that they do not have may be a new one: nobody can tell.
    world.keys.rotate();
    assert_eq!(world.push(&world.token()).await.status, 503);
    world.keys.up();
    world.clock.advance(seconds(5));
    good(&world).await;
}

#[tokio::test]
async fn the_last_keys_are_used_for_a_day_beyond_their_life_and_no_longer() {
    let world = world().await;
    good(&world).await;
    world.keys.down();
    world.clock.advance(HOUR + DAY - seconds(1));
    good(&world).await;
    world.clock.advance(seconds(6));
    let token = world.token();
    assert_eq!(world.push(&token).await.status, 503);
    assert_eq!(world.refusals().last().unwrap().field("reason"), "keys-unavailable");
}

#[tokio::test]
async fn keys_that_live_are_used_though_another_could_not_be_found() {
    let world = world().await;
    good(&world).await;
    world.keys.down();
    world.clock.advance(seconds(30));
    assert_eq!(pushed(&world, &unknown(&world, "new")).await, (503, "keys-unavailable".to_owned()));
    good(&world).await;
    assert_eq!(world.keys.fetches(), 2);
}

#[tokio::test]
async fn an_answer_that_is_no_key_set_is_a_failure_and_spoils_nothing() {
    let garbage: Vec<(&str, Box<dyn Fn(&KeyServer)>)> = vec![
        ("500", Box::new(|keys| keys.status(StatusCode::INTERNAL_SERVER_ERROR))),
        ("404", Box::new(|keys| keys.status(StatusCode::NOT_FOUND))),
        ("204", Box::new(|keys| keys.status(StatusCode::NO_CONTENT))),
        ("a redirect", Box::new(redirect)),
        ("a page", Box::new(|keys| keys.body(Some("<html></html>".into())))),
        ("nothing", Box::new(|keys| keys.body(Some(Bytes::new())))),
        ("no keys", Box::new(|keys| keys.body(Some(r#"{"keys":[]}"#.into())))),
        ("another set", Box::new(|keys| keys.body(Some(r#"{"kid1":"-----BEGIN CERTIFICATE-----"}"#.into())))),
        (
            "no RSA key",
            Box::new(|keys| keys.body(Some(r#"{"keys":[{"kid":"1","kty":"oct","k":"AA"}]}"#.into()))),
        ),
        ("too much", Box::new(|keys| keys.body(Some(vec![b' '; 300 * 1024].into())))),
    ];
    for (name, spoil) in garbage {
        let cold = world().await;
        spoil(&cold.keys);
        assert_eq!(pushed(&cold, &cold.token()).await, (503, "keys-unavailable".to_owned()), "{name}");
        let warm = world().await;
        good(&warm).await;
        spoil(&warm.keys);
        warm.clock.advance(HOUR);
        good(&warm).await;
        assert_eq!(warm.keys.fetches(), 2, "{name}");
    }
}

fn redirect(keys: &KeyServer) {
    keys.status(StatusCode::FOUND);
    keys.header(LOCATION, HeaderValue::from_str(&keys.url()).unwrap());
}

/// With paused time nothing else is waited for, so the limit is reached at once.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let world = world().await;
    world.keys.delay(DAY);
    let began = tokio::time::Instant::now();
    assert_eq!(pushed(&world, &world.token()).await, (503, "keys-unavailable".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 5);
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
