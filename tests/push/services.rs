//! The layer as a plain tower layer: readiness, methods, and what is refused when it is built.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use pushonce::{IdempotentLayer, RunError, Skip, attribute, json_pointer};
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer as _, Service, ServiceExt as _};

use crate::world::{Runs, World, app, push, send};

type Answered = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

/// A service that must be polled ready before each call, and clones of which are not ready.
#[derive(Debug, Default)]
struct Strict {
    ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self { ready: false }
    }
}

impl Service<Request<Full<Bytes>>> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Answered {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(Response::default())
        })
    }
}

fn request(id: usize) -> Request<Full<Bytes>> {
    let body = format!(r#"{{"message":{{"messageId":"{id}"}}}}"#);
    Request::post("/").body(Full::from(body)).unwrap()
}

/// Sends fifty pushes at once and expects each to run.
async fn fifty<S>(layer: IdempotentLayer, inner: S)
where
    S: Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>> + Clone + Send + 'static,
    S::Error: Into<tower::BoxError> + std::fmt::Debug + Send,
    S::Future: Send,
{
    let service = layer.layer(inner);
    let calls = (0..50).map(|id| tokio::spawn(service.clone().oneshot(request(id))));
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["pushonce-outcome"]),
            (200, &"ran".parse().unwrap())
        );
    }
}

// F51
#[tokio::test(start_paused = true)]
async fn the_instance_that_was_ready_is_the_one_that_is_called() {
    fifty(World::new().layer(), Strict::default()).await;
    fifty(World::new().layer(), ConcurrencyLimit::new(Strict::default(), 1)).await;
    fifty(World::new().layer(), Buffer::new(Strict::default(), 4)).await;
    fifty(World::new().layer(), Buffer::new(ConcurrencyLimit::new(Strict::default(), 1), 4)).await;
}

// F51
#[tokio::test]
async fn an_inner_service_that_is_not_ready_holds_the_layer_back() {
    let limited = ConcurrencyLimit::new(Strict::default(), 1);
    let mut first = World::new().layer().layer(limited.clone());
    let mut second = World::new().layer().layer(limited);
    first.ready().await.unwrap();
    assert!(futures_util::poll!(second.ready()).is_pending());
    // A push that is refused gives its place back.
    let refused = first.call(Request::post("/").body(Full::from("[]")).unwrap()).await.unwrap();
    assert_eq!(refused.status(), 400);
    drop(first);
    second.ready().await.unwrap();
}

#[tokio::test]
async fn a_service_that_returns_an_error_fails_and_in_progress_is_found_in_it() {
    type Boxed = tower::BoxError;
    let answer = async |error: fn() -> Boxed| {
        let inner =
            tower::service_fn(move |_: Request<Full<Bytes>>| ready(Err::<Response<Full<Bytes>>, _>(error())));
        let answer = World::new().layer().layer(inner).oneshot(request(1)).await.unwrap();
        (answer.status().as_u16(), answer.headers()["pushonce-outcome"].to_str().unwrap().to_owned())
    };
    assert_eq!(answer(|| "no".into()).await, (500, "failed".to_owned()));
    let held = || RunError::Skipped(Skip::InProgress { left: Duration::from_secs(1) }).into();
    assert_eq!(answer(held).await, (503, "in-progress".to_owned()));
    let done = || RunError::Skipped(Skip::Duplicate { receipt: None, conflict: false }).into();
    assert_eq!(answer(done).await, (500, "failed".to_owned()));
}

#[tokio::test]
async fn what_is_not_a_post_passes_through_untouched() {
    let (world, runs) = (World::new(), Runs::default());
    let (counted, posts) = (runs.clone(), runs.answering(&[200]));
    let handler = get(async move |body: String| {
        counted.add();
        (http::StatusCode::PARTIAL_CONTENT, body)
    });
    let app = Router::new().route("/", posts.merge(handler).layer(world.layer()));
    for _ in 0..2 {
        let answer = send(&app, Request::get("/").body("as it is".into()).unwrap()).await;
        assert_eq!((answer.told(), &answer.body[..]), ((206, ""), &b"as it is"[..]));
    }
    assert_eq!(send(&app, Request::put("/").body("".into()).unwrap()).await.told(), (405, ""));
    assert_eq!((runs.count(), world.memory.len()), (2, 0));
}

#[tokio::test]
async fn the_layer_may_wrap_a_whole_router() {
    let world = World::new();
    let app = Router::new().route("/", Runs::default().answering(&[200])).layer(world.layer());
    assert_eq!(push(&app, "m").await.told(), (200, "ran"));
    assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
}

#[test]
fn a_layer_that_cannot_work_is_refused_when_it_is_built() {
    let world = World::new();
    let zero = Duration::ZERO;
    let bad = [
        IdempotentLayer::new("", world.store.clone()),
        IdempotentLayer::new("pushonce-serialize", world.store.clone()),
        world.layer().lease(zero),
        world.layer().ttl(Duration::MAX),
        world.layer().serialize(attribute("po")).serialize_wait(Duration::MAX),
        world.layer().work_timeout(zero),
        world.layer().renew().max_hold(zero),
        world.layer().key(attribute(" ")),
        world.layer().key(json_pointer("no-slash")),
        world.layer().serialize(attribute("po").scope("")),
        world.layer().body_limit(0),
        world.layer().body_budget(1024),
        world.layer().body_timeout(zero),
    ];
    for layer in bad {
        let error = layer.check().expect_err("it cannot work").to_string();
        assert!(error.len() > 20, "{error}");
        let built = std::panic::catch_unwind(AssertUnwindSafe(|| {
            app(Runs::default().answering(&[200]), layer.clone())
        }));
        assert!(built.is_err(), "{error}");
    }
    world.layer().check().unwrap();
}
