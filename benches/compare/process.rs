//! A server as a process group of its own: started, asked what it has used, and ended.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::TcpStream;

use crate::load::{Connection, new_id};

const LONGEST_START: Duration = Duration::from_secs(60);
/// A server that was asked to end and does not is killed.
const LONGEST_END: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(1);
/// The unit of CPU times in /proc on Linux, whatever the processor (proc_pid_stat(5), USER_HZ).
const TICK: Duration = Duration::from_millis(10);

/// A server that has answered its first push. It ends when dropped, with all that it started.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// From the start of the process to the first push that was answered 200.
    pub(crate) started_in: Duration,
}

impl Server {
    /// Starts what `command` makes for a port; what it writes goes into `log`.
    pub(crate) async fn start(log: &Path, command: impl FnOnce(u16) -> Command) -> Self {
        let port = free_port();
        let log_file = fs::File::create(log).expect("a log");
        let mut command = command(port);
        command.stdin(Stdio::piped()).stdout(log_file.try_clone().expect("a log")).stderr(log_file);
        let began = Instant::now();
        // What it starts belongs to its group, so that all of it is found and ended.
        let child = command.process_group(0).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Self { child, port, started_in: Duration::ZERO };
        let text = || fs::read_to_string(log).unwrap_or_default();
        let mut answered = None;
        while answered != Some(200) {
            assert!(began.elapsed() < LONGEST_START, "{answered:?} after {LONGEST_START:?}: {}", text());
            let ended = server.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "{command:?} has ended, {ended:?}: {}", text());
            if TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(POLL).await;
                continue;
            }
            answered = Some(Connection::open(port).await.push(new_id()).await);
        }
        server.started_in = began.elapsed();
        server
    }

    /// CPU time of all its processes so far, in user and in kernel.
    pub(crate) fn cpu(&self) -> Duration {
        let ticks = self.processes().iter().map(|process| process.ticks).sum::<u32>();
        TICK * ticks
    }

    /// Resident memory of all its processes, in KiB: now, where a page that several share counts once, and
    /// at the peak, where it counts in each.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let of = |file: &str, field: &str| {
            let sizes = self.processes().into_iter().map(|process| {
                let text = fs::read_to_string(format!("/proc/{}/{file}", process.pid)).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
                line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default()
            });
            sizes.sum()
        };
        (of("smaps_rollup", "Pss:"), of("status", "VmHWM:"))
    }

    fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").expect("Linux");
        let stats = entries
            .filter_map(|entry| Process::parse(&fs::read_to_string(entry.ok()?.path().join("stat")).ok()?));
        stats.filter(|process| process.group == self.child.id()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let began = Instant::now();
        let group = Pid::from_child(&self.child);
        // Our own servers end with their standard input.
        drop(self.child.stdin.take());
        let mut signal = Signal::TERM;
        let _ = kill_process_group(group, signal);
        while !self.processes().is_empty() && self.child.try_wait().is_ok() {
            if began.elapsed() > LONGEST_END && signal != Signal::KILL {
                signal = Signal::KILL;
                let _ = kill_process_group(group, signal);
            }
            std::thread::sleep(POLL * 5);
        }
        let _ = self.child.wait();
    }
}

/// What `/proc/PID/stat` says of a process.
struct Process {
    pid: u32,
    group: u32,
    ticks: u32,
}

impl Process {
    fn parse(stat: &str) -> Option<Self> {
        // The name, in brackets, may have anything in it.
        let (pid, rest) = (stat.split_once(' ')?.0, stat.rsplit_once(") ")?.1);
        let rest: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| rest.get(at)?.parse::<u32>().ok();
        let is_gone = rest.first() == Some(&"Z");
        (!is_gone).then_some(Self {
            pid: pid.parse().ok()?,
            group: number(2)?,
            ticks: number(11)? + number(12)?,
        })
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
