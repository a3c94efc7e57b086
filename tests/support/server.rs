//! Servers of a test's own, by the scripts in `functional/servers`: killed, stopped for a while, and
//! started again on the same port and directory.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a server may take to start or to end: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const PORTS_TRIED: usize = 5;

/// A running server. Dropped, it is ended and its directory deleted; the kernel ends it together with
/// the thread that started it, so a test keeps it for itself.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    directory: PathBuf,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts a server of that script, with a new directory, on a free port.
    pub(crate) async fn start(name: &'static str) -> Self {
        let found = script(name, &["check"]);
        assert!(
            found.status.success(),
            "{name} is not installed:\n{}",
            String::from_utf8_lossy(&found.stderr)
        );
        let directory = std::env::temp_dir().join(format!("pushonce-{name}-{:016x}", random()));
        std::fs::create_dir(&directory).expect("a directory for temporary files");
        let port = free_port();
        let mut server = Self { name, process: run(name, &directory, port), directory, port };
        let mut tried = 1;
        while !server.is_ready().await {
            let taken = server.log().to_lowercase().contains("address already in use");
            assert!(taken && tried < PORTS_TRIED, "{}", server.failed());
            tried += 1;
            server.port = free_port();
            server.process = run(name, &server.directory, server.port);
        }
        server
    }

    /// Its URL, as its environment variable would have it.
    pub(crate) fn url(&self) -> String {
        let output = script(self.name, &["url", &self.port.to_string()]);
        String::from_utf8(output.stdout).expect("a URL is a text").trim().to_owned()
    }

    /// SIGKILL: it ends with everything that it was about to do undone. Waits for the end.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("a child can be waited for");
    }

    /// Starts it again, on the same port and directory, and waits until it is ready.
    pub(crate) async fn restart(&mut self) {
        self.process = run(self.name, &self.directory, self.port);
        assert!(self.is_ready().await, "{}", self.failed());
    }

    /// SIGSTOP: it stands still with all its processes, until [`Server::go_on`]. Waits until it stands.
    pub(crate) async fn stop(&self) {
        let began = Instant::now();
        // What it starts while it is being stopped is stopped in the next round.
        while processes(self.process.id()).iter().any(|process| process.state != 'T') {
            assert!(began.elapsed() < PATIENCE, "{} does not stop", self.name);
            self.signal(Signal::STOP);
            tokio::time::sleep(POLL).await;
        }
    }

    /// SIGCONT: it goes on where it stood.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        for process in processes(self.process.id()) {
            // One that has ended meanwhile takes none.
            let _ = kill_process(process.pid, signal);
        }
    }

    /// Whether it came to be ready; otherwise it has ended.
    async fn is_ready(&mut self) -> bool {
        let (url, began) = (self.url(), Instant::now());
        while self.process.try_wait().expect("a child can be asked").is_none() {
            assert!(began.elapsed() < PATIENCE, "{}", self.failed());
            if script(self.name, &["ready", &url]).status.success() {
                // On a port taken meanwhile another would answer.
                return self.process.try_wait().expect("a child can be asked").is_none();
            }
            tokio::time::sleep(POLL).await;
        }
        false
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    fn failed(&self) -> String {
        format!("{} did not start:\n{}", self.name, self.log())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked to, so that it takes what it shares with others away; a process that stands hears nothing.
        self.go_on();
        let pid = Pid::from_child(&self.process);
        let began = Instant::now();
        while let Ok(None) = self.process.try_wait() {
            let signal = if began.elapsed() < Duration::from_secs(3) { Signal::TERM } else { Signal::KILL };
            let _ = kill_process(pid, signal);
            std::thread::sleep(POLL);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn command(name: &str) -> Command {
    Command::new(format!("{}/functional/servers/{name}", env!("CARGO_MANIFEST_DIR")))
}

fn script(name: &str, arguments: &[&str]) -> Output {
    command(name).args(arguments).output().expect("a script of functional/servers")
}

fn run(name: &str, directory: &Path, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(directory.join("log")).expect("a log");
    let mut command = command(name);
    command.arg("run").arg(directory).arg(port.to_string()).stdin(Stdio::null());
    // Alone among them it has to be told to keep what it was given.
    if name == "redis" {
        command.args(["--appendonly", "yes"]);
    }
    command
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("a script of functional/servers")
}

/// Below the ports that the kernel gives out, and no port twice, so that it stays free while a server is away.
fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let is_new = |port: &u16| GIVEN.lock().expect("nothing panics under it").insert(*port);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut ports = std::iter::repeat_with(|| 20_000 + u16::try_from(random() % 12_000).expect("it fits"));
    ports.find(|port| is_new(port) && is_free(port)).expect("a free port")
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

struct Process {
    pid: Pid,
    state: char,
}

/// The process and all that it started, itself first (proc_pid_stat(5)).
fn processes(root: u32) -> Vec<Process> {
    let stats = std::fs::read_dir("/proc").expect("Linux").filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        // The name, in brackets, may have anything in it.
        let (pid, rest) = (stat.split_once(' ')?.0, stat.rsplit_once(") ")?.1);
        let mut rest = rest.split(' ');
        Some((pid.parse().ok()?, rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
    });
    let stats: Vec<(i32, char, i32)> = stats.collect();
    let mut found = Vec::new();
    let mut parents = VecDeque::from([i32::try_from(root).expect("a process id")]);
    while let Some(parent) = parents.pop_front() {
        for (id, state, its) in &stats {
            if *its == parent {
                parents.push_back(*id);
            }
            if let Some(pid) = Pid::from_raw(*id).filter(|_| *id == parent && *state != 'Z') {
                found.push(Process { pid, state: *state });
            }
        }
    }
    found
}
