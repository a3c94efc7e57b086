//! The examples as programs: what `orders` refuses at its start, and that the demo keeps its promises.

#[cfg(all(feature = "oidc", feature = "testing"))]
#[path = "examples/auth.rs"]
mod auth;
#[path = "support/example.rs"]
mod example;
#[cfg(feature = "submit")]
#[path = "examples/submit.rs"]
mod submit;

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

/// No start, and no demo, takes longer: a program that hangs fails its test.
const LIMIT: Duration = Duration::from_secs(60);

/// An example with these variables, and none of those that it reads from ours.
fn program(name: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(example::example(name));
    for read in [
        "PUSHONCE_STORE",
        "PUSHONCE_DISABLED",
        "PUSHONCE_TOPIC",
        "PUSHONCE_DEAD_LETTER_TOPIC",
        "K_SERVICE",
        "LEASE_SECONDS",
        "TTL_SECONDS",
        "REQUEST_TIMEOUT_SECONDS",
        "ACK_DEADLINE_SECONDS",
        "MIN_BACKOFF_SECONDS",
        "MAX_BACKOFF_SECONDS",
        "MAX_DELIVERY_ATTEMPTS",
        "RETENTION_SECONDS",
        "PUSHONCE_SIZING",
        "SUPPLIER_URL",
        "PUSHONCE_METRICS",
        "PORT",
        "PUSH_AUTH",
        "PUSH_AUDIENCE",
        "PUSH_SERVICE_ACCOUNT",
        "PUSH_KEYS_URL",
        "RUST_LOG",
    ] {
        command.env_remove(read);
    }
    // A start that should have been refused must not meet a port that is taken.
    command.env("PORT", "0").envs(variables.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn ended(mut command: Command) -> Output {
    let output = tokio::time::timeout(LIMIT, command.output()).await;
    output.unwrap_or_else(|_| panic!("{command:?} still runs after {LIMIT:?}")).expect("it runs")
}

/// Each is refused with code 1 and one line, which names what is wrong and repeats no secret.
async fn refused(variables: &[(&str, &str)], because: &str) {
    let output = ended(program("orders", variables)).await;
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{variables:?}: {line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{variables:?}: {line}");
    assert!(line.starts_with("orders: not started: ") && line.contains(because), "{variables:?}: {line}");
    let all = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&all).contains("pa55w0rd"), "{variables:?} told a secret");
}

#[tokio::test]
async fn orders_refuses_a_store_that_is_none() {
    refused(&[("PUSHONCE_STORE", "mongodb://u:pa55w0rd@h/d")], "`mongodb` names no store").await;
    refused(&[("PUSHONCE_STORE", "somewhere")], "`PUSHONCE_STORE`: the address has no scheme").await;
    refused(&[("PUSHONCE_STORE", "memory:x")], "takes nothing after its colon").await;
    let without =
        if cfg!(feature = "datastore") { "the project is blank" } else { "the feature `datastore`" };
    refused(&[("PUSHONCE_STORE", "datastore://")], without).await;
}

#[tokio::test]
async fn orders_refuses_its_own_memory_on_cloud_run() {
    refused(&[("K_SERVICE", "orders")], "`PUSHONCE_STORE` is not set").await;
    refused(&[("K_SERVICE", "orders"), ("PUSHONCE_STORE", " ")], "`PUSHONCE_STORE` is not set").await;
}

#[tokio::test]
async fn orders_refuses_a_number_that_is_none() {
    for bad in ["ten", "1.5", "-1", "15m"] {
        refused(&[("LEASE_SECONDS", bad)], "`LEASE_SECONDS` is").await;
    }
    for name in ["LEASE_SECONDS", "RETENTION_SECONDS", "MAX_DELIVERY_ATTEMPTS"] {
        refused(&[(name, "0")], &format!("`{name}` is \"0\": expected ")).await;
    }
    refused(&[("TTL_SECONDS", "99999999999999")], "`ttl` is").await;
    for bad in ["http", "65536", "-1"] {
        refused(&[("PORT", bad)], "`PORT` is").await;
    }
}

#[tokio::test]
async fn orders_refuses_to_run_unguarded_on_cloud_run() {
    let service = [("K_SERVICE", "orders"), ("PUSHONCE_STORE", "memory:"), ("PUSHONCE_DISABLED", "1")];
    refused(&service, "`PUSHONCE_DISABLED` is set where `K_SERVICE` is").await;
    refused(&[("PUSHONCE_DISABLED", "maybe")], "`PUSHONCE_DISABLED` is \"maybe\"").await;
}

// What the feature can check is in the module `auth`; without it there is nothing that could.
#[cfg(not(feature = "oidc"))]
#[tokio::test]
async fn orders_refuses_to_check_tokens_that_it_cannot_check() {
    for mode in ["verify", "platform"] {
        refused(&[("PUSH_AUTH", mode)], "needs the feature `oidc`").await;
    }
}

#[tokio::test]
async fn orders_refuses_a_supplier_that_it_cannot_speak_to() {
    for bad in ["https://u:pa55w0rd@supplier/", "supplier", "ftp://supplier"] {
        refused(&[("SUPPLIER_URL", bad)], "`SUPPLIER_URL` is no URL").await;
    }
}

#[tokio::test]
async fn orders_refuses_metrics_that_it_cannot_serve() {
    refused(&[("PUSHONCE_METRICS", "statsd")], "`PUSHONCE_METRICS` is \"statsd\": expected `prometheus`")
        .await;
    if !cfg!(feature = "prometheus") {
        refused(&[("PUSHONCE_METRICS", "prometheus")], "switch on the feature `prometheus`").await;
    }
}

/// What `orders` with these variables answers to a push and then to a GET of `/metrics`.
#[cfg(feature = "prometheus")]
async fn scraped(variables: &[(&str, &str)]) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut child = program("orders", variables).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut log = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let listening = async {
        loop {
            let line = log.next_line().await.expect("a log of text").expect("it listens before it ends");
            // Whatever colours and fields the log has: the address ends the line.
            if let Some((_, port)) = line.rsplit_once("0.0.0.0:").filter(|_| line.contains("listening")) {
                return port.chars().take_while(char::is_ascii_digit).collect::<String>();
            }
        }
    };
    let port: u16 =
        tokio::time::timeout(LIMIT, listening).await.expect("it listens").parse().expect("a port");
    let body = r#"{"message":{"messageId":"m-1"},"subscription":"s"}"#;
    let push = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let scrape = "GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".to_owned();
    let mut answers = String::new();
    for request in [push, scrape] {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let answered = tokio::time::timeout(LIMIT, stream.read_to_string(&mut answers)).await;
        answered.expect("in time").expect("text");
    }
    child.kill().await.expect("it runs");
    answers
}

#[cfg(feature = "prometheus")]
#[tokio::test]
async fn orders_serves_its_metrics_where_it_is_told_to_and_nowhere_else() {
    let on = scraped(&[("PUSHONCE_METRICS", "prometheus")]).await;
    for line in [
        "pushonce-outcome: ran",
        "content-type: text/plain; version=0.0.4",
        "pushonce_deliveries_total{consumer=\"messages\",outcome=\"ran\"} 1",
        "pushonce_deliveries_total{consumer=\"orders\",outcome=\"uncertain\"} 0",
        "pushonce_store_trips_total{operation=\"create\",result=\"made\"} 1",
    ] {
        assert!(on.contains(line), "{line} is not in {on}");
    }
    let off = scraped(&[]).await;
    assert!(off.contains("HTTP/1.1 404") && !off.contains("pushonce_deliveries"), "{off}");
}

#[tokio::test]
async fn orders_refuses_times_that_do_not_fit_together() {
    let wrong = [("LEASE_SECONDS", "300"), ("MAX_DELIVERY_ATTEMPTS", "7"), ("TTL_SECONDS", "3600")];
    for finding in [
        "lease: lease is 300 s: expected more than request_timeout, 570 s",
        "attempts: max_delivery_attempts is 7: expected at least 8",
        "(a warning) ttl: ttl is 3600 s",
    ] {
        refused(&wrong, finding).await;
    }
    for bad in ["off", "error", "1"] {
        refused(&[("PUSHONCE_SIZING", bad)], "`PUSHONCE_SIZING` is").await;
        refused(&[wrong[0], ("PUSHONCE_SIZING", bad)], "expected `warn` or nothing").await;
    }
    // A switch for the rules is none for what cannot be read.
    refused(&[("PUSHONCE_SIZING", "warn"), ("ACK_DEADLINE_SECONDS", "10s")], "`ACK_DEADLINE_SECONDS` is")
        .await;
}

#[tokio::test]
async fn orders_starts_with_times_that_do_not_fit_where_it_is_told_to_and_warns_of_each() {
    let wrong = [("LEASE_SECONDS", "3"), ("TTL_SECONDS", "600"), ("PUSHONCE_SIZING", "warn")];
    let log = until_it_listens(&wrong).await;
    for finding in ["lease is 3 s", "lease + ttl is 603 s", "ttl is 600 s"] {
        let lines = log.iter().filter(|line| line.contains("WARN") && line.contains(finding));
        assert_eq!(lines.count(), 1, "{finding}: {log:#?}");
    }
}

#[tokio::test]
async fn orders_starts_where_nothing_is_wrong() {
    // On Cloud Run a door that is not checked is something wrong.
    let door = if cfg!(feature = "oidc") {
        &[
            ("K_SERVICE", "orders"),
            ("PUSH_AUTH", "platform"),
            ("PUSH_AUDIENCE", "https://orders.example.run.app"),
            ("PUSH_SERVICE_ACCOUNT", "pusher@project.iam.gserviceaccount.com"),
        ][..]
    } else {
        &[("PUSH_AUTH", "none")]
    };
    let service = [
        ("PUSHONCE_STORE", "memory:"),
        ("PUSHONCE_DISABLED", "off"),
        ("LEASE_SECONDS", "900"),
        ("TTL_SECONDS", ""),
        ("MAX_DELIVERY_ATTEMPTS", "10"),
        ("SUPPLIER_URL", "http://supplier:8080/orders"),
    ];
    let log = until_it_listens(&[door, &service].concat()).await;
    assert!(!log.iter().any(|line| line.contains("WARN")), "{log:#?}");
}

#[tokio::test]
async fn orders_warns_on_cloud_run_of_a_door_that_is_not_checked() {
    let service = [("K_SERVICE", "orders"), ("PUSHONCE_STORE", "memory:"), ("PUSH_AUTH", "none")];
    let log = until_it_listens(&service).await;
    let warned: Vec<_> = log.iter().filter(|line| line.contains("WARN")).collect();
    assert!(matches!(warned[..], [line] if line.contains("`PUSH_AUTH` is `none`")), "{log:#?}");
}

/// Starts `orders`, and gives its log up to where it listens.
async fn until_it_listens(variables: &[(&str, &str)]) -> Vec<String> {
    let mut child = program("orders", variables).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut log = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let mut lines = Vec::new();
    let listening = async {
        while let Some(line) = log.next_line().await.expect("a log of text") {
            lines.push(line);
            if lines.last().is_some_and(|line| line.contains("listening")) {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(LIMIT, listening).await.expect("it starts or ends"), "it does not listen");
    child.kill().await.expect("it runs");
    lines
}

/// `orders healthcheck` on this port: the code it ends with, and its one line.
async fn healthcheck(port: &str) -> (Option<i32>, String) {
    let mut command = program("orders", &[("PORT", port)]);
    command.arg("healthcheck");
    let output = ended(command).await;
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    (output.status.code(), text.trim_end().to_owned())
}

#[tokio::test]
async fn the_healthcheck_tells_a_service_that_runs_from_one_that_does_not() {
    let mut child = program("orders", &[]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut log = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let listening = async {
        loop {
            let line = log.next_line().await.expect("a log of text").expect("it says where it listens");
            let digits = line.split("0.0.0.0:").nth(1).filter(|_| line.contains("listening"));
            if let Some(digits) = digits {
                break digits.chars().take_while(char::is_ascii_digit).collect::<String>();
            }
        }
    };
    let port = tokio::time::timeout(LIMIT, listening).await.expect("it says that it listens");
    assert_eq!(healthcheck(&port).await, (Some(0), "orders: healthy".to_owned()));
    // Under the name, too, that is asked from outside of Cloud Run.
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).await.expect("it listens");
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "{answer}");
    child.kill().await.expect("it runs");
    let (code, line) = healthcheck(&port).await;
    assert_eq!(code, Some(1), "{line}");
    assert!(line.starts_with("orders: not healthy: "), "{line}");
    assert_eq!(healthcheck("http").await, (Some(1), "orders: not healthy: `PORT` is \"http\"".to_owned()));
}

/// Others may listen there: one that answers nothing, another status, no HTTP, or nothing at all.
#[tokio::test]
async fn the_healthcheck_takes_no_other_answer_for_a_healthy_one() {
    let others = [
        (Some(""), "answered \"\""),
        (Some("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"), "503"),
        (Some("HTTP/1.1 2000 ok\r\n\r\n"), "2000"),
        (Some("+PONG\r\n"), "PONG"),
        (None, "no answer within 5s"),
    ];
    for (answer, because) in others {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port().to_string();
        let other = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut asked = [0; 12];
            stream.read_exact(&mut asked).await.expect("a question");
            assert_eq!(&asked, b"GET /healthz");
            if let Some(answer) = answer {
                stream.write_all(answer.as_bytes()).await.expect("sent");
                stream.shutdown().await.expect("sent");
            }
            // Until the other side has enough; what nobody reads would reset the connection.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        };
        let ((code, line), ()) = tokio::join!(healthcheck(&port), other);
        assert_eq!(code, Some(1), "{line}");
        assert!(line.starts_with("orders: not healthy: ") && line.contains(because), "{line}");
    }
}

#[tokio::test]
async fn orders_takes_no_argument_that_it_does_not_know() {
    for arguments in [&["health"][..], &["--help"], &["healthcheck", "now"]] {
        let mut command = program("orders", &[]);
        command.args(arguments);
        let output = ended(command).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "usage: orders [healthcheck]\n", "{arguments:?}");
    }
}

#[tokio::test]
async fn the_demo_keeps_its_promises_and_is_plain_where_nobody_looks() {
    let output = ended(program("demo", &[])).await;
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{page}");
    assert!(page.ends_with("All as promised.\n") && !page.contains("\x1b"), "{page}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[tokio::test]
async fn the_demo_says_what_is_not_as_promised() {
    let output = ended(program("demo", &[("PUSHONCE_DISABLED", "1")])).await;
    let page = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{page}");
    assert!(page.contains("NOT AS PROMISED") && !page.contains("All as promised"), "{page}");
}
