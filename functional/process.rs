//! A process of ours: started, signalled and ended by its id, its log kept for when a test fails.

use std::env;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::client;

/// How long a process may take to become healthy: the machine may be busy with other tests.
const START: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A running child. Dropped, it is killed; if the test panics, its log is printed first.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: watch::Receiver<String>,
}

impl Process {
    /// Starts a command; both its outputs go into one log.
    pub(crate) fn start(name: &str, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let (written, log) = watch::channel(String::new());
        keep(child.stdout.take().expect("stdout is piped"), written.clone());
        keep(child.stderr.take().expect("stderr is piped"), written);
        Self { name: name.to_owned(), child, log }
    }

    /// SIGKILL: it ends with everything that it was about to do undone. Waits for the end.
    pub(crate) async fn kill_9(&mut self) {
        self.signal(Signal::KILL);
        self.ended(START).await;
    }

    /// SIGSTOP: it stands still, as an instance without CPU does, until [`Process::cont`].
    ///
    /// Waits until it stands.
    pub(crate) async fn stop(&self) {
        self.signal(Signal::STOP);
        while self.state() != Some('T') {
            tokio::time::sleep(POLL).await;
        }
    }

    /// SIGCONT: it goes on where it stood.
    pub(crate) fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM: it is asked to end, as Cloud Run asks.
    pub(crate) fn term(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for its end. Fails if it still runs after the limit.
    pub(crate) async fn ended(&mut self, limit: Duration) -> ExitStatus {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(status) => status.expect("a child can be waited for"),
            Err(_) => panic!("{} still runs after {limit:?}", self.name),
        }
    }

    /// All that it has written so far.
    pub(crate) fn log(&self) -> String {
        self.log.borrow().clone()
    }

    /// All that it has ever written, once it has ended: what was on its way is read to the last line.
    pub(crate) async fn last_words(&self) -> String {
        let mut log = self.log.clone();
        while log.changed().await.is_ok() {}
        self.log()
    }

    /// Waits until its log has this text.
    pub(crate) async fn await_log(&self, limit: Duration, text: &str) {
        let mut log = self.log.clone();
        match tokio::time::timeout(limit, log.wait_for(|log| log.contains(text))).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("{} ended without writing {text:?}", self.name),
            Err(_) => panic!("{} did not write {text:?} in {limit:?}", self.name),
        }
    }

    // The letter after the name, which is in brackets: T is stopped (proc_pid_stat(5)).
    fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    fn id(&self) -> u32 {
        // None once it has been waited for: its id may by then be another's.
        self.child.id().unwrap_or_else(|| panic!("{} has ended already", self.name))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal)
            .unwrap_or_else(|error| panic!("{} takes no {signal:?}: {error}", self.name));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the log of {}\n{}---", self.name, self.log.borrow().as_str());
        }
    }
}

/// One instance of a service that is an example of this crate.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Its process.
    pub(crate) process: Process,
    /// Where it listens on this machine.
    pub(crate) port: u16,
}

impl Instance {
    /// Builds and starts the example with these variables, on a free port, and waits until it is healthy.
    ///
    /// `name` tells instances apart in logs.
    pub(crate) async fn start(example: &'static str, name: &str, variables: &[(&str, &str)]) -> Self {
        let program = tokio::task::spawn_blocking(|| build(example)).await.expect("the build ends");
        for _ in 0..5 {
            let port = free_port();
            let mut command = Command::new(&program);
            command.env("PORT", port.to_string()).envs(variables.iter().copied());
            let mut process = Process::start(name, command);
            if is_healthy(&mut process, port).await {
                return Self { process, port };
            }
            // Another process may have taken the port between our look and the start.
            let log = process.log();
            assert!(log.contains("in use"), "{name} did not become healthy:\n{log}");
        }
        panic!("{name} found no free port in five attempts")
    }

    /// Its URL with this path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", client::local(self.port))
    }
}

async fn is_healthy(process: &mut Process, port: u16) -> bool {
    let healthy = async {
        loop {
            let request = Request::get("/healthz").body(Bytes::new()).expect("a request");
            match client::send(client::local(port), request).await {
                Ok(answer) if answer.status() == StatusCode::OK => break,
                _ => tokio::time::sleep(POLL).await,
            }
        }
    };
    tokio::select! {
        () = healthy => true,
        _ = process.child.wait() => false,
        () = tokio::time::sleep(START) => panic!("{} is not healthy after {START:?}", process.name),
    }
}

// A test run by itself has no fresh example beside it; where it is fresh this takes cargo a moment.
fn build(example: &'static str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--all-features", "--examples"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let built = cargo.status().expect("cargo runs");
        assert!(built.success(), "the examples do not build");
        // This test is target/PROFILE/deps/functional-HASH.
        let test = env::current_exe().expect("a path");
        test.ancestors().nth(2).expect("target/PROFILE").join("examples")
    });
    folder.join(example)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(client::local(0)).expect("a free port");
    listener.local_addr().expect("a bound address").port()
}

fn keep(output: impl AsyncRead + Send + Unpin + 'static, log: watch::Sender<String>) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            log.send_modify(|log| {
                log.push_str(&line);
                log.push('\n');
            });
        }
    });
}
