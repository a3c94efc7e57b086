//! Who is compared, each as a process that is started on a place and can be killed whole.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

use crate::process::Process;
use crate::{PATIENCE, program};

/// One way to handle a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// `benches/by_hand.rs`.
    ByHand,
    /// `gcp-pubsub-idempotency`, served on Cloud Run as its README says.
    Peer,
    /// The layer.
    Pushonce,
    /// The layer with `.renew()`.
    Renewed,
    /// The layer, whose handler commits its effect and its key in one transaction.
    OneTransaction,
}

impl Subject {
    /// As the tables call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ByHand => "by hand",
            Self::Peer => "Python peer",
            Self::Pushonce => "pushonce",
            Self::Renewed => "pushonce, renewed",
            Self::OneTransaction => "pushonce, one transaction",
        }
    }

    /// Starts it on the database of that URL, with its own default lease or with another.
    pub(crate) async fn start(self, database: &str, supplier: &str, lease: Option<Duration>) -> Service {
        let (mut command, listening) = match self {
            Self::Peer => (peer(), "Listening at: http://127.0.0.1:"),
            _ => (program::command(self), program::LISTENING),
        };
        command.env("DATABASE_URL", database).env("SUPPLIER_URL", supplier);
        command.env("LEASE_MS", lease.map_or_else(String::new, |lease| lease.as_millis().to_string()));
        for unwanted in
            ["PUSHONCE_DISABLED", "GCP_PUBSUB_IDEMPOTENCY_DISABLED", "K_SERVICE", "PUSHONCE_TEST_REPORT"]
        {
            command.env_remove(unwanted);
        }
        // Of its own, so that workers die with their master, as they do with their container.
        command.process_group(0);
        let process = Process::start(self.name(), command);
        process.await_log(PATIENCE, listening).await;
        process.await_log(PATIENCE, GROUP).await;
        let log = process.log();
        Service { port: number(&log, listening), group: Pid::from_raw(number(&log, GROUP)), process }
    }
}

/// What every subject says when it starts, and then the id of its process group.
pub(crate) const GROUP: &str = "its process group is ";

fn number<N: std::str::FromStr>(log: &str, after: &str) -> N {
    let (_, rest) = log.split_once(after).expect("it was waited for");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().unwrap_or_else(|| panic!("no number after {after:?}:\n{log}"))
}

/// gunicorn in the environment that `make compare` makes, too; it ends if whoever started it dies.
fn peer() -> Command {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(home.join("target/compare/venv/bin/gunicorn"));
    command.args([
        "--bind",
        "127.0.0.1:0",
        "--workers",
        "1",
        "--threads",
        "8",
        "--no-control-socket",
        "peer:app",
    ]);
    command.arg("--chdir").arg(home.join("functional/recover")).env("PYTHONUNBUFFERED", "1");
    // No folder of compiled files beside the source.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A running subject.
#[derive(Debug)]
pub(crate) struct Service {
    /// Where it listens on this machine.
    pub(crate) port: u16,
    /// None once it was killed: the id may by then be another's.
    group: Option<Pid>,
    process: Process,
}

impl Service {
    /// SIGKILL to all that it consists of.
    pub(crate) async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.group = None;
        self.process.kill_9().await;
    }

    /// SIGSTOP to all of it; waits until it stands.
    pub(crate) async fn stop(&self) {
        self.signal(Signal::STOP);
        self.process.stop().await;
    }

    /// SIGCONT.
    pub(crate) fn cont(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let group = self.group.expect("it was not killed");
        kill_process_group(group, signal).unwrap_or_else(|error| panic!("no {signal:?}: {error}"));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.group.map(|group| kill_process_group(group, Signal::KILL));
    }
}
