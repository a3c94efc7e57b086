//! Who may push to `orders`, as its environment says: what it refuses to start with, and whom it lets in.

use std::process::Stdio;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use pushonce::testing::{Claims, KeyServer, Push};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use super::{LIMIT, program};

const AUDIENCE: &str = "https://orders.example.run.app";
const CALLER: &str = "pusher@project.iam.gserviceaccount.com";

/// With a store, or nobody would come to look at the rest.
fn stored<'a>(variables: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("PUSHONCE_STORE", "memory:")], variables].concat()
}

async fn refused(variables: &[(&str, &str)], because: &str) {
    super::refused(&stored(variables), because).await;
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let both = [("PUSH_AUDIENCE", AUDIENCE), ("PUSH_SERVICE_ACCOUNT", CALLER)];
    refused(&[("K_SERVICE", "orders")], "`PUSH_AUTH` is not set").await;
    refused(&[("K_SERVICE", "orders"), both[0], both[1]], "`PUSH_AUTH` is not set").await;
    refused(&[("PUSH_AUTH", "Verify"), both[0], both[1]], "`PUSH_AUTH` is \"Verify\"").await;
    refused(&[("PUSH_AUTH", "off")], "`PUSH_AUTH` is \"off\"").await;
    for mode in ["verify", "platform"] {
        let mode = ("PUSH_AUTH", mode);
        refused(&[mode, both[1]], "`PUSH_AUDIENCE`, with `PUSH_AUTH=").await;
        refused(&[mode, both[1], ("PUSH_AUDIENCE", " , ")], "there is no audience").await;
        refused(&[mode, both[0]], "`PUSH_SERVICE_ACCOUNT`, with `PUSH_AUTH=").await;
        refused(&[mode, both[0], ("PUSH_SERVICE_ACCOUNT", "pusher")], "\"pusher\" is no e-mail").await;
    }
    for url in ["http://keys.example.com/", "https://u:pa55w0rd@keys.example.com/"] {
        refused(&[("PUSH_AUTH", "verify"), both[0], both[1], ("PUSH_KEYS_URL", url)], "`PUSH_KEYS_URL`")
            .await;
    }
}

/// Started, and listening there.
struct Running(Child, String);

impl Running {
    async fn with(variables: &[(&str, &str)]) -> Self {
        let mut child =
            program("orders", &stored(variables)).stdout(Stdio::piped()).spawn().expect("it starts");
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
        Self(child, format!("http://127.0.0.1:{port}"))
    }

    async fn ask(&self, request: Request<Bytes>) -> (u16, String) {
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("{}{}", self.1, parts.uri.path()).parse().unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let answer = client.request(Request::from_parts(parts, Full::new(body)));
        let answer = tokio::time::timeout(LIMIT, answer).await.expect("an answer").unwrap();
        let outcome = answer.headers().get("pushonce-outcome");
        let outcome = outcome.map_or("", |name| name.to_str().unwrap()).to_owned();
        (answer.status().as_u16(), outcome)
    }

    /// Pushes a message with this token to each route that is pushed to, and gives the one answer of all.
    async fn push(&self, token: Option<&str>) -> (u16, String) {
        let mut answers = Vec::new();
        for path in ["/", "/orders", "/status"] {
            let mut push = Push::bytes("hello").attribute("po_id", path).path(path);
            if let Some(token) = token {
                push = push.header("authorization", &format!("Bearer {token}"));
            }
            answers.push(self.ask(push.request()).await);
        }
        answers.dedup();
        let [answer] = &answers[..] else { panic!("the routes differ: {answers:?}") };
        answer.clone()
    }

    async fn healthy(&self) -> bool {
        self.ask(Request::get("/healthz").body(Bytes::new()).unwrap()).await.0 == 200
    }

    async fn stop(mut self) {
        self.0.kill().await.unwrap();
    }
}

fn told(status: u16, outcome: &str) -> (u16, String) {
    (status, outcome.to_owned())
}

#[tokio::test]
async fn verify_lets_in_the_expected_caller_on_every_route_and_nobody_else() {
    let keys = KeyServer::start().await;
    let url = keys.url();
    let variables = [
        ("K_SERVICE", "orders"),
        ("PUSH_AUTH", "verify"),
        ("PUSH_AUDIENCE", "orders, https://orders.example.run.app"),
        ("PUSH_SERVICE_ACCOUNT", CALLER),
        ("PUSH_KEYS_URL", url.as_str()),
    ];
    let service = Running::with(&variables).await;
    let good = Claims::new(AUDIENCE, CALLER);
    assert_eq!(service.push(None).await, told(401, "unauthorized"));
    assert_eq!(service.push(Some(&keys.stripped(&good))).await, told(401, "unauthorized"));
    assert_eq!(
        service.push(Some(&keys.token(&Claims::new(AUDIENCE, "x@example.com")))).await,
        told(403, "unauthorized")
    );
    assert_eq!(service.push(Some(&keys.token(&good))).await, told(200, "ran"));
    assert!(service.healthy().await);
    assert_eq!(keys.fetches(), 1);
    service.stop().await;
}

#[tokio::test]
async fn platform_lets_in_what_cloud_run_has_checked() {
    let variables =
        [("PUSH_AUTH", "platform"), ("PUSH_AUDIENCE", AUDIENCE), ("PUSH_SERVICE_ACCOUNT", CALLER)];
    let (service, keys) = (Running::with(&variables).await, KeyServer::start().await);
    let good = Claims::new(AUDIENCE, CALLER);
    assert_eq!(service.push(Some(&keys.token(&good))).await, told(401, "unauthorized"));
    assert_eq!(service.push(Some(&keys.stripped(&good))).await, told(200, "ran"));
    assert!(service.healthy().await);
    service.stop().await;
}

#[tokio::test]
async fn what_switches_off_the_guard_does_not_open_the_door() {
    let variables = [
        ("PUSHONCE_DISABLED", "1"),
        ("PUSH_AUTH", "platform"),
        ("PUSH_AUDIENCE", AUDIENCE),
        ("PUSH_SERVICE_ACCOUNT", CALLER),
    ];
    let service = Running::with(&variables).await;
    assert_eq!(service.push(None).await, told(401, "unauthorized"));
    service.stop().await;
}

#[tokio::test]
async fn none_lets_in_everybody_and_must_be_said_on_cloud_run() {
    for variables in [&[][..], &[("PUSH_AUTH", "none")], &[("PUSH_AUTH", "none"), ("K_SERVICE", "orders")]] {
        let service = Running::with(variables).await;
        assert_eq!(service.push(None).await, told(200, "ran"), "{variables:?}");
        service.stop().await;
    }
}
