//! The process that is killed: this test program again, told by its environment what it is and where it stands still.

use std::sync::Arc;

use pushonce::publish::{CloudPubSub, Publisher};
use pushonce::submit::SubmitError;
use pushonce::{Store, store};
use tokio::process::Command;

use crate::point::{Point, UpTo};
use crate::process::Process;
use crate::site::Site;
use crate::work::{self, Topic};
use crate::{client, pause};

/// The test that is this program, where it is told so.
const TEST: &str = "storm::no_kill_makes_a_second_task";
const ROLE: &str = "PUSHONCE_TEST_CRASH_ROLE";
const POINT: &str = "PUSHONCE_TEST_CRASH_POINT";
const KEY: &str = "PUSHONCE_TEST_CRASH_KEY";
const TOPIC: &str = "PUSHONCE_TEST_CRASH_TOPIC";
const SUPPLIER: &str = "PUSHONCE_TEST_CRASH_SUPPLIER";
const LISTENING: &str = "it listens on ";

/// What such a process is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role<'a> {
    /// Submits this key, again and again until it is accepted, to the topic that is the supplier's.
    Submitter { key: &'a str },
    /// The same to a topic of Pub/Sub.
    Producer { key: &'a str, topic: &'a str },
    /// Works on what is pushed.
    Worker,
}

impl Role<'_> {
    /// Starts it, to stand still at that point.
    pub(crate) fn start(self, site: &Site, supplier: &str, point: Option<Point>) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]).envs(site.variables()).env(SUPPLIER, supplier);
        for unwanted in ["PUSHONCE_DISABLED", "K_SERVICE", "PUSHONCE_TEST_REPORT"] {
            command.env_remove(unwanted);
        }
        if let Some(point) = point {
            command.env(POINT, point.name());
        }
        let name = match self {
            Self::Submitter { key } => {
                command.env(ROLE, "submitter").env(KEY, key).env(TOPIC, work::TOPIC);
                "submitter"
            }
            Self::Producer { key, topic } => {
                command.env(ROLE, "producer").env(KEY, key).env(TOPIC, topic);
                "producer"
            }
            Self::Worker => {
                command.env(ROLE, "worker");
                "worker"
            }
        };
        Process::start(&point.map_or_else(|| name.to_owned(), |point| format!("{name} {point}")), command)
    }
}

/// Where a worker listens, as soon as it says so.
pub(crate) async fn port(worker: &Process) -> u16 {
    worker.await_log(crate::PATIENCE, LISTENING).await;
    let log = worker.log();
    let (_, rest) = log.split_once(LISTENING).unwrap();
    rest.lines().next().unwrap().parse().unwrap()
}

/// Plays the role that the environment tells; `false` where it tells none.
pub(crate) fn played() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(play(&role));
    true
}

async fn play(role: &str) {
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    let point = Point::named(&told(POINT));
    let store = store::connect(&told("PUSHONCE_STORE")).unwrap();
    let store: Arc<dyn Store> = Arc::new(UpTo(point, store));
    let supplier = work::address(&told(SUPPLIER));
    if role == "worker" {
        let listener = tokio::net::TcpListener::bind(client::local(0)).await.unwrap();
        println!("{LISTENING}{}", listener.local_addr().unwrap().port());
        let serving = pushonce::serve(work::worker(store, supplier)).listener(listener);
        return serving.until(std::future::pending()).await.unwrap();
    }
    let publisher: Arc<dyn Publisher> = if role == "producer" {
        Arc::new(CloudPubSub::from_env().unwrap())
    } else {
        Arc::new(Topic(supplier))
    };
    let publisher: Arc<dyn Publisher> = Arc::new(UpTo(point, publisher));
    loop {
        match work::submit(store.clone(), publisher.clone(), &told(TOPIC), &told(KEY)).await {
            Ok(_) => return,
            Err(SubmitError::InProgress { .. }) => pause().await,
            Err(error) => panic!("{error:?}"),
        }
    }
}
