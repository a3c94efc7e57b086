//! What only a real connection shows: raw header bytes, repeated headers, a caller that hangs up, a body that is refused before it is sent.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use pushonce::idempotent::End;
use pushonce::store::chaos::{Fault, On};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::world::{Fate, World};

const LIMIT: Duration = Duration::from_secs(30);

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("it comes to that")
}

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// A POST of `{"input":1}` with these lines in its head.
fn post(lines: &[&[u8]]) -> Vec<u8> {
    let mut request = b"POST /tasks/charge HTTP/1.1\r\nhost: h\r\nconnection: close\r\n".to_vec();
    for line in lines {
        request.extend_from_slice(line);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"content-length: 11\r\n\r\n{\"input\":1}");
    request
}

async fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

/// F95, as it was measured: an empty header is present, two come as two, UTF-8 arrives.
#[tokio::test]
async fn a_key_header_on_the_wire_is_read_as_it_was_sent() {
    for (lines, status, part) in [
        (&[&b"Idempotency-Key: abc"[..]][..], 202, "\"idempotency_key\":\"abc\""),
        (&[b"IDEMPOTENCY-KEY:\"abc\""], 202, "\"idempotency_key\":\"abc\""),
        (
            &[b"idempotency-key: abc", b"x: y", b"Idempotency-Key: \"abc\""],
            202,
            "\"idempotency_key\":\"abc\"",
        ),
        (&[b"Idempotency-Key:"], 400, "IDEMPOTENCY_KEY_INVALID"),
        (&[b"Idempotency-Key:    "], 400, "IDEMPOTENCY_KEY_INVALID"),
        (&["Idempotency-Key: clé".as_bytes()], 400, "IDEMPOTENCY_KEY_INVALID"),
        (&[b"Idempotency-Key: a", b"Idempotency-Key: b"], 400, "IDEMPOTENCY_KEY_INVALID"),
        (&[b"Idempotency-Key: a", b"Idempotency-Key:"], 400, "IDEMPOTENCY_KEY_INVALID"),
    ] {
        let world = World::new();
        let answer = exchange(serve(world.app.clone()).await, &post(lines)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(part), "{answer}");
        assert_eq!(world.messages().len(), usize::from(status == 202), "{answer}");
    }
}

/// Lets one more go when a request is answered, or dropped because its caller is gone.
struct Ends(Arc<Semaphore>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// Those routes, and a permit for each request that came to its end.
fn watched(app: Router) -> (Router, Arc<Semaphore>) {
    let ended = Arc::new(Semaphore::new(0));
    let ends = ended.clone();
    let app = app.layer(from_fn(move |request: Request, next: Next| {
        let ends = Ends(ends.clone());
        async move {
            let _ends = ends;
            next.run(request).await
        }
    }));
    (app, ended)
}

/// The submission runs to its end all the same, and a retry finds its task and no creating-lease.
#[tokio::test]
async fn a_caller_that_hangs_up_leaves_a_whole_task() {
    let world = World::new();
    let (app, ended) = watched(world.app.clone());
    let address = serve(app).await;
    world.plan([Fate::Waits]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&post(&[b"idempotency-key: k"])).await.unwrap();
    within(world.publisher.waiting.acquire()).await.unwrap().forget();
    drop(stream);
    // Its request is dropped in the middle of the publish.
    within(ended.acquire()).await.unwrap().forget();
    let creating = exchange(address, &post(&[b"idempotency-key: k"])).await;
    assert!(creating.starts_with("HTTP/1.1 409 "), "{creating}");
    world.publisher.gate.add_permits(1);
    within(async {
        while world.messages().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let id = world.attributes("task-id")[0].clone().unwrap();
    world.end(&id, End::Completed).await;
    let replay = exchange(address, &post(&[b"idempotency-key: k"])).await;
    assert!(replay.starts_with("HTTP/1.1 200 ") && replay.contains(&id), "{replay}");
    assert_eq!(world.messages().len(), 1);
}

/// Half a cancellation would be a task that is over under a key that is not.
#[tokio::test]
async fn a_caller_that_hangs_up_has_cancelled_all_the_same() {
    let world = World::new();
    let (app, ended) = watched(world.app.clone());
    let address = serve(app).await;
    let id = world.keyed("k").await.id();
    world.chaos.next(On::Swap, Fault::Stall(Duration::from_millis(300)));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let cancel = format!("POST /tasks/{id}/cancel HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n");
    let before = world.chaos.trips().swaps;
    stream.write_all(cancel.as_bytes()).await.unwrap();
    within(async {
        while world.chaos.trips().swaps == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(stream);
    within(ended.acquire()).await.unwrap().forget();
    // The task's record, and then its key's.
    within(async {
        while world.chaos.trips().swaps < before + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(world.get(&format!("/tasks/{id}")).await.text("why"), "cancelled");
}

/// A caller that asks first does not send ten megabytes for nothing.
#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_sent() {
    let world = World::new();
    let request =
        b"POST /tasks/charge HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 10000001\r\n\r\n";
    let answer = exchange(serve(world.app.clone()).await, request).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("BODY_TOO_LARGE"), "{answer}");
}

#[tokio::test]
async fn a_body_in_chunks_and_head_and_a_wrong_method_are_answered_on_one_connection() {
    let world = World::new();
    let address = serve(world.app.clone()).await;
    let chunked = b"POST /tasks/charge HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"inp\r\n6\r\nut\":1}\r\n0\r\n\r\n";
    let head = b"HEAD /tasks/x HTTP/1.1\r\nhost: h\r\n\r\n";
    let last = b"PUT /tasks/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let all = exchange(address, &[&chunked[..], head, last].concat()).await;
    let statuses: Vec<_> = all.match_indices("HTTP/1.1 ").map(|(at, _)| &all[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["202", "404", "405"], "{all}");
    assert!(all.contains("allow: GET,HEAD,POST"), "{all}");
}
