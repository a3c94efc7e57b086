//! Callers that hang up: the work goes on, and what had not begun does not begin.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::post;
use pushonce::attribute;
use pushonce::store::record::{Ended, State};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::log::Log;
use crate::world::{Runs, World, app, message, push};

/// A service on a real socket, for as long as it lives.
pub(crate) struct Served(std::net::SocketAddr, JoinHandle<()>);

impl Served {
    /// Serves it. The second value is told of each request whose future has ended, also by a hang-up.
    pub(crate) async fn of(app: Router) -> (Self, Arc<Notify>) {
        let ended = Arc::new(Notify::new());
        let tell = ended.clone();
        let app = app.layer(from_fn(move |request: Request, next: Next| {
            let end = End(tell.clone());
            async move {
                let answer = next.run(request).await;
                drop(end);
                answer
            }
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        (Self(at, tokio::spawn(async move { axum::serve(listener, app).await.unwrap() })), ended)
    }

    /// Sends a push and does not wait for its answer.
    pub(crate) async fn send(&self, body: &serde_json::Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.0).await.unwrap();
        let body = json!({ "message": body }).to_string();
        let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    }
}

/// Tells that it was dropped.
struct End(Arc<Notify>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.1.abort();
    }
}

/// Waits for a condition, for as long as any test may take.
pub(crate) async fn until<F: Future<Output = bool>>(mut met: impl FnMut() -> F) {
    let wait = async {
        while !met().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the condition is met");
}

// F48
#[tokio::test]
async fn work_whose_caller_hung_up_is_finished_and_recorded() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, released, counted) = (started.clone(), release.clone(), runs.clone());
    let app = app(
        post(async move || {
            start.notify_one();
            released.notified().await;
            counted.add();
        }),
        world.layer(),
    );
    let (served, ended) = Served::of(app.clone()).await;
    let caller = served.send(&json!({ "messageId": "m" })).await;
    started.notified().await;
    drop(caller);
    // The request's own future is gone, and its work goes on.
    ended.notified().await;
    assert_eq!(push(&app, "m").await.told(), (503, "in-progress"));
    log.outcome();
    release.notify_one();
    until(async || world.stands("m").await == Some((State::Done, Ended::Fresh, 0))).await;
    until(async || !log.outcomes().is_empty()).await;
    assert_eq!(log.outcome().field("event"), "ran");
    assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn work_whose_caller_hung_up_is_released_where_it_fails() {
    let (world, started, release) = (World::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, released) = (started.clone(), release.clone());
    let handler = post(async move || {
        start.notify_one();
        released.notified().await;
        http::StatusCode::BAD_GATEWAY
    });
    let (served, ended) = Served::of(app(handler, world.layer())).await;
    let caller = served.send(&json!({ "messageId": "m" })).await;
    started.notified().await;
    drop(caller);
    ended.notified().await;
    release.notify_one();
    until(async || world.stands("m").await == Some((State::Released, Ended::Failed, 1))).await;
}

#[tokio::test]
async fn a_caller_that_hangs_up_while_it_waits_for_its_entity_never_starts_the_work() {
    let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
    let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (start, released, counted) = (started.clone(), release.clone(), runs.clone());
    let handler = post(async move || {
        if counted.add() == 0 {
            start.notify_one();
            released.notified().await;
        }
    });
    let layer = world.layer().serialize(attribute("po")).serialize_wait(Duration::from_secs(300));
    let app = app(handler, layer);
    let order = |id: &str| json!({ "messageId": id, "attributes": { "po": "1" } });
    let (served, _ended) = Served::of(app.clone()).await;
    let mut first = served.send(&order("m-1")).await;
    started.notified().await;
    let second = served.send(&order("m-2")).await;
    until(async || world.stands("m-2").await.is_some_and(|stands| stands.0 == State::Claimed)).await;
    drop(second);
    // Its claim is undone before the entity is free, so nothing of it is left to start.
    until(async || world.stands("m-2").await == Some((State::Released, Ended::Fresh, 0))).await;
    until(async || !log.outcomes().is_empty()).await;
    assert_eq!(log.outcome().field("event"), "in-progress");
    release.notify_one();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    assert_eq!(runs.count(), 1);
    assert_eq!(message(&app, &order("m-2")).await.told(), (200, "ran"));
}
