//! Which store, and on which runtime it is asked.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pushonce::store::{self, Maintain, StoreError};

use crate::{Answer, Failed};

/// How often a call that failed for now is made in all, and how long the pauses between are, one by one.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);
/// How long one call may take. Stores have limits of their own; this is for one that has none.
const CALL: Duration = Duration::from_secs(60);

/// How long what is still to be settled is waited for. Later it heals by lapse.
const SETTLE: Duration = Duration::from_secs(5);

/// Which store, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The store's address, as the service has it; with a password only by the variable
    ///
    /// Arguments are seen by everybody on a machine, and kept in a shell's history; a variable is not. The
    /// program never prints the address.
    #[arg(long, value_name = "URL", env = "PUSHONCE_STORE", hide_env_values = true, global = true)]
    store: Option<Address>,
    /// Prints JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// An address, which may hold a password.
#[derive(Clone)]
struct Address(String);

impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(..)")
    }
}

impl Place {
    /// The store. Nothing is dialled yet.
    ///
    /// # Errors
    /// No address, a wrong one, or one where nothing can be.
    pub(crate) fn open(&self) -> Result<Arc<dyn Maintain>, Failed> {
        let address = &self.address()?.0;
        if address == "memory:" {
            return Err(
                "`memory:` is in the memory of its own process: nothing can be looked at from here".into()
            );
        }
        // A service would make the file. What is looked at should be there.
        if let Some(file) =
            address.strip_prefix("sqlite://").map(|rest| rest.split('?').next().unwrap_or(rest))
            && !file.contains('%')
            && !file.is_empty()
            && !Path::new(file).exists()
        {
            return Err(format!("{file}: no such file").into());
        }
        Ok(store::open(address)?)
    }

    /// Whether each look at a record is billed and made anew, so that no call should be made twice.
    pub(crate) fn bills_looks(&self) -> bool {
        self.store.as_ref().is_some_and(|address| address.0.starts_with("datastore:"))
    }

    fn address(&self) -> Result<&Address, Failed> {
        let blank = |address: &&Address| !address.0.trim().is_empty();
        self.store
            .as_ref()
            .filter(blank)
            .ok_or_else(|| "which store? Set PUSHONCE_STORE, or give --store URL".into())
    }
}

/// A call of a store, made again while it fails for now.
pub(crate) async fn again<T>(mut call: impl AsyncFnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut tries = 1;
    loop {
        let answer = tokio::time::timeout(CALL, call()).await;
        match answer.unwrap_or_else(|_| Err(StoreError::unavailable("no answer within a minute"))) {
            Err(error) if error.is_transient() && tries < TRIES => {
                tokio::time::sleep(PAUSE * tries).await;
                tries += 1;
            }
            answer => return answer,
        }
    }
}

/// Runs a subcommand that asks a store. Threads of their own keep its connections alive while a reader
/// of stdout takes its time.
pub(crate) fn run(command: impl Future<Output = Result<Answer, Failed>>) -> Result<Answer, Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let answered = runtime.block_on(async {
        let answered = command.await;
        // What a store did not take in time (a turn that is to be given back) is tried on.
        let _ = pushonce::drain(SETTLE).await;
        answered
    });
    runtime.shutdown_background();
    answered
}
