//! How a contender is served on a store.

use std::path::{Path, PathBuf};
use std::process::Command;

use pushonce::store::Sql;
use sqlx::{AssertSqlSafe, PgPool};

use crate::contender::{Contender, Store, Workers};
use crate::process::Server;
use crate::subject::{unique, variable};

/// The connections to a SQL server of whoever has a pool of sqlx: our store's default.
const CONNECTIONS: u32 = 5;

/// A contender on a store, with a place there that nobody else has.
pub(crate) struct Entry {
    pub(crate) contender: Contender,
    pub(crate) store: Store,
    pub(crate) workers: Workers,
    /// Where it finds the server: itself, or a proxy in front of it.
    pub(crate) host: String,
    /// Whether it may have one connection only.
    pub(crate) alone: bool,
    place: String,
}

impl Entry {
    pub(crate) fn new(contender: Contender, store: Store, workers: Workers) -> Self {
        let host = store.host().unwrap_or_default();
        Self { contender, store, workers, host, alone: false, place: unique("compare") }
    }

    /// The same with one connection, by that way.
    pub(crate) fn through(mut self, host: String) -> Self {
        (self.host, self.alone, self.workers) = (host, true, Workers::ONE);
        self
    }

    /// Makes its table, and starts it.
    pub(crate) async fn start(&self) -> Server {
        if self.store == Store::Postgres {
            self.create_table().await;
        }
        let log = folder().join(format!("{}-{}.log", self.store, self.contender).replace(' ', "-"));
        Server::start(
            &log,
            |port| if self.contender == Contender::Peer { self.peer(port) } else { self.ours(port) },
        )
        .await
    }

    async fn create_table(&self) {
        let pool = || PgPool::connect_lazy(&self.postgres()).expect("an address of PostgreSQL");
        match self.contender {
            Contender::Pushonce => {
                let store = Sql::builder(pool()).table(&self.place).build().expect("a name");
                store.create_table().await.expect("a table");
            }
            Contender::ByHand => {
                let pool = pool();
                let old = AssertSqlSafe("DROP TABLE IF EXISTS processed_messages");
                sqlx::query(old).execute(&pool).await.expect("no table");
                crate::by_hand::create_table(&pool).await.expect("a table");
            }
            Contender::Peer => {
                let mut python = self.python("python");
                let made = python.arg(root().join("benches/compare/peer/app.py")).output().expect("python");
                assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            }
            Contender::Calls | Contender::Loop | Contender::Envelope | Contender::Axum => {}
        }
    }

    /// The database, by the way that it is to be reached.
    fn postgres(&self) -> String {
        let given = variable("PUSHONCE_TEST_POSTGRES");
        given.replacen(&Store::Postgres.host().expect("a server"), &self.host, 1)
    }

    /// This program, as a server.
    fn ours(&self, port: u16) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let address = match self.store {
            Store::Memory => "memory:".to_owned(),
            Store::Redis => format!("redis://{}?prefix={}", self.host, self.place),
            Store::Postgres => format!("{}?table={}", self.postgres(), self.place),
            Store::Datastore => format!("datastore://p1?namespace={}", self.place),
        };
        let connections = if self.alone { 1 } else { CONNECTIONS };
        command.args(["serve", self.contender.name(), &address, &port.to_string(), &connections.to_string()]);
        command.env("DATASTORE_EMULATOR_HOST", &self.host);
        command
    }

    /// The peer, behind gunicorn.
    fn peer(&self, port: u16) -> Command {
        let mut command = self.python("gunicorn");
        let Workers { workers, threads } = self.workers;
        command.arg("--chdir").arg(root().join("benches/compare/peer")).arg("--no-control-socket");
        command.arg("--bind").arg(format!("127.0.0.1:{port}")).args(["--worker-class", "gthread", "app:app"]);
        command.arg("--workers").arg(workers.to_string()).arg("--threads").arg(threads.to_string());
        command
    }

    /// A program of the virtual environment, which ends if this one does.
    fn python(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(root().join("target/compare/venv/bin").join(program));
        let address = match self.store {
            Store::Memory | Store::Datastore => String::new(),
            Store::Redis => format!("redis://{}", self.host),
            Store::Postgres => self.postgres(),
        };
        let store = if self.store == Store::Datastore { "datastore" } else { self.store.name() };
        command.env("PEER_STORE", store).env("PEER_ADDRESS", address).env("PEER_PLACE", &self.place);
        command.env("PEER_THREADS", self.workers.threads.to_string());
        command.env("DATASTORE_EMULATOR_HOST", &self.host).env("GOOGLE_CLOUD_PROJECT", "p1");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the figures and logs go.
pub(crate) fn folder() -> PathBuf {
    let folder = root().join("target/compare");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}
