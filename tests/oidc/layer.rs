//! The layer as a layer: what it cannot be built from, what clones share, and that it lets no method by.

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Method, Request};
use pushonce::oidc::{InvalidPushAuth, PushAuthLayer};
use pushonce::testing::{Claims, KeyServer};
use tower::ServiceExt as _;

use crate::world::{AUDIENCE, CALLER, Mode, World, seconds};

fn invalid(audiences: &[&str], callers: &[&str]) -> [InvalidPushAuth; 2] {
    let layers = [
        PushAuthLayer::verify(audiences.iter().copied(), callers.iter().copied()),
        PushAuthLayer::platform(audiences.iter().copied(), callers.iter().copied()),
    ];
    layers.map(|layer| {
        let error = layer.check().unwrap_err();
        let router = AssertUnwindSafe(|| Router::<()>::new().route("/", any(|| async {})).layer(layer));
        let panic = std::panic::catch_unwind(router).unwrap_err();
        let said = panic.downcast_ref::<String>().unwrap();
        assert_eq!(*said, format!("this PushAuthLayer cannot work: {error}"));
        error
    })
}

// F31, F33
#[test]
fn there_is_no_layer_without_audience_and_caller() {
    let both = |error: InvalidPushAuth| [error.clone(), error];
    assert_eq!(invalid(&[], &[CALLER]), both(InvalidPushAuth::NoAudience));
    assert_eq!(invalid(&[AUDIENCE], &[]), both(InvalidPushAuth::NoCaller));
    assert_eq!(invalid(&[], &[]), both(InvalidPushAuth::NoAudience));
    for audience in ["", " ", " https://a.example.com", "https://a.example.com\n"] {
        let expected = InvalidPushAuth::Audience { value: audience.to_owned() };
        assert_eq!(invalid(&[AUDIENCE, audience], &[CALLER]), both(expected));
    }
    for caller in ["", "pusher", "@example.com", "pusher@", "a@b, c@d", " pusher@example.com", "*"] {
        let expected = InvalidPushAuth::Caller { value: caller.to_owned() };
        assert_eq!(invalid(&[AUDIENCE], &[CALLER, caller]), both(expected));
    }
}

#[test]
fn keys_come_by_tls_or_from_this_machine() {
    for url in ["http://keys.example.com/", "keys", "https://u:pa55w0rd@keys.example.com/"] {
        let layer = PushAuthLayer::verify([AUDIENCE], [CALLER]).keys_url(url);
        let error = layer.check().unwrap_err();
        assert_eq!(error, InvalidPushAuth::KeysUrl);
        assert!(!error.to_string().contains("pa55w0rd") && !format!("{layer:?}").contains("pa55w0rd"));
        // Mended by the next setting, and of no interest where no key is needed.
        layer.keys_url("https://keys.example.com/").check().unwrap();
        PushAuthLayer::platform([AUDIENCE], [CALLER]).keys_url(url).check().unwrap();
    }
}

#[tokio::test]
async fn every_method_is_checked() {
    let keys = KeyServer::start().await;
    let auth = PushAuthLayer::verify([AUDIENCE], [CALLER]).keys_url(keys.url());
    let app: Router = Router::new().route("/", any(|| async { "in" }).layer(auth));
    let token = format!("Bearer {}", keys.token(&Claims::new(AUDIENCE, CALLER)));
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PURGE"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = || Request::builder().method(method.clone()).uri("/");
        let answer = app.clone().oneshot(request().body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 401, "{method}");
        let with = request().header("authorization", &token).body(Body::empty()).unwrap();
        assert_eq!(app.clone().oneshot(with).await.unwrap().status(), 200, "{method}");
    }
}

#[tokio::test]
async fn clones_share_their_keys() {
    let world = World::new(Mode::Verify).await;
    let handler = || async { "in" };
    let app: Router = Router::new()
        .route("/a", any(handler).layer(world.auth.clone()))
        .route("/b", any(handler).layer(world.auth.clone()));
    assert_eq!(world.push(&world.token()).await.status, 200);
    for path in ["/a", "/b"] {
        let request = Request::get(path).header("authorization", format!("Bearer {}", world.token()));
        let answer = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(world.keys.fetches(), 1);
}

#[tokio::test]
async fn a_token_is_judged_by_the_time_of_each_request() {
    let world = World::new(Mode::Verify).await;
    let token = world.token();
    for (after, status) in [(0, 200), (3600 + 29, 200), (1, 401)] {
        world.clock.advance(seconds(after));
        assert_eq!(world.push(&token).await.status, status);
    }
    // A wall clock that is set back does not make it good before it was issued.
    world.clock.behind(seconds(2 * 3600));
    assert_eq!(world.push(&token).await.status, 401);
}

/// The inner service is polled ready once for each call, and never called for a refused request.
#[tokio::test]
async fn a_refused_request_gives_its_place_back() {
    let world = World::new(Mode::Verify).await;
    let inner = tower::service_fn(|_: Request<Body>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty()))
    });
    let limited = tower::limit::ConcurrencyLimit::new(inner, 1);
    let service = tower::Layer::layer(&world.auth, limited);
    for (token, status) in
        [("x".to_owned(), 401), (world.token(), 200), ("y".to_owned(), 401), (world.token(), 200)]
    {
        let request =
            Request::post("/").header("authorization", format!("Bearer {token}")).body(Body::empty());
        let answer = tokio::time::timeout(seconds(60), service.clone().oneshot(request.unwrap()));
        assert_eq!(answer.await.expect("a place").unwrap().status(), status);
    }
}
