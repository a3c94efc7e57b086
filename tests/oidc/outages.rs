//! The key server is down, slow, or talks nonsense.

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderValue, StatusCode};
use pushonce::testing::KeyServer;

use crate::keys::{DAY, HOUR, good, pushed, unknown, world};
use crate::world::{World, seconds};

/// A way to spoil an answer.
type Spoil = fn(&KeyServer);

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
async fn the_last_keys_are_used_until_a_day_after_their_fetch_whatever_their_life_and_no_longer() {
    for life in ["max-age=60", "max-age=3600", "max-age=86399", "max-age=99999999"] {
        let world = world().await;
        world.keys.header(CACHE_CONTROL, HeaderValue::from_static(life));
        good(&world).await;
        world.keys.down();
        world.clock.advance(DAY - seconds(1));
        good(&world).await;
        world.clock.advance(seconds(1));
        assert_eq!(pushed(&world, &world.token()).await, (503, "keys-unavailable".to_owned()), "{life}");
    }
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
    let garbage: [(&str, Spoil); 10] = [
        ("500", |keys| keys.status(StatusCode::INTERNAL_SERVER_ERROR)),
        ("404", |keys| keys.status(StatusCode::NOT_FOUND)),
        ("204", |keys| keys.status(StatusCode::NO_CONTENT)),
        ("a redirect", redirect),
        ("a page", |keys| keys.body(Some("<html></html>".into()))),
        ("nothing", |keys| keys.body(Some(Bytes::new()))),
        ("no keys", |keys| keys.body(Some(r#"{"keys":[]}"#.into()))),
        ("another set", |keys| keys.body(Some(r#"{"kid1":"-----BEGIN CERTIFICATE-----"}"#.into()))),
        ("no RSA key", |keys| keys.body(Some(r#"{"keys":[{"kid":"1","kty":"oct","k":"AA"}]}"#.into()))),
        ("too much", too_much),
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

/// Good keys, and blanks.
fn too_much(keys: &KeyServer) {
    keys.body(Some(format!("{}{}", keys.keys(), " ".repeat(256 * 1024)).into()));
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
