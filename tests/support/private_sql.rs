//! SQL servers of one test's own, which may be crashed and started again.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const START: Duration = Duration::from_secs(60);

/// A server in a directory of its own, on a free port of this machine. Ends with this.
pub(crate) struct Private {
    kind: Kind,
    directory: PathBuf,
    port: u16,
    process: Option<Child>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Postgres,
    Mariadb,
}

impl Private {
    pub(crate) fn postgres() -> Self {
        Self::new(Kind::Postgres)
    }

    pub(crate) fn mariadb() -> Self {
        Self::new(Kind::Mariadb)
    }

    fn new(kind: Kind) -> Self {
        let directory = std::env::temp_dir().join(super::server::fresh("pushonce"));
        fs::create_dir(&directory).unwrap();
        // Of a listener that is closed at once; nobody else is given it so soon.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { kind, directory, port, process: None };
        let (user, mut init) = match kind {
            Kind::Postgres => {
                let mut init = Command::new(postgres_binary("initdb"));
                init.args(["-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C", "-D"]);
                init.arg(server.data());
                ("postgres", init)
            }
            Kind::Mariadb => {
                let mut init = Command::new("mariadb-install-db");
                init.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                init.arg(format!("--datadir={}", server.data().display()));
                // In a folder that several share, each deletes what the others have there.
                init.arg(format!("--tmpdir={}", server.directory.display()));
                ("mysql", init)
            }
        };
        // As root neither of them runs.
        if let Some((uid, gid)) = unprivileged(user) {
            std::os::unix::fs::chown(&server.directory, Some(uid), Some(gid)).unwrap();
            init.uid(uid).gid(gid);
        }
        let made = init.current_dir(&server.directory).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(
            made.is_ok_and(|status| status.success()),
            "a private {kind:?} cannot be made: is it installed?"
        );
        server.start();
        server
    }

    pub(crate) fn url(&self) -> String {
        match self.kind {
            Kind::Postgres => format!("postgres://postgres@127.0.0.1:{}/postgres", self.port),
            Kind::Mariadb => format!("mysql://root@127.0.0.1:{}/mysql", self.port),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn start(&mut self) {
        let (data, port, socket) = (self.data(), self.port, self.directory.display());
        let (user, mut command) = match self.kind {
            Kind::Postgres => {
                let mut command = Command::new(postgres_binary("postgres"));
                command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
                command.args(["-c", "listen_addresses=127.0.0.1"]);
                command.arg("-c").arg(format!("unix_socket_directories={socket}"));
                ("postgres", command)
            }
            Kind::Mariadb => {
                let mut command = Command::new("mariadbd");
                command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
                command.arg(format!("--tmpdir={socket}"));
                command.arg(format!("--port={port}")).arg("--bind-address=127.0.0.1");
                // As servers of the cloud have it.
                command.args(["--log-bin=log", "--sync-binlog=1"]);
                command.arg(format!("--socket={socket}/socket")).arg(format!("--pid-file={socket}/pid"));
                ("mysql", command)
            }
        };
        if let Some((uid, gid)) = unprivileged(user) {
            command.uid(uid).gid(gid);
        }
        let process =
            command.current_dir(&self.directory).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.process = Some(process.unwrap());
        let deadline = Instant::now() + START;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{:?} does not start", self.kind);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a crash does: nothing is written down, and every connection breaks.
    pub(crate) fn crash(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // PostgreSQL's own crash, since a killed postmaster leaves children behind that bar the next start.
        let signal = if self.kind == Kind::Postgres { Signal::QUIT } else { Signal::KILL };
        kill_process(Pid::from_child(&process), signal).unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.crash();
        self.start();
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.crash();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn postgres_binary(name: &str) -> PathBuf {
    let folder = Command::new("pg_config").arg("--bindir").output().expect("pg_config of PostgreSQL");
    PathBuf::from(String::from_utf8(folder.stdout).unwrap().trim()).join(name)
}

/// The ids of a user, where the tests run as root.
fn unprivileged(user: &str) -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| -> u32 {
        let id = Command::new("id").args(arguments).output().unwrap();
        String::from_utf8(id.stdout).unwrap().trim().parse().unwrap_or_else(|_| panic!("no user {user}"))
    };
    (id(&["-u"]) == 0).then(|| (id(&["-u", user]), id(&["-g", user])))
}
