//! A store that wraps a store and makes faults: scripted, standing, or drawn from a seed.

mod crash;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::crash::{Older, Trap, aged};
use super::record::{Id, Progress, State};
use super::{BoxFuture, Record, Standing, Store, StoreError, Stored, Swap, Version};
use crate::key::Key;
use crate::{random, task};

/// Which calls a fault is meant for. The kind of a write is seen from the record that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Every call.
    Any,
    /// A read.
    Read,
    /// Any write.
    Swap,
    /// A claim: a create, a take-over, or the mark of `at_most_once`.
    Claim,
    /// A claimed record written again for the same holder: a renewal, or the undo of somebody else's claim.
    Renew,
    /// The record becomes done.
    Complete,
    /// The record becomes released: by a failed work, or by an undo.
    Release,
}

impl On {
    fn covers(self, call: Self) -> bool {
        self == Self::Any || self == call || (self == Self::Swap && call != Self::Read)
    }
}

/// What happens to a call. A read has nothing to write: there each of the first four is a plain failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not written; nobody knows.
    LoseBefore,
    /// Written; nobody knows.
    LoseAnswer,
    /// Nobody knows; sent on after this time, under the same condition.
    Late(Duration),
    /// Not written, and that is certain.
    Fail,
    /// Refused for good.
    Refuse,
    /// Carried out at once, answered after this time: to a caller that waited less the answer is
    /// lost, and to one that waited a read is that old.
    Stall(Duration),
}

/// How many calls were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trips {
    /// Reads.
    pub reads: u64,
    /// Conditional writes, whatever came of them.
    pub swaps: u64,
}

/// A [`Store`] that passes calls on to another and makes faults of some of them.
///
/// A scripted fault ([`next`](Self::next)) goes before a standing one ([`always`](Self::always)),
/// and that before a drawn one ([`random`](Self::random)).
#[derive(Debug)]
pub struct Chaos {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    // The newest version of each key that passed here, and whose it is: how a renewal is told from a take-over.
    newest: Arc<Newest>,
    older: Arc<Older>,
}

type Newest = Mutex<HashMap<Key, (Version, Option<Id>)>>;

#[derive(Debug, Default)]
struct Plan {
    script: VecDeque<(On, Fault)>,
    standing: Vec<(On, Fault)>,
    seed: u64,
    share: f64,
    longest: Duration,
    trips: Trips,
    trap: Option<Trap>,
}

impl Chaos {
    /// A store without faults, until it is told of some.
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::random(inner, 0, 0.0)
    }

    /// A store that makes a fault of about that share of its calls (0 to 1). Each choice follows
    /// from the seed and the order of the calls. It never draws [`Fault::Refuse`], which does not pass.
    pub fn random(inner: Arc<dyn Store>, seed: u64, share: f64) -> Arc<Self> {
        let plan = Plan { seed, share, longest: Duration::from_millis(100), ..Plan::default() };
        Arc::new(Self { inner, plan: Mutex::new(plan), newest: Arc::default(), older: Arc::default() })
    }

    /// The longest delay that is drawn for a late write or a stall. Default 100 ms.
    pub fn longest(&self, delay: Duration) {
        lock(&self.plan).longest = delay;
    }

    /// Makes a fault of the next call of that kind. Several are used up in the order in which they were given.
    pub fn next(&self, on: On, fault: Fault) {
        lock(&self.plan).script.push_back((on, fault));
    }

    /// Makes a fault of every call of that kind, until [`heal`](Self::heal).
    pub fn always(&self, on: On, fault: Fault) {
        lock(&self.plan).standing.push((on, fault));
    }

    /// Makes no more faults, of whatever kind. Late writes that are under way still land.
    pub fn heal(&self) {
        let mut plan = lock(&self.plan);
        plan.script.clear();
        plan.standing.clear();
        plan.share = 0.0;
    }

    /// Whether a scripted fault still waits for its call.
    pub fn has_next(&self) -> bool {
        !lock(&self.plan).script.is_empty()
    }

    /// The calls that were made so far, also those that became faults.
    pub fn trips(&self) -> Trips {
        lock(&self.plan).trips
    }

    /// The calls since the last time, and counts from zero again.
    pub fn take(&self) -> Trips {
        std::mem::take(&mut lock(&self.plan).trips)
    }

    /// What a write is, as far as it can be seen without asking the inner store.
    fn kind(&self, key: &Key, seen: Option<&Version>, next: &Record) -> On {
        match next.state {
            State::Released => On::Release,
            State::Done if next.receipt.as_ref().is_some_and(|r| r.progress == Progress::Started) => {
                On::Claim
            }
            State::Done => On::Complete,
            State::Claimed => {
                let newest = lock(&self.newest);
                let ours = newest
                    .get(key)
                    .is_some_and(|(version, holder)| Some(version) == seen && *holder == next.holder);
                if ours { On::Renew } else { On::Claim }
            }
        }
    }

    fn sent(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Sent {
        Sent {
            inner: self.inner.clone(),
            newest: self.newest.clone(),
            older: self.older.clone(),
            key: key.clone(),
            seen: seen.cloned(),
            next: next.clone(),
        }
    }
}

/// A write on its way to the inner store, which its caller may have given up.
struct Sent {
    inner: Arc<dyn Store>,
    newest: Arc<Newest>,
    older: Arc<Older>,
    key: Key,
    seen: Option<Version>,
    next: Record,
}

impl Sent {
    async fn arrive(self) -> Result<Swap, StoreError> {
        let answer = self.inner.swap(&self.key, self.seen.as_ref(), &self.next).await?;
        Ok(match answer {
            Swap::Written(version) => {
                lock(&self.newest).insert(self.key, (version.clone(), self.next.holder));
                Swap::Written(version)
            }
            Swap::Lost(Standing::Is(stored)) => {
                let stored = aged(&self.older, &self.key, *stored);
                lock(&self.newest).insert(self.key, (stored.version.clone(), stored.record.holder));
                Swap::Lost(Standing::Is(Box::new(stored)))
            }
            lost @ Swap::Lost(_) => lost,
        })
    }
}

impl Plan {
    fn fault(&mut self, call: On) -> Option<Fault> {
        if let Some(at) = self.script.iter().position(|(on, _)| on.covers(call)) {
            return self.script.remove(at).map(|(_, fault)| fault);
        }
        if let Some((_, fault)) = self.standing.iter().find(|(on, _)| on.covers(call)) {
            return Some(*fault);
        }
        if self.share <= 0.0 || random::share(&mut self.seed) >= self.share {
            return None;
        }
        let kind = random::splitmix(&mut self.seed) % 5;
        let delay = self.longest.mul_f64(random::share(&mut self.seed));
        Some(match kind {
            0 => Fault::LoseBefore,
            1 => Fault::LoseAnswer,
            2 => Fault::Late(delay),
            3 => Fault::Fail,
            _ => Fault::Stall(delay),
        })
    }
}

fn refused() -> StoreError {
    StoreError::Refused { what: "a planned fault".into(), source: None }
}

impl Store for Chaos {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async move {
            let fault = {
                let mut plan = lock(&self.plan);
                plan.trips.reads += 1;
                plan.fault(On::Read)
            };
            match fault {
                None | Some(Fault::Stall(_)) => {}
                Some(Fault::Refuse) => return Err(refused()),
                Some(_) => return Err(StoreError::unavailable("a planned fault of a read")),
            }
            let stored = self.inner.read(key).await?.map(|stored| aged(&self.older, key, stored));
            if let Some(stored) = &stored {
                lock(&self.newest).insert(key.clone(), (stored.version.clone(), stored.record.holder));
            }
            if let Some(Fault::Stall(delay)) = fault {
                tokio::time::sleep(delay).await;
            }
            Ok(stored)
        })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let kind = self.kind(key, seen, next);
            self.survive(key, kind).await;
            let fault = {
                let mut plan = lock(&self.plan);
                plan.trips.swaps += 1;
                plan.fault(kind)
            };
            let lost = || StoreError::unanswered("a planned fault of a write");
            let sent = self.sent(key, seen, next);
            match fault {
                None => sent.arrive().await,
                Some(Fault::LoseBefore) => Err(lost()),
                Some(Fault::LoseAnswer) => sent.arrive().await.and_then(|_| Err(lost())),
                Some(Fault::Late(delay)) => {
                    // The caller's future is about to end; the write must not end with it.
                    task::spawn(async move {
                        tokio::time::sleep(delay).await;
                        let _ = sent.arrive().await;
                    });
                    Err(lost())
                }
                Some(Fault::Fail) => Err(StoreError::unavailable("a planned fault of a write")),
                Some(Fault::Refuse) => Err(refused()),
                Some(Fault::Stall(delay)) => {
                    let answer = sent.arrive().await;
                    tokio::time::sleep(delay).await;
                    answer
                }
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
