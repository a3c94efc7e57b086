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
mod maintain;
mod marks;
mod paced;
mod resets;
#[cfg(test)]
mod slow;
mod swaps;
mod trial;
mod undone;
mod waivers;
mod zombies;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::list::LAWS;
use self::paced::Paced;
use self::trial::Trial;
pub use self::waivers::Waiver;
use crate::key::Key;
use crate::store::chaos::Chaos;
use crate::store::{BoxFuture, Maintain, Store, StoreError};
use crate::time::{Clock, system_clock};

/// How often a fault is made of a call when a law runs once more under faults.
const SHARE: f64 = 0.1;
/// The seed of those faults.
const SEED: u64 = 1;

/// Which lost swaps always say what stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tells {
    /// None that may be relied upon: a duplicate costs two trips.
    Never,
    /// Creates: a duplicate costs one trip.
    Creates,
    /// Creates and updates.
    Swaps,
}

/// A store that is to be tested: the store itself, and what the laws must be told or lent.
pub trait Subject: Send + Sync + 'static {
    /// The store. Laws use fresh keys, so any number of them may share one.
    fn store(&self) -> Arc<dyn Store>;

    /// Deletes the record under the key, as the store's garbage collection or an operator would. It
    /// is gone when the future ends. Panic where it cannot be deleted.
    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()>;

    /// The store once more, for the laws of maintenance. Default: `None`, of a store that is no
    /// [`Maintain`]; these laws are then told as [waived](Self::waived).
    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        None
    }

    /// Which lost swaps always say what stands, in the same trip. Default: [`Tells::Never`].
    fn tells_what_stands(&self) -> Tells {
        Tells::Never
    }

    /// The laws that the store cannot keep, each with the reason. Default: none. They are not run,
    /// and [`waived`](Self::waived) is told; a name that no law has, or that of a law that
    /// [cannot be waived](Law::is_waivable), breaks every law.
    fn waives(&self) -> &'static [Waiver] {
        &[]
    }

    /// A lease that is short enough to wait for its lapse and long enough that a call, and the
    /// [pace](Self::pace), fit into a third of it. Default 600 ms.
    fn short(&self) -> Duration {
        Duration::from_millis(600)
    }

    /// How coarse the ages are that the store tells. Default 100 ms.
    fn grain(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// How long the store wants between two writes of one key. Default zero: it takes them as they
    /// come. Otherwise a write that the store puts off, and certainly did not write, is sent again
    /// beneath the laws, which are not about its pace.
    fn pace(&self) -> Duration {
        Duration::ZERO
    }

    /// The key space of the library's own in which the laws run, for a store that keeps such keys in places of
    /// their own. Default: a consumer's.
    #[doc(hidden)]
    fn space(&self) -> Option<&'static str> {
        None
    }

    /// The clock of the clients. Default: the machine's.
    fn clock(&self) -> Arc<dyn Clock> {
        system_clock()
    }

    /// Is told of each law that held: for a report. Default: nothing.
    fn passed(&self, law: &Law) {
        let _ = law;
    }

    /// Is told of each law that was not run, and why: for a report. Default: nothing.
    fn waived(&self, law: &Law, reason: &str) {
        let _ = (law, reason);
    }
}

/// Something that every store must keep.
#[derive(Debug, Clone, Copy)]
pub struct Law {
    name: &'static str,
    says: &'static str,
    group: Group,
    bond: Bond,
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
    /// What an operator does beside the port.
    Maintenance,
}

/// Whether a store may be excused from a law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bond {
    /// No store may: it is about who holds a key, who may write, or whose write it was.
    Binding,
    /// A store may, by name and with a reason.
    Waivable,
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

    /// Whether a store may [waive](Subject::waives) it. No law about exclusivity, fencing or lost
    /// answers can be waived: whatever breaks one is no store.
    pub fn is_waivable(&self) -> bool {
        self.bond == Bond::Waivable
    }

    /// Runs the law on a store, and laws of the lease once more with faults between lease and store;
    /// or tells that the store waives it.
    ///
    /// # Errors
    /// [`Breach`]: the store does not keep the law, could not be reached, or waives what it may not.
    pub async fn check(&self, subject: Arc<dyn Subject>) -> Result<(), Breach> {
        if let Some(reason) = waivers::reason(self, subject.waives())? {
            subject.waived(self, reason);
            return Ok(());
        }
        if self.group == Group::Maintenance && subject.maintained().is_none() {
            subject.waived(self, "the store is no `Maintain`");
            return Ok(());
        }
        let store = Paced::over(&*subject);
        self.check_on(&subject, store.clone()).await?;
        if self.group == Group::Lease {
            let chaos = Chaos::random(store, SEED, SHARE);
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
