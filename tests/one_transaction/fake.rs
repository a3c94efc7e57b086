//! A fake of a SQL database: rows that a transaction locks, and commits that go wrong to order.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pushonce::store::{BoxFuture, Commits, Completes, Record, Standing, StoreError, Stored, Swap, Version};
use pushonce::{Clock, IntoKey, Key, Store};
use tokio::sync::OwnedMutexGuard;

/// What goes wrong with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection is lost before the server has read the commit: rolled back, and nobody knows.
    LostBefore,
    /// The connection is lost after the server has read the commit: committed, and nobody knows.
    LostAfter,
    /// The connection is lost, and the server commits so much later: its locks stand until then.
    Late(Duration),
    /// The connection is lost, and the server rolls back so much later: its locks stand until then.
    LateRollback(Duration),
    /// The server refuses, as for a deferred constraint: rolled back, and that is known.
    Refused,
    /// The driver says so, and it is committed all the same.
    Mistaken,
    /// No answer, ever, and the transaction stays open until the connection is given up.
    Silent,
}

/// The database, and what was committed in it.
#[derive(Clone)]
pub(crate) struct FakeSql(Arc<Inner>);

struct Inner {
    rows: Mutex<HashMap<Key, Arc<Row>>>,
    effects: Mutex<Vec<String>>,
    versions: AtomicU64,
    clock: Arc<dyn Clock>,
    faults: Mutex<VecDeque<Fault>>,
    down: AtomicBool,
    deaf: Mutex<VecDeque<Duration>>,
}

#[derive(Default)]
struct Row {
    /// Of a writer, from its statement to the end of its transaction. Readers do not wait for it.
    lock: Arc<tokio::sync::Mutex<()>>,
    committed: Mutex<Option<Committed>>,
}

#[derive(Clone)]
struct Committed {
    record: Record,
    version: u64,
    at: Duration,
}

/// A transaction. Dropped, it is rolled back.
pub(crate) struct FakeTx {
    effects: Vec<String>,
    swapped: Option<(Key, Record, OwnedMutexGuard<()>)>,
}

impl FakeTx {
    pub(crate) fn insert(&mut self, effect: impl Into<String>) {
        self.effects.push(effect.into());
    }
}

impl FakeSql {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self(Arc::new(Inner {
            rows: Mutex::default(),
            effects: Mutex::default(),
            versions: AtomicU64::new(0),
            clock,
            faults: Mutex::default(),
            down: AtomicBool::new(false),
            deaf: Mutex::default(),
        })))
    }

    pub(crate) fn begin(&self) -> FakeTx {
        FakeTx { effects: Vec::new(), swapped: None }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// Commits without us, as whoever has taken a completion does.
    pub(crate) async fn commit_by_hand(&self, tx: FakeTx) -> Result<(), StoreError> {
        Commits::commit(self, tx).await
    }

    /// What was committed, in order.
    pub(crate) fn effects(&self) -> Vec<String> {
        lock(&self.0.effects).clone()
    }

    /// Makes a fault of the next commit.
    pub(crate) fn next_commit(&self, fault: Fault) {
        lock(&self.0.faults).push_back(fault);
    }

    /// Answers nothing but transactions that are under way, or does again.
    pub(crate) fn down(&self, down: bool) {
        self.0.down.store(down, Ordering::SeqCst);
    }

    /// Carries the next writes of the store out at once, and answers each so much later.
    pub(crate) fn next_swap_stalls(&self, delay: Duration) {
        lock(&self.0.deaf).push_back(delay);
    }

    /// Forgets the faults that still wait for their call.
    pub(crate) fn heal(&self) {
        lock(&self.0.faults).clear();
        lock(&self.0.deaf).clear();
    }

    /// What stands, past all faults.
    pub(crate) fn record(&self, key: impl IntoKey) -> Option<Record> {
        let key = key.into_key().unwrap();
        self.standing(&key).map(|stored| stored.record)
    }

    /// Deletes a record, as an operator would.
    pub(crate) fn forget(&self, key: impl IntoKey) {
        *lock(&self.row(&key.into_key().unwrap()).committed) = None;
    }

    fn row(&self, key: &Key) -> Arc<Row> {
        lock(&self.0.rows).entry(key.clone()).or_default().clone()
    }

    fn standing(&self, key: &Key) -> Option<Stored> {
        let committed = lock(&self.row(key).committed).clone()?;
        let age = self.0.clock.monotonic().saturating_sub(committed.at);
        Some(Stored { record: committed.record, version: Version::number(committed.version), age })
    }

    fn write(&self, key: &Key, record: Record) -> Version {
        let version = self.0.versions.fetch_add(1, Ordering::SeqCst) + 1;
        let at = self.0.clock.monotonic();
        *lock(&self.row(key).committed) = Some(Committed { record, version, at });
        Version::number(version)
    }

    fn apply(&self, tx: FakeTx) {
        lock(&self.0.effects).extend(tx.effects);
        if let Some((key, record, guard)) = tx.swapped {
            self.write(&key, record);
            drop(guard);
        }
    }

    fn is_down(&self) -> bool {
        self.0.down.load(Ordering::SeqCst)
    }
}

impl Store for FakeSql {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async move {
            if self.is_down() {
                return Err(StoreError::unavailable("down"));
            }
            Ok(self.standing(key))
        })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            if self.is_down() {
                return Err(StoreError::unavailable("down"));
            }
            let _locked = self.row(key).lock.clone().lock_owned().await;
            let standing = self.standing(key);
            let answer = if standing.as_ref().map(|stored| &stored.version) == seen {
                Swap::Written(self.write(key, next.clone()))
            } else {
                let standing = standing.map_or(Standing::Absent, |stored| Standing::Is(Box::new(stored)));
                Swap::Lost(standing)
            };
            let deaf = lock(&self.0.deaf).pop_front();
            if let Some(delay) = deaf {
                drop(_locked);
                tokio::time::sleep(delay).await;
            }
            Ok(answer)
        })
    }
}

impl Completes<FakeTx> for FakeSql {
    fn swap_in<'a>(
        &'a self,
        tx: &'a mut FakeTx,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let guard = self.row(key).lock.clone().lock_owned().await;
            if self.standing(key).as_ref().map(|stored| &stored.version) != Some(seen) {
                return Ok(false);
            }
            tx.swapped = Some((key.clone(), next.clone(), guard));
            Ok(true)
        })
    }
}

impl Commits<FakeTx> for FakeSql {
    fn commit(&self, tx: FakeTx) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let fault = lock(&self.0.faults).pop_front();
            let lost = || Err(StoreError::unanswered("the connection was lost"));
            match fault {
                None => {
                    self.apply(tx);
                    Ok(())
                }
                Some(Fault::LostBefore) => lost(),
                Some(Fault::LostAfter) => {
                    self.apply(tx);
                    lost()
                }
                Some(Fault::Late(delay)) => {
                    let server = self.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        server.apply(tx);
                    });
                    lost()
                }
                Some(Fault::LateRollback(delay)) => {
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        drop(tx);
                    });
                    lost()
                }
                Some(fault @ (Fault::Refused | Fault::Mistaken)) => {
                    if fault == Fault::Mistaken {
                        self.apply(tx);
                    }
                    Err(StoreError::Refused { what: "a constraint".into(), source: None })
                }
                Some(Fault::Silent) => {
                    let _open = tx;
                    std::future::pending().await
                }
            }
        })
    }
}

impl fmt::Debug for FakeSql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeSql").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
