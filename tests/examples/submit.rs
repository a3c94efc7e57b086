//! `submit` as a program: a task from its submission to its end, over real sockets.

use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use super::{LIMIT, ended, program};

/// Started, and listening there.
struct Running {
    address: String,
    _child: Child,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    json: Value,
}

impl Answer {
    fn text(&self, member: &str) -> &str {
        self.json[member].as_str().unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Running {
    async fn start() -> Self {
        let mut child = program("submit", &[]).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut log = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let listening = async {
            while let Some(line) = log.next_line().await.expect("a log of text") {
                if line.contains("listening") {
                    let port = line.rsplit_once("0.0.0.0:").expect("an address").1;
                    return port.chars().take_while(char::is_ascii_digit).collect::<String>();
                }
            }
            panic!("it ended")
        };
        let port = tokio::time::timeout(LIMIT, listening).await.expect("it says that it listens");
        // What it logs later must go somewhere.
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        Self { address: format!("http://127.0.0.1:{port}"), _child: child }
    }

    async fn ask(&self, method: Method, path: &str, body: &str) -> Answer {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.address));
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let answered = async {
            let (parts, body) = client.request(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let json = serde_json::from_slice(&body).unwrap_or_default();
            Answer { status: parts.status.as_u16(), headers: parts.headers, json }
        };
        tokio::time::timeout(LIMIT, answered).await.expect("an answer")
    }

    async fn submit(&self, task_type: &str, input: &str, key: &str) -> Answer {
        let body = format!(r#"{{"task_type":"{task_type}","input":{input},"idempotency_key":"{key}"}}"#);
        self.ask(Method::POST, "/queues/any/tasks", &body).await
    }

    /// The task, once it has come to that state.
    async fn until(&self, path: &str, state: &str) -> Answer {
        let come = async {
            loop {
                let answer = self.ask(Method::GET, path, "").await;
                if answer.text("state") == state {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, come).await.unwrap_or_else(|_| panic!("{path} is not {state}"))
    }
}

#[tokio::test]
async fn a_task_is_submitted_once_and_worked_on_once() {
    let service = Running::start().await;
    assert_eq!(service.ask(Method::GET, "/healthz", "").await.status, 200);
    // Long enough for the next two to meet it at work.
    let input = r#"{"order": 7, "work_ms": 3000}"#;
    let first = service.submit("charge", input, "k").await;
    assert_eq!((first.status, first.text("state")), (202, "processing"), "{first:?}");
    let running = service.submit("charge", input, "k").await;
    assert_eq!((running.status, running.text("code")), (409, "IDEMPOTENCY_IN_PROGRESS"), "{running:?}");
    assert_eq!(running.text("task_id"), first.text("task_id"));
    assert_ne!(running.header("retry-after"), "");
    let other = service.submit("charge", r#"{"order": 8}"#, "k").await;
    assert_eq!((other.status, other.text("code")), (422, "IDEMPOTENCY_CONFLICT"), "{other:?}");

    let done = service.until(first.header("location"), "completed").await;
    let replay = service.submit("charge", input, "k").await;
    assert_eq!((replay.status, &replay.json["duplicate"]), (200, &true.into()), "{replay:?}");
    assert_eq!(replay.header("idempotent-replayed"), "true");
    assert_eq!(replay.text("task_id"), done.text("task_id"));
    assert_eq!(replay.text("updated_at"), done.text("updated_at"));
    let late = service.ask(Method::POST, &format!("{}/cancel", first.header("location")), "").await;
    assert_eq!((late.status, late.text("code")), (409, "TASK_OVER"), "{late:?}");
}

#[tokio::test]
async fn a_task_can_be_cancelled_fail_for_a_while_or_for_good() {
    let service = Running::start().await;
    let tasks = ["charge", "flaky", "poison"].map(|task_type| async {
        // Cancelled work that has begun goes on: this one is not through before the test is.
        let input = if *task_type == *"charge" { r#"{"work_ms": 60000}"# } else { "{}" };
        service.submit(task_type, input, task_type).await
    });
    let [slow, flaky, poison] = futures_util::future::join_all(tasks).await.try_into().unwrap();
    for submitted in [&slow, &flaky, &poison] {
        assert_eq!(submitted.status, 202, "{submitted:?}");
    }
    let cancelled = service.ask(Method::POST, &format!("{}/cancel", slow.header("location")), "").await;
    assert_eq!((cancelled.status, cancelled.text("why")), (200, "cancelled"), "{cancelled:?}");
    let replay = service.submit("charge", r#"{"work_ms": 60000}"#, "charge").await;
    assert_eq!((replay.status, replay.text("why")), (200, "cancelled"), "{replay:?}");

    service.until(flaky.header("location"), "completed").await;
    let failed = service.until(poison.header("location"), "failed").await;
    assert_eq!(failed.text("why"), "dead-lettered", "{failed:?}");
    let replay = service.submit("poison", "{}", "poison").await;
    assert_eq!((replay.status, replay.text("why")), (200, "dead-lettered"), "{replay:?}");
}

#[tokio::test]
async fn a_store_that_is_none_is_refused() {
    let output = ended(program("submit", &[("PUSHONCE_STORE", "somewhere")])).await;
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.starts_with("submit: not started: `PUSHONCE_STORE`: "), "{line}");
}
