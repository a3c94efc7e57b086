//! What the laws share: fresh keys, clients that claim, and waiting for a condition.

use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
use super::{Breach, Subject, must};
use crate::key::{Consumer, Key, join};
use crate::lease::Place;
use crate::random;
use crate::store::record::{Ended, Progress, Receipt, Record, State, Verb};
use crate::store::{Store, Stored, Swap, Version};
use crate::time::{Clock, Stopwatch, micros};

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
    /// What sets its keys apart in a space that all runs share.
    scope: Option<String>,
}

impl std::fmt::Debug for dyn Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store().fmt(f)
    }
}

impl Trial {
    pub(super) fn new(subject: Arc<dyn Subject>, store: Arc<dyn Store>) -> Self {
        let run = format!("law-{}", random::id());
        let (consumer, scope) = match subject.space() {
            Some(space) => (Consumer::reserved(space), Some(run)),
            // A plain name, and the id makes it fit.
            None => (Consumer::new(run).unwrap_or_default(), None),
        };
        Self { subject, store, consumer, scope }
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

    /// What every key of this run begins with, as it is shown.
    pub(super) fn prefix(&self) -> String {
        let scope = self.scope.iter().map(|scope| format!("{}.{scope}|", scope.len()));
        format!("{}:{}", self.consumer, scope.collect::<String>())
    }

    pub(super) fn key(&self, text: &str) -> Result<Key, Breach> {
        let text = self
            .scope
            .as_ref()
            .map_or_else(|| text.to_owned(), |scope| join(&[scope.clone(), text.to_owned()]));
        Key::new(self.consumer.clone(), text).map_err(|error| Breach::new(error.to_string()))
    }

    /// A record with something in most of its fields, a fresh token, and written now.
    pub(super) fn record(&self) -> Record {
        Record {
            state: State::Claimed,
            fence: 7,
            holder: Some(random::id()),
            token: random::id(),
            ended: Ended::Failed,
            runs: 3,
            written: micros(self.subject.clock().wall()),
            // Far in the future, so that no garbage collection meets the law.
            expires: 4_000_000_000_000_000,
            ..Record::blank(Verb::Lock, LONG, LONG)
        }
    }

    /// A client of the key: `lock`, with a lease and a ttl that do not lapse.
    pub(super) fn client(&self, key: &Key) -> Client {
        let place = Place { store: self.store.clone(), key: key.clone(), clock: self.subject.clock() };
        Client::new(place)
    }

    pub(super) fn stopwatch(&self) -> Stopwatch {
        Stopwatch::start(&self.subject.clock())
    }

    pub(super) fn patience(&self, what: &'static str) -> Patience {
        Patience::new(&self.subject.clock(), what)
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

/// Waits for a condition, in small steps, and not for ever.
#[derive(Debug)]
pub(super) struct Patience {
    since: Stopwatch,
    what: &'static str,
}

impl Patience {
    pub(super) fn new(clock: &Arc<dyn Clock>, what: &'static str) -> Self {
        Self { since: Stopwatch::start(clock), what }
    }

    pub(super) async fn more(&mut self) -> Result<(), Breach> {
        must!(self.since.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {}", self.what);
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }
}

/// The progress of what a duplicate is told.
pub(super) fn progress(receipt: Option<&Receipt>) -> Option<Progress> {
    receipt.map(|receipt| receipt.progress)
}
