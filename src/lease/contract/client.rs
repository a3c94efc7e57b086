//! Somebody who claims a key, as a delivery does: again while the store fails.

use std::sync::Arc;
use std::time::Duration;

use super::trial::{LONG, Patience};
use super::{Breach, must};
use crate::lease::machine::{Ask, Note};
use crate::lease::{Claim, Claimed, Commit, Op, Place, claim};
use crate::random;
use crate::store::record::{Receipt, Verb};
use crate::store::{Store, StoreError};
use crate::time::Clock;

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
    /// `lock`, with a lease and a ttl that do not lapse.
    pub(super) fn new(place: Place) -> Self {
        Self { place, verb: Verb::Lock, lease: LONG, ttl: LONG, digest: None, note: Note::default() }
    }

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
        self.note.message = Some(message.into());
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
        claim(Arc::new(self.place.clone()), ask).await
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

    /// Wins the key, begins to work, and is never heard of again.
    pub(super) async fn crashes(&self) -> Result<(), Breach> {
        self.wins().await.map(drop)
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

    pub(super) fn rejects(&self) -> Op {
        Op::Reject(self.note.clone())
    }

    fn patience(&self, what: &'static str) -> Patience {
        Patience::new(&self.place.clock, what)
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
    let mut patience = Patience::new(&claim.place.clock, "a holder's write is answered");
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
