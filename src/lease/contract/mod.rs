//! The laws that every store must keep: each a named function, all in one list, and one macro that tests a store by them.
//!
//! A store author implements [`Subject`] and writes one line; see `docs/write-a-store.md`:
//!
//! ```
//! # mod laws {
//! use std::sync::Arc;
//! use pushonce::contract::Subject;
//! use pushonce::store::{BoxFuture, Memory};
//! use pushonce::{Key, Store};
//!
//! struct InMemory(Arc<Memory>);
//!
//! impl Subject for InMemory {
//!     fn store(&self) -> Arc<dyn Store> {
//!         self.0.clone()
//!     }
//!     fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
//!         self.0.forget(key);
//!         Box::pin(async {})
//!     }
//! }
//!
//! pushonce::contract!(InMemory(Arc::new(Memory::new())));
//! # }
//! ```

mod age;
#[cfg(test)]
mod broken;
mod claims;
mod client;
mod content;
mod ends;
#[cfg(test)]
mod flawed;
mod keys;
mod list;
mod lost;
mod marks;
mod swaps;
mod trial;
mod undone;
mod zombies;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::list::LAWS;
use self::trial::Trial;
use crate::key::Key;
use crate::store::chaos::Chaos;
use crate::store::{BoxFuture, Store, StoreError};
use crate::time::{Clock, system_clock};

/// How often a fault is made of a call when a law runs once more under faults.
const SHARE: f64 = 0.1;
/// The seed of those faults.
const SEED: u64 = 1;

/// A store that is to be tested: the store itself, and what the laws must be told or lent.
pub trait Subject: Send + Sync + 'static {
    /// The store. Laws use fresh keys, so any number of them may share one.
    fn store(&self) -> Arc<dyn Store>;

    /// Deletes the record under the key, as the store's garbage collection or an operator would. It
    /// is gone when the future ends. Panic where it cannot be deleted.
    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()>;

    /// Whether a lost swap always says what stands, in the same trip. Default: no.
    fn tells_what_stands(&self) -> bool {
        false
    }

    /// Whether the store counts ages by a clock of its own. Default: yes. Only a store that has
    /// none says no; then the laws do not put the clients' clocks apart.
    fn tells_time(&self) -> bool {
        true
    }

    /// A lease that is short enough to wait for its lapse and long enough that a call fits into a
    /// third of it. Default 600 ms.
    fn short(&self) -> Duration {
        Duration::from_millis(600)
    }

    /// How coarse the store's clock is. Default 100 ms.
    fn grain(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// The clock of the clients. Default: the machine's.
    fn clock(&self) -> Arc<dyn Clock> {
        system_clock()
    }

    /// Is told of each law that held: for a report. Default: nothing.
    fn passed(&self, law: &Law) {
        let _ = law;
    }
}

/// Something that every store must keep.
#[derive(Debug, Clone, Copy)]
pub struct Law {
    name: &'static str,
    says: &'static str,
    group: Group,
    run: Run,
    #[cfg(test)]
    flaws: &'static [flawed::Flaw],
}

type Run = for<'a> fn(&'a Trial) -> BoxFuture<'a, Result<(), Breach>>;

/// What a law speaks of, and so how it can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// The store's own two calls.
    Port,
    /// The lease over the store; these are run once more under random faults.
    Lease,
    /// The lease over the store, where a random fault would change what is right: exact histories,
    /// deletions (a create that is late could land after one), and laws that make faults of their own.
    Exact,
}

impl Law {
    /// The name: also that of its test.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it demands, in one sentence.
    pub fn says(&self) -> &'static str {
        self.says
    }

    /// Runs the law on a store, and laws of the lease once more with faults between lease and store.
    ///
    /// # Errors
    /// [`Breach`]: the store does not keep the law, or could not be reached.
    pub async fn check(&self, subject: Arc<dyn Subject>) -> Result<(), Breach> {
        self.check_on(&subject, subject.store()).await?;
        if self.group == Group::Lease {
            let chaos = Chaos::random(subject.store(), SEED, SHARE);
            let under_faults = self.check_on(&subject, chaos).await;
            under_faults.map_err(|breach| breach.with(&format!("under random faults of the seed {SEED}")))?;
        }
        subject.passed(self);
        Ok(())
    }

    async fn check_on(&self, subject: &Arc<dyn Subject>, store: Arc<dyn Store>) -> Result<(), Breach> {
        let trial = Trial::new(subject.clone(), store);
        (self.run)(&trial).await.map_err(|breach| breach.with(self.says))
    }
}

/// How a law was broken.
#[derive(Clone, PartialEq, Eq)]
pub struct Breach(String);

impl Breach {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    fn with(self, law: &str) -> Self {
        Self(format!("{law}: {}", self.0))
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// A test that fails prints this.
impl fmt::Debug for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Breach {}

impl From<StoreError> for Breach {
    fn from(error: StoreError) -> Self {
        Self(format!("the store failed: {error}"))
    }
}

/// What the tests of [`contract!`](crate::contract!) call.
#[doc(hidden)]
pub fn check<S: Subject>(name: &str, subject: impl Future<Output = S>) -> Result<(), Breach> {
    let law = LAWS.iter().find(|law| law.name == name);
    let law = law.ok_or_else(|| Breach::new("no law of that name"))?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Breach::new(format!("no runtime: {error}")))?;
    runtime.block_on(async { law.check(Arc::new(subject.await)).await })
}

/// Fails the law with this text unless the condition holds.
macro_rules! must {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::lease::contract::Breach::new(format!($($text)+)));
        }
    };
}
use must;
