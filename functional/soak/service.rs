//! The service that is soaked: `examples/orders` as a process of its own, and what the kernel says of it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;

use crate::example::example;
use crate::judge::Sample;

const POLL: Duration = Duration::from_millis(20);
/// How long it may take to start, and to end.
const PATIENCE: u32 = 3000;

/// A running service. Dropped, it is killed.
pub(crate) struct Service {
    pub(crate) port: u16,
    process: Child,
    log: PathBuf,
}

impl Service {
    pub(crate) async fn start(name: &str, store: &str, folder: &Path) -> Self {
        let program = tokio::task::spawn_blocking(|| example("orders")).await.unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).unwrap();
        let process = Command::new(program)
            .envs([("PORT", port.to_string().as_str()), ("PUSHONCE_STORE", store), ("RUST_LOG", "warn")])
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        let mut service = Self { port, process, log };
        for _ in 0..PATIENCE {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
                return service;
            }
            assert!(service.process.try_wait().unwrap().is_none(), "{name} ended:\n{}", service.log());
            tokio::time::sleep(POLL).await;
        }
        panic!("{name} does not start:\n{}", service.log())
    }

    /// What it holds now, by proc_pid_status(5) and proc_pid_fd(5).
    pub(crate) fn sample(&self, at: Duration) -> Sample {
        let place = PathBuf::from(format!("/proc/{}", self.process.id()));
        let status = fs::read_to_string(place.join("status")).expect("it runs");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let files = fs::read_dir(place.join("fd")).unwrap().count() as u64;
        Sample { at, memory: number("VmRSS:"), threads: number("Threads:"), files }
    }

    /// Asks it to end, as Cloud Run does. What is wrong: it does not end well, or it had something to say.
    pub(crate) async fn end(mut self) -> Vec<String> {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        let mut wrong = Vec::new();
        for _ in 0..PATIENCE {
            if let Some(status) = self.process.try_wait().unwrap() {
                if !status.success() {
                    wrong.push(format!("it ended with {status}"));
                }
                wrong.extend(self.log().lines().take(5).map(|line| format!("it said: {line}")));
                return wrong;
            }
            tokio::time::sleep(POLL).await;
        }
        wrong.push("it does not end".to_owned());
        wrong
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
