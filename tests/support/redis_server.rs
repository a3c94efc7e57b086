//! Redis servers of a test's own: started on a free port, killed by their id, started again in the
//! same place; alone, as a primary with a replica, or as a cluster.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use redis::FromRedisValue;

/// How long a server may take to start, or a condition to come about.
const PATIENCE: u32 = 600;
const STEP: Duration = Duration::from_millis(50);

/// A server of the test's own. It is killed when this is dropped, and at the latest when the process ends.
#[derive(Debug)]
pub(crate) struct RedisServer {
    pub(crate) port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
    process: Mutex<Option<Child>>,
}

impl RedisServer {
    /// A server with those arguments; nothing is persisted unless they say so.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let port = Self::free_port();
        let directory =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{port}-{:04x}", random()));
        std::fs::create_dir_all(&directory).unwrap();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let server = Self { port, directory, arguments, process: Mutex::new(None) };
        server.restart();
        server
    }

    /// Below the ports that the kernel gives out, and no port twice, so that it is still free for a restart.
    pub(crate) fn free_port() -> u16 {
        static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        let is_new = |port: &u16| GIVEN.lock().unwrap().insert(*port);
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        (0..).map(|_| 20_000 + random() % 11_000).filter(is_new).find(is_free).unwrap()
    }

    /// Starts it again, on the same port and with what it has persisted.
    pub(crate) fn restart(&self) {
        self.kill();
        let port = self.port.to_string();
        // Should the process end without a drop, the kernel stops the server.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", "--port", &port])
            .args(["--save", "", "--repl-diskless-sync-delay", "0"])
            .args(["--loglevel", "warning", "--logfile", "log", "--dir"])
            .arg(&self.directory)
            .args(&self.arguments)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = spawn(command);
        let id = child.id().to_string();
        *self.process.lock().unwrap() = Some(child);
        // Its own id: on a port that was taken meanwhile another would answer. A server that is loading answers too.
        eventually("redis-server starts", || {
            let ended = self.process.lock().unwrap().as_mut().unwrap().try_wait().unwrap();
            let log = || std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "redis-server ended ({ended:?}): {}", log());
            self.try_ask::<String>(&["INFO", "server"])
                .is_ok_and(|info| info.contains(&format!("process_id:{id}\r")))
        });
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&self) {
        if let Some(mut process) = self.process.lock().unwrap().take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Asks the server past the store.
    pub(crate) fn ask<T: FromRedisValue>(&self, command: &[&str]) -> T {
        self.try_ask(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    fn try_ask<T: FromRedisValue>(&self, command: &[&str]) -> redis::RedisResult<T> {
        let mut connection =
            redis::Client::open(self.url())?.get_connection_with_timeout(Duration::from_secs(5))?;
        let (name, arguments) = command.split_first().unwrap();
        redis::cmd(name).arg(arguments).query(&mut connection)
    }

    /// The value of a line in what INFO says.
    pub(crate) fn info(&self, section: &str, name: &str) -> Option<String> {
        let info: redis::InfoDict = self.ask(&["INFO", section]);
        info.get(name)
    }

    /// A replica of this server, which has all of it.
    pub(crate) fn replica(&self) -> Self {
        let replica = Self::start(&["--replicaof", "127.0.0.1", &self.port.to_string()]);
        eventually("the replica is in step", || {
            replica.info("replication", "master_link_status").as_deref() == Some("up")
        });
        replica
    }

    /// Makes this replica the primary, and its primary the replica, as a failover does once the old one
    /// is back. All that was acknowledged is there by then.
    pub(crate) fn promote(&self, old: &Self) {
        let offset = |server: &Self, name| server.info("replication", name).unwrap().parse::<u64>().unwrap();
        let written = offset(old, "master_repl_offset");
        eventually("the replica has it all", || offset(self, "slave_repl_offset") >= written);
        let () = self.ask(&["REPLICAOF", "NO", "ONE"]);
        let () = old.ask(&["REPLICAOF", "127.0.0.1", &self.port.to_string()]);
        eventually("the old primary is a replica", || {
            old.info("replication", "master_link_status").as_deref() == Some("up")
        });
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Three primaries that share the slots.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

impl RedisCluster {
    pub(crate) fn start() -> Self {
        let start = |_| {
            let bus = RedisServer::free_port();
            RedisServer::start(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus.to_string(),
                // A node that is out costs the slots that it has, and no others.
                "--cluster-require-full-coverage",
                "no",
            ])
        };
        let cluster = Self { nodes: (0..3).map(start).collect() };
        let [first, others @ ..] = &*cluster.nodes else { unreachable!() };
        for (node, slots) in cluster.nodes.iter().zip([["0", "5460"], ["5461", "10922"], ["10923", "16383"]])
        {
            let () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1]]);
        }
        for other in others {
            let port = other.port.to_string();
            let bus = other.arguments[3].clone();
            let () = first.ask(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        eventually("the nodes know each other", || {
            cluster.nodes.iter().all(|node| {
                let info: String = node.ask(&["CLUSTER", "INFO"]);
                let slots: Vec<redis::Value> = node.ask(&["CLUSTER", "SLOTS"]);
                info.contains("cluster_state:ok")
                    && info.contains("cluster_slots_ok:16384")
                    && slots.len() == 3
            })
        });
        cluster
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}?cluster=true", self.nodes[0].port)
    }

    /// The node that has the key of that name, and another.
    pub(crate) fn owner_and_other(&self, name: &str) -> (&RedisServer, &RedisServer) {
        let slot: u16 = self.nodes[0].ask(&["CLUSTER", "KEYSLOT", name]);
        let owner = self.nodes.iter().position(|node| {
            let range = node.ask::<Vec<(u16, u16, redis::Value)>>(&["CLUSTER", "SLOTS"]);
            range.iter().any(|(from, to, at)| {
                (*from..=*to).contains(&slot) && format!("{at:?}").contains(&format!("int({})", node.port))
            })
        });
        let owner = owner.unwrap();
        (&self.nodes[owner], &self.nodes[(owner + 1) % self.nodes.len()])
    }
}

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..PATIENCE {
        if condition() {
            return;
        }
        std::thread::sleep(STEP);
    }
    panic!("waited in vain until {what}");
}

/// The kernel stops a child with the thread that started it, and a test's thread ends with the test.
fn spawn(command: Command) -> Child {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static STARTER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, received) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, started) in received {
                started.send(command.spawn()).unwrap();
            }
        });
        Mutex::new(orders)
    });
    let (started, child) = channel();
    starter.lock().unwrap().send((command, started)).unwrap();
    child
        .recv()
        .unwrap()
        .expect("redis-server (Debian: redis-server) and setpriv (util-linux) must be installed")
}

fn random() -> u16 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0).to_le_bytes()[0..2].iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte))
}
