//! Claiming a key: a conditional create first, then whatever stands is decided anew, within a third of the lease.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::machine::{self, Ask, Commit, Verdict};
use super::planted::{Fault, planted};
use super::{NOBODY, Place, TRIES, claim_limit, pause, undo};
use crate::store::record::{Id, Receipt, Record, State, Verb};
use crate::store::{Standing, StoreError, Stored, Swap, Version};
use crate::time::{Stopwatch, within};

/// What a claim came to.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// The key is ours.
    Won(Claim),
    /// Somebody works on it, for this much longer at most.
    Held { left: Duration },
    /// It is recorded; `conflict` if the payload was another.
    Done { receipt: Option<Receipt>, conflict: bool },
    /// A live record of a verb that excludes the asked one.
    Misuse { stands: Verb },
}

/// A key that we hold: the record as we know it, and the version by which we may change it.
///
/// Dropped before the work began, it is given back in the background; dropped later, it is left to lapse.
#[derive(Debug)]
#[must_use = "a claim that is dropped is given back"]
pub(crate) struct Claim {
    pub(super) place: Arc<Place>,
    /// Our holder: what makes a record ours, whatever was written since.
    pub(super) me: Id,
    /// Our fence: once we are fenced out the record shows that of whoever has the key.
    pub(super) fence: u64,
    // Behind a pointer, since it is handed from future to future.
    pub(super) record: Box<Record>,
    pub(super) version: Version,
    /// What the key's duplicates were told before, for an undo.
    pub(super) found: Option<Receipt>,
    /// Since before the write that won, or that renewed, was first sent.
    pub(super) since: Stopwatch,
    pub(super) idle: bool,
}

impl Claim {
    /// What is left of the lease, as its holder counts it.
    pub(crate) fn left(&self) -> Duration {
        self.record.lease.saturating_sub(self.since.elapsed())
    }

    /// How long nobody else may take the key, as its holder counts it: a mark is never taken over before its ttl is over.
    pub(crate) fn excludes(&self) -> Duration {
        match self.record.verb {
            Verb::AtMostOnce => self.record.ttl.saturating_sub(self.since.elapsed()),
            Verb::Lock | Verb::Mutex => self.left(),
        }
    }

    /// Whether enough of the lease is left to begin work: more than half, or all of a mark's ttl.
    pub(crate) fn is_fresh(&self) -> bool {
        self.record.verb == Verb::AtMostOnce || self.left() > self.record.lease / 2
    }

    /// The work begins: from here a crash is a run that nobody knows the end of.
    pub(crate) fn begin(&mut self) {
        self.idle = false;
    }

    /// The same claim, for a background task that settles it.
    pub(super) fn twin(&self) -> Self {
        Self {
            place: self.place.clone(),
            me: self.me,
            fence: self.fence,
            record: self.record.clone(),
            version: self.version.clone(),
            found: self.found.clone(),
            since: self.since.clone(),
            idle: false,
        }
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// The fence of its run, whoever has the key by now.
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// What duplicates were told before this claim.
    pub(crate) fn found(&self) -> Option<Receipt> {
        self.found.clone()
    }

    pub(crate) fn since(&self) -> &Stopwatch {
        &self.since
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.idle {
            undo::give_back(self);
        }
    }
}

/// Claims the key. A mutex reads first, since its key usually stands; every other claim is first
/// tried as a create, which is the one trip of a first message.
///
/// # Errors
/// [`StoreError`] if the store failed or took longer than a third of the lease. A write that may
/// land later is undone in the background; the work must not start: 503.
pub(crate) async fn claim(place: Arc<Place>, mut ask: Ask) -> Result<Claimed, StoreError> {
    if planted(Fault::NoToken) {
        ask.holder = NOBODY;
    }
    let limit = claim_limit(ask.lease);
    // What is rare is boxed below, so that the common claim carries little state.
    let mut attempt = Attempt { place, ask, standing: None, found: None, since: None, sent: false };
    let claimed = within(limit, pin!(attempt.run())).await;
    match claimed.unwrap_or_else(|| {
        Err(StoreError::unanswered(format!("no claim within {limit:?}, a third of the lease")))
    }) {
        Ok(Claimed::Won(claim)) => attempt.checked(claim).await,
        // Whatever is answered, a write of ours that may still land has nobody who works on it.
        answer => {
            attempt.abandon();
            answer
        }
    }
}

struct Attempt {
    place: Arc<Place>,
    ask: Ask,
    /// What stands, as far as we know: the condition of the next write.
    standing: Option<Box<Stored>>,
    /// What the key's duplicates were told when the last write was sent. Our own mark, once it
    /// landed, says nothing of that.
    found: Option<Receipt>,
    /// Since before the first write was sent that may have won.
    since: Option<Stopwatch>,
    /// Whether a write on `standing` was sent and may still land.
    sent: bool,
}

impl Attempt {
    async fn run(&mut self) -> Result<Claimed, StoreError> {
        if self.ask.verb == Verb::Mutex {
            Box::pin(self.look(0)).await?;
        }
        for tries in 0.. {
            if let Some(claim) = self.own() {
                return Ok(Claimed::Won(claim));
            }
            let next = match machine::claim(&self.ask, self.standing.as_deref(), self.place.stamp()) {
                Verdict::Take(next) => next,
                Verdict::Held { left } => return Ok(Claimed::Held { left }),
                Verdict::Done { receipt, conflict } => return Ok(Claimed::Done { receipt, conflict }),
                Verdict::Misuse { stands } => return Ok(Claimed::Misuse { stands }),
            };
            if tries >= TRIES {
                return Err(StoreError::unanswered(format!("the claim was not decided in {TRIES} tries")));
            }
            let earlier = self.sent;
            if !earlier {
                self.since = Some(Stopwatch::start(&self.place.clock));
            }
            self.sent = true;
            self.found = self.standing.as_ref().and_then(|stored| stored.record.receipt.clone());
            let seen = self.standing.as_ref().map(|stored| &stored.version);
            let answer = self.place.swap(seen, &next).await;
            // What was answered for certain cannot land later; an earlier write on this condition still may.
            self.sent = earlier || answer.as_ref().is_err_and(StoreError::may_have_written);
            match answer {
                Ok(Swap::Written(version)) => return Ok(Claimed::Won(self.won(next, version))),
                Ok(Swap::Lost(Standing::Is(stored))) => self.stands(Some(stored)),
                Ok(Swap::Lost(Standing::Absent)) => {
                    self.stands(None);
                    pause(tries).await;
                }
                Ok(Swap::Lost(Standing::Unknown)) => {
                    if tries > 0 {
                        pause(tries).await;
                    }
                    Box::pin(self.look(tries)).await?;
                }
                Err(error) if error.is_transient() => {
                    if tries + 1 >= TRIES {
                        return Err(error);
                    }
                    pause(tries).await;
                    Box::pin(self.look(tries)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        // The loop has no end but the returns above.
        Err(StoreError::unanswered("the claim was not decided"))
    }

    /// Reads what stands, and tries again while the store fails.
    async fn look(&mut self, mut tries: u32) -> Result<(), StoreError> {
        loop {
            match self.place.read().await {
                Ok(standing) => {
                    self.stands(standing.map(Box::new));
                    return Ok(());
                }
                Err(error) if error.is_transient() && tries < TRIES => pause(tries).await,
                Err(error) => return Err(error),
            }
            tries += 1;
        }
    }

    /// Another record than before makes every write that was sent impossible, unless it is our own.
    fn stands(&mut self, standing: Option<Box<Stored>>) {
        let version = |stored: &Option<Box<Stored>>| stored.as_ref().map(|stored| stored.version.clone());
        let ours = standing.as_ref().is_some_and(|stored| stored.record.holder == Some(self.ask.holder));
        if version(&standing) != version(&self.standing) && !ours {
            self.sent = false;
        }
        self.standing = standing;
    }

    /// Our own claim, that landed although its answer was lost: known by the holder, whatever was written since.
    fn own(&self) -> Option<Claim> {
        let stored = self.standing.as_ref()?;
        let ours = stored.record.holder == Some(self.ask.holder) && stored.record.state != State::Released;
        ours.then(|| self.won(Box::new(stored.record.clone()), stored.version.clone()))
    }

    fn won(&self, record: Box<Record>, version: Version) -> Claim {
        let found = self.found.clone();
        let since = self.since.clone().unwrap_or_else(|| Stopwatch::start(&self.place.clock));
        let (place, me, fence) = (self.place.clone(), self.ask.holder, record.fence);
        Claim { place, me, fence, record, version, found, since, idle: true }
    }

    /// A win counts only while more than half of its lease is left; else the lease is renewed first.
    async fn checked(&self, mut claim: Claim) -> Result<Claimed, StoreError> {
        if planted(Fault::StaleWin) {
            return Ok(Claimed::Won(claim));
        }
        for _ in 0..2 {
            if claim.is_fresh() {
                return Ok(Claimed::Won(claim));
            }
            match Box::pin(claim.renew()).await? {
                Commit::Recorded => {}
                Commit::AlreadyDone | Commit::FencedOut => break,
            }
        }
        if claim.is_fresh() {
            return Ok(Claimed::Won(claim));
        }
        // Dropping the claim gives it back.
        Err(StoreError::unavailable(format!(
            "it answers too slowly for a lease of {:?}: less than half of it was left when the claim was known",
            self.ask.lease
        )))
    }

    fn abandon(self) {
        if self.sent {
            undo::forestall(self.place, self.ask, self.standing);
        }
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
