//! What the laws share: fresh keys, clients that claim, and waiting for a condition.

use std::sync::Arc;
use std::time::Duration;

use super::{Breach, Subject, must};
use crate::key::{Consumer, Key};
use crate::lease::machine::{Ask, Note};
use crate::lease::{Claim, Claimed, Commit, Op, Place, claim};
use crate::random;
use crate::store::record::{Ended, Progress, Receipt, Record, State, Verb};
use crate::store::{Store, StoreError, Stored, Swap, Version};
use crate::time::{Clock, Stopwatch};

/// A lease and a ttl that never lapse while a law runs, however slow the machine.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// How long a condition is waited for. Far below [`LONG`]: what is free by then was not waited out.
const PATIENCE: Duration = Duration::from_secs(60);

/// One run of one law, under keys that nobody else has.
#[derive(Debug)]
pub(crate) struct Trial {
    subject: Arc<dyn Subject>,
    store: Arc<dyn Store>,
    consumer: Consumer,
}

impl std::fmt::Debug for dyn Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store().fmt(f)
    }
}

impl Trial {
    pub(super) fn new(subject: Arc<dyn Subject>, store: Arc<dyn Store>) -> Self {
        // A plain name, and the id makes it fit.
        let consumer = Consumer::new(format!("law-{}", random::id())).unwrap_or_default();
        Self { subject, store, consumer }
    }

    pub(super) fn subject(&self) -> &dyn Subject {
        &*self.subject
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// A lease whose lapse can be waited for.
    pub(super) fn short(&self) -> Duration {
        self.subject.short()
    }

    pub(super) fn key(&self, text: &str) -> Result<Key, Breach> {
        Key::new(self.consumer.clone(), text).map_err(|error| Breach::new(error.to_string()))
    }

    /// A client of the key: `lock`, with a lease and a ttl that do not lapse.
    pub(super) fn client(&self, key: &Key) -> Client {
        let place = Place { store: self.store.clone(), key: key.clone(), clock: self.subject.clock() };
        Client { place, verb: Verb::Lock, lease: LONG, ttl: LONG, digest: None, note: Note::default() }
    }

    pub(super) fn stopwatch(&self) -> Stopwatch {
        Stopwatch::start(&self.subject.clock())
    }

    pub(super) fn patience(&self, what: &'static str) -> Patience {
        Patience { since: self.stopwatch(), what }
    }

    /// What stands under the key; a store that fails for now is asked again.
    pub(super) async fn read(&self, key: &Key) -> Result<Option<Stored>, Breach> {
        let mut patience = self.patience("a read is answered");
        loop {
            match self.store.read(key).await {
                Err(error) if error.is_transient() => patience.more().await?,
                answer => return Ok(answer?),
            }
        }
    }

    /// The record that must stand under the key.
    pub(super) async fn stands(&self, key: &Key) -> Result<Stored, Breach> {
        self.read(key).await?.ok_or_else(|| Breach::new("nothing stands under the key"))
    }

    /// One swap; a store that says for certain that it did not write is asked again.
    pub(super) async fn swap(
        &self,
        key: &Key,
        seen: Option<&Version>,
        next: &Record,
    ) -> Result<Swap, Breach> {
        let mut patience = self.patience("a write is answered");
        loop {
            match self.store.swap(key, seen, next).await {
                Err(error) if error.is_transient() && !error.may_have_written() => patience.more().await?,
                answer => return Ok(answer?),
            }
        }
    }

    /// A swap that must win.
    pub(super) async fn write(
        &self,
        key: &Key,
        seen: Option<&Version>,
        next: &Record,
    ) -> Result<Version, Breach> {
        match self.swap(key, seen, next).await? {
            Swap::Written(version) => Ok(version),
            Swap::Lost(_) => Err(Breach::new("a write whose condition holds was lost")),
        }
    }

    /// A swap that must lose.
    pub(super) async fn lose(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<(), Breach> {
        match self.swap(key, seen, next).await? {
            Swap::Written(_) => Err(Breach::new("a write whose condition is false was answered as written")),
            Swap::Lost(_) => Ok(()),
        }
    }

    /// Waits until the record under the key is at least that old, by the store's clock.
    pub(super) async fn ages(&self, key: &Key, age: Duration) -> Result<Stored, Breach> {
        let mut patience = self.patience("the record is old enough");
        loop {
            let stored = self.stands(key).await?;
            if stored.age >= age {
                return Ok(stored);
            }
            patience.more().await?;
        }
    }
}

/// A record with something in most of its fields, and a fresh token.
pub(super) fn record() -> Record {
    Record {
        state: State::Claimed,
        fence: 7,
        holder: Some(random::id()),
        token: random::id(),
        ended: Ended::Failed,
        runs: 3,
        written: 1_700_000_000_000_000,
        // Far in the future, so that no garbage collection meets the law.
        expires: 4_000_000_000_000_000,
        ..Record::blank(Verb::Lock, LONG, LONG)
    }
}

/// Waits for a condition, in small steps, and not for ever.
#[derive(Debug)]
pub(super) struct Patience {
    since: Stopwatch,
    what: &'static str,
}

impl Patience {
    pub(super) async fn more(&mut self) -> Result<(), Breach> {
        must!(self.since.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {}", self.what);
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }
}

/// Somebody who claims a key.
#[derive(Debug, Clone)]
pub(super) struct Client {
    place: Place,
    verb: Verb,
    lease: Duration,
    ttl: Duration,
    digest: Option<[u8; 32]>,
    note: Note,
}

impl Client {
    pub(super) fn verb(mut self, verb: Verb) -> Self {
        self.verb = verb;
        self
    }

    pub(super) fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    pub(super) fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    pub(super) fn digest(mut self, digest: [u8; 32]) -> Self {
        self.digest = Some(digest);
        self
    }

    pub(super) fn message(mut self, message: &str) -> Self {
        self.note.message = Some(message.to_owned());
        self
    }

    pub(super) fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.place.clock = clock;
        self
    }

    pub(super) fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.place.store = store;
        self
    }

    /// One claim, as a delivery makes it.
    pub(super) async fn try_claim(&self) -> Result<Claimed, StoreError> {
        let mut ask = Ask::new(self.verb, self.lease, self.ttl, random::id());
        ask.digest = self.digest;
        ask.note = self.note.clone();
        claim(self.place.clone(), ask).await
    }

    /// The answer to a claim; while the store fails, the delivery comes again.
    pub(super) async fn ask(&self) -> Result<Claimed, Breach> {
        let mut patience = self.patience("a claim is answered");
        loop {
            match self.try_claim().await {
                Err(error) if error.is_transient() => patience.more().await?,
                answer => return Ok(answer?),
            }
        }
    }

    /// Wins the key and begins to work, as soon as nobody holds it.
    pub(super) async fn wins(&self) -> Result<Claim, Breach> {
        let mut patience = self.patience("the key can be claimed");
        loop {
            match self.ask().await? {
                Claimed::Won(mut claim) => {
                    claim.begin();
                    return Ok(claim);
                }
                Claimed::Held { .. } => patience.more().await?,
                // A mark that was given up under faults looks done until it is undone.
                Claimed::Done { .. } if self.verb == Verb::AtMostOnce => patience.more().await?,
                Claimed::Done { .. } => return Err(Breach::new("a key that is free was said to be done")),
                Claimed::Misuse { stands } => {
                    return Err(Breach::new(format!(
                        "a key that is free was said to be live under {stands}"
                    )));
                }
            }
        }
    }

    /// Is told that somebody holds the key, and for how long.
    pub(super) async fn is_held(&self) -> Result<Duration, Breach> {
        match self.ask().await? {
            Claimed::Held { left } => Ok(left),
            other => Err(Breach::new(format!("a key that is held was answered {}", short(other)))),
        }
    }

    /// Is told that the key is done, by whom, and whether with another payload.
    pub(super) async fn is_done(&self) -> Result<(Option<Receipt>, bool), Breach> {
        match self.ask().await? {
            Claimed::Done { receipt, conflict } => Ok((receipt, conflict)),
            other => Err(Breach::new(format!("a key that is done was answered {}", short(other)))),
        }
    }

    /// Is told that the key is live under another verb.
    pub(super) async fn is_misused(&self) -> Result<(), Breach> {
        match self.ask().await? {
            Claimed::Misuse { .. } => Ok(()),
            other => Err(Breach::new(format!("a key of another verb was answered {}", short(other)))),
        }
    }

    pub(super) fn completes(&self) -> Op {
        Op::Complete(self.note.clone())
    }

    fn patience(&self, what: &'static str) -> Patience {
        Patience { since: Stopwatch::start(&self.place.clock), what }
    }
}

fn short(claimed: Claimed) -> &'static str {
    match claimed {
        Claimed::Won(mut claim) => {
            claim.begin();
            "won"
        }
        Claimed::Held { .. } => "held",
        Claimed::Done { .. } => "done",
        Claimed::Misuse { .. } => "misuse",
    }
}

/// Carries out a holder's wish, as the guard does: again while the store fails.
pub(super) async fn put(claim: &mut Claim, op: &Op) -> Result<Commit, Breach> {
    let mut patience =
        Patience { since: Stopwatch::start(&claim.place.clock), what: "a holder's write is answered" };
    loop {
        match claim.write(op).await {
            Err(error) if error.is_transient() => patience.more().await?,
            answer => return Ok(answer?),
        }
    }
}

/// Carries out a holder's wish, which must be answered so.
pub(super) async fn expect(claim: &mut Claim, op: &Op, answer: Commit) -> Result<(), Breach> {
    let commit = put(claim, op).await?;
    must!(commit == answer, "{op:?} was answered {commit:?}, not {answer:?}");
    Ok(())
}

/// The progress of what a duplicate is told.
pub(super) fn progress(receipt: Option<&Receipt>) -> Option<Progress> {
    receipt.map(|receipt| receipt.progress)
}
