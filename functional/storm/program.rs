//! The instance that is killed: this test program again, told by its environment what it is and how it ends.

use pushonce::store;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::client;
use crate::dice::Dice;
use crate::fate::{Fate, Own};
use crate::process::Process;
use crate::transaction::{self, Database};
use crate::work::{self, Mode};

/// The test that is this program, where it is told so.
const TEST: &str = "no_message_is_lost_and_no_effect_is_made_twice";
const MODE: &str = "PUSHONCE_STORM_MODE";
const FATE: &str = "PUSHONCE_STORM_FATE";
const SEED: &str = "PUSHONCE_STORM_SEED_OF_INSTANCE";
const SUPPLIER: &str = "PUSHONCE_STORM_SUPPLIER";
/// What it writes before its port.
const LISTENING: &str = "it listens on ";

/// What all instances of one storm are told.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) mode: Mode,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Its URL without a path.
    pub(crate) supplier: String,
}

impl Told {
    /// Starts one to that fate.
    pub(crate) fn start(&self, name: &str, fate: Fate, seed: u64) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]);
        for unwanted in ["PUSHONCE_DISABLED", "K_SERVICE", "PUSHONCE_TEST_REPORT"] {
            command.env_remove(unwanted);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(MODE, format!("{:?}", self.mode)).env(FATE, fate.telling());
        command.env(SEED, seed.to_string()).env(SUPPLIER, &self.supplier);
        Process::start(name, command)
    }
}

/// Where it listens, as soon as it says so.
pub(crate) async fn listens(process: &Process) -> u16 {
    process.await_log(crate::PATIENCE, LISTENING).await;
    let log = process.log();
    let (_, rest) = log.split_once(LISTENING).unwrap();
    rest.lines().next().unwrap().parse().unwrap()
}

/// Is the instance that the environment tells; `false` where it tells none.
pub(crate) fn played() -> bool {
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    let mode = told(MODE);
    if mode.is_empty() {
        return false;
    }
    // Whatever becomes of the test, nobody is left.
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    let (own, dice) = (Own::told(&told(FATE)), Dice::of(told(SEED).parse().unwrap()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let url = told("PUSHONCE_STORE");
        let app = if mode == format!("{:?}", Mode::Supplier) {
            let supplier = told(SUPPLIER).trim_start_matches("http://").parse().unwrap();
            work::service(store::connect(&url).unwrap(), supplier, own, dice)
        } else {
            transaction::service(Database::at(&url), own, dice)
        };
        let listener = TcpListener::bind(client::local(0)).await.unwrap();
        println!("{LISTENING}{}", listener.local_addr().unwrap().port());
        pushonce::serve(app).listener(listener).await.unwrap();
    });
    true
}
