//! The example `orders` as a process: what it writes, where it runs, and which trace a push over a socket joins.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use http::HeaderMap;
use pushonce::testing::Push;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use crate::example::example;
use crate::lines::Entry;
use crate::world::{PAYLOAD, TOKEN, message};

/// No start, and no line, takes longer: a process that hangs fails its test.
const LIMIT: Duration = Duration::from_secs(60);
const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// `orders` as Cloud Run starts it, with these variables besides.
fn command(variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(example("orders"));
    for name in ["RUST_LOG", "NO_COLOR", "PUSHONCE_DISABLED", "SUPPLIER_URL", "LEASE_SECONDS", "TTL_SECONDS"]
    {
        command.env_remove(name);
    }
    let deployed = [
        ("K_SERVICE", "orders"),
        ("GOOGLE_CLOUD_PROJECT", "demo"),
        ("PUSHONCE_STORE", "memory:"),
        ("PUSH_AUTH", "none"),
        ("PORT", "0"),
    ];
    command.envs(deployed).envs(variables.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A running `orders` whose log is read line by line.
struct Orders {
    log: Lines<BufReader<ChildStdout>>,
    address: String,
    _child: Child,
}

impl Orders {
    async fn start(variables: &[(&str, &str)]) -> Self {
        let mut child = command(variables).stdout(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut orders = Self { log, address: String::new(), _child: child };
        orders.address = loop {
            let entry = orders.entry().await;
            if entry.text("message") == "listening" {
                break entry.text("address").replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
            }
        };
        orders
    }

    /// The next line; each must be an entry.
    async fn entry(&mut self) -> Entry {
        let line = tokio::time::timeout(LIMIT, self.log.next_line()).await.expect("a line in time");
        let entry = Entry::read(&(line.unwrap().expect("it still runs") + "\n"));
        assert!(!entry.says(PAYLOAD) && !entry.says(TOKEN), "{entry:?}");
        entry
    }

    /// Sends a push over a socket of its own, and reads its whole answer.
    async fn send(&self, push: &Push) -> String {
        let request = push.request::<axum::body::Bytes>();
        let mut text = format!("POST {} HTTP/1.1\r\nhost: orders\r\nconnection: close\r\n", request.uri());
        let headers: &HeaderMap = request.headers();
        for (name, value) in headers {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        text += &format!("content-length: {}\r\n\r\n", request.body().len());
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(&[text.as_bytes(), request.body()].concat()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(LIMIT, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
        answer
    }
}

#[tokio::test]
async fn every_line_on_cloud_run_is_an_entry_and_joins_the_trace_of_its_push() {
    let mut orders = Orders::start(&[]).await;
    let trace = format!("projects/demo/traces/{ID}");
    let w3c = format!("00-{ID}-00f067aa0ba902b7-01");
    let plain = |id: &str| message(id).attribute("po_id", id).path("/orders");
    for (push, trace, span) in [
        (plain("1").header("traceparent", &w3c), &*trace, "00f067aa0ba902b7"),
        (plain("2").header("x-cloud-trace-context", &format!("{ID}/74;o=1")), &trace, "000000000000004a"),
        (plain("3").attribute("googclient_traceparent", &*w3c), &trace, "00f067aa0ba902b7"),
        (plain("4").unwrapped().header("traceparent", &w3c), &trace, "00f067aa0ba902b7"),
        (plain("5").header("traceparent", "00-0"), "", ""),
        (plain("6"), "", ""),
    ] {
        let answer = orders.send(&push).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        for (target, wanted) in [("orders::supplier", ""), ("pushonce::idempotent::report", "ran")] {
            let entry = orders.entry().await;
            assert_eq!((entry.text("target"), entry.text("event")), (target, wanted), "{entry:?}");
            assert_eq!((entry.text("severity"), entry.text("consumer")), ("INFO", "orders"), "{entry:?}");
            assert_eq!(
                (entry.trace(), entry.text("logging.googleapis.com/spanId")),
                (trace, span),
                "{entry:?}"
            );
            assert_eq!(entry.text("key"), format!("orders:{}", entry.text("message_id")));
        }
    }
    let answer = orders.send(&Push::bytes("{").path("/orders")).await;
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    let entry = orders.entry().await;
    assert_eq!((entry.text("event"), entry.text("severity")), ("unkeyed", "ERROR"), "{entry:?}");
}

#[tokio::test]
async fn a_filter_leaves_what_it_should_and_that_keeps_its_trace() {
    // Nothing listens on port 1.
    let supplier = ("SUPPLIER_URL", "http://127.0.0.1:1/");
    let mut orders = Orders::start(&[("RUST_LOG", "warn,pushonce::serve=info"), supplier]).await;
    let push = message("1").header("traceparent", &format!("00-{ID}-00f067aa0ba902b7-00"));
    orders.send(&push).await;
    let entry = orders.entry().await;
    assert_eq!((entry.text("event"), entry.text("severity")), ("failed", "WARNING"), "{entry:?}");
    assert_eq!(entry.trace(), format!("projects/demo/traces/{ID}"));
    assert_eq!(entry.get("logging.googleapis.com/trace_sampled"), &json!(false));
}

#[tokio::test]
async fn a_filter_that_cannot_be_meant_is_refused_or_warned_of_and_never_silence() {
    let output = command(&[("RUST_LOG", "pushonce=loud")]).output();
    let output = tokio::time::timeout(LIMIT, output).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("orders: not started: ") && said.contains("`RUST_LOG`"), "{said}");

    let mut child = command(&[("RUST_LOG", "inof")]).stdout(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(LIMIT, log.next_line()).await.expect("a line").unwrap().unwrap();
    let entry = Entry::read(&(line + "\n"));
    assert_eq!((entry.text("severity"), entry.text("filter")), ("WARNING", "inof"), "{entry:?}");
}

#[tokio::test]
async fn without_a_terminal_it_is_entries_off_cloud_run_too_and_a_trace_has_no_project() {
    let mut command = command(&[("GOOGLE_CLOUD_PROJECT", " ")]);
    let mut child = command.env_remove("K_SERVICE").stdout(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut orders = Orders { log, address: String::new(), _child: child };
    let entry = orders.entry().await;
    orders.address = entry.text("address").replace("0.0.0.0", "127.0.0.1");
    orders.send(&message("1").header("x-cloud-trace-context", ID)).await;
    assert_eq!(orders.entry().await.trace(), ID);
}

/// The first line that says "listening", as a terminal is shown it.
async fn on_a_terminal(variables: &'static [(&str, &str)], cloud_run: bool) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let shown = File::options().read(true).write(true).open(name).unwrap();
    let mut command = command(variables);
    if !cloud_run {
        command.env_remove("K_SERVICE");
    }
    let child = command.stdout(shown).spawn().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        let (mut terminal, mut text, mut piece) = (File::from(terminal), String::new(), [0; 1024]);
        while !text.lines().any(|line| line.contains("listening") && text.ends_with('\n')) {
            let length = terminal.read(&mut piece).expect("it still runs");
            text += &String::from_utf8_lossy(&piece[..length]);
        }
        text.lines().find(|line| line.contains("listening")).unwrap().to_owned()
    });
    let line = tokio::time::timeout(LIMIT, read).await.expect("it listens").unwrap();
    drop(child);
    line
}

#[tokio::test]
async fn on_a_terminal_it_is_a_line_for_people_in_colours_unless_they_are_not_wanted() {
    let line = on_a_terminal(&[], false).await;
    assert!(line.contains("\u{1b}[32m INFO") && line.contains("pushonce::serve"), "{line:?}");
    let line = on_a_terminal(&[("NO_COLOR", "1")], false).await;
    assert!(
        line.contains("INFO pushonce::serve: listening address=") && !line.contains('\u{1b}'),
        "{line:?}"
    );
    let line = on_a_terminal(&[], true).await;
    assert!(line.starts_with("{\"severity\":\"INFO\""), "{line:?}");
}
