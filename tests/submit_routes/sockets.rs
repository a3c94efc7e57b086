//! What only a real connection shows: raw header bytes, repeated headers, a caller that hangs up, a body that is refused before it is sent.

use std::time::Duration;

use pushonce::idempotent::End;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::world::{Fate, World};

const LIMIT: Duration = Duration::from_secs(30);

async fn serve(world: &World) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = world.app.clone();
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

async fn exchange(address: std::net::SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
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
        let answer = exchange(serve(&world).await, &post(lines)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(part), "{answer}");
        assert_eq!(world.messages().len(), usize::from(status == 202), "{answer}");
    }
}

/// The submission runs to its end all the same, and a retry finds its task and no creating-lease.
#[tokio::test]
async fn a_caller_that_hangs_up_leaves_a_whole_task() {
    let world = World::new();
    let address = serve(&world).await;
    world.plan([Fate::Waits]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&post(&[b"idempotency-key: k"])).await.unwrap();
    tokio::time::timeout(LIMIT, world.publisher.waiting.acquire()).await.unwrap().unwrap().forget();
    let creating = exchange(address, &post(&[b"idempotency-key: k"])).await;
    assert!(creating.starts_with("HTTP/1.1 409 "), "{creating}");
    drop(stream);
    world.publisher.gate.add_permits(1);
    // Moved by the worker, the record says so only once the submission has moved it, or sees that it was.
    let published = async {
        while world.messages().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, published).await.expect("it is published although nobody waits");
    let id = world.attributes("task-id")[0].clone().unwrap();
    world.end(&id, End::Completed).await;
    let replay = exchange(address, &post(&[b"idempotency-key: k"])).await;
    assert!(replay.starts_with("HTTP/1.1 200 ") && replay.contains(&id), "{replay}");
    assert_eq!(world.messages().len(), 1);
}

/// A caller that asks first does not send ten megabytes for nothing.
#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_sent() {
    let world = World::new();
    let request =
        b"POST /tasks/charge HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 10000001\r\n\r\n";
    let answer = exchange(serve(&world).await, request).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("BODY_TOO_LARGE"), "{answer}");
}

#[tokio::test]
async fn a_body_in_chunks_and_head_and_a_wrong_method_are_answered_on_one_connection() {
    let world = World::new();
    let address = serve(&world).await;
    let chunked = b"POST /tasks/charge HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"inp\r\n6\r\nut\":1}\r\n0\r\n\r\n";
    let head = b"HEAD /tasks/x HTTP/1.1\r\nhost: h\r\n\r\n";
    let last = b"PUT /tasks/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let all = exchange(address, &[&chunked[..], head, last].concat()).await;
    let statuses: Vec<_> = all.match_indices("HTTP/1.1 ").map(|(at, _)| &all[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["202", "404", "405"], "{all}");
    assert!(all.contains("allow: GET,HEAD,POST"), "{all}");
}
