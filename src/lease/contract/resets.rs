//! Laws of a reset: the key is free, nobody can write as its former holder, and nobody else is met.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client::{Client, expect, put};
use super::lost::LOST;
use super::trial::{LONG, Trial};
use super::{Breach, must};
use crate::key::Key;
use crate::lease::operator::{Reset, reset_by};
use crate::lease::{Claim, Commit, Force, Op};
use crate::store::chaos::{Chaos, On};
use crate::store::record::{Ended, Record, State, Verb};
use crate::store::{BoxFuture, Store, StoreError, Stored, Swap, Version};

/// A reset as an operator makes it: again while the store fails.
async fn resets(t: &Trial, key: &Key, force: Force) -> Result<Reset, Breach> {
    let mut patience = t.patience("a reset is answered");
    loop {
        match reset_by(&t.subject().clock(), t.store(), key, force).await {
            Err(error) if error.is_transient() => patience.more().await?,
            answer => return Ok(answer?),
        }
    }
}

/// A reset that must leave the key free, and what it left.
async fn frees(t: &Trial, key: &Key, force: Force) -> Result<Record, Breach> {
    match resets(t, key, force).await? {
        // The reset before it may have landed although the store failed.
        Reset::Freed | Reset::Free => {}
        other => {
            return Err(Breach::new(format!("a reset that nothing is in the way of was answered {other:?}")));
        }
    }
    let record = t.stands(key).await?.record;
    must!(record.state == State::Released, "a key that was reset stands as {:?}", record.state);
    must!(record.holder.is_none(), "a key that was reset has a holder");
    Ok(record)
}

/// Holders that are to be reset, and whether it takes force.
async fn holders(t: &Trial) -> Result<Vec<(Claim, Force)>, Breach> {
    let mut holders = Vec::new();
    for verb in [Verb::Lock, Verb::Mutex, Verb::AtMostOnce] {
        let live = t.client(&t.key(&format!("{verb} live"))?).verb(verb);
        holders.push((live.wins().await?, Force::Yes));
        let lapsed = t.client(&t.key(&format!("{verb} lapsed"))?).verb(verb).lease(t.short());
        holders.push((lapsed.wins().await?, Force::No));
        if verb != Verb::Mutex {
            let done = t.client(&t.key(&format!("{verb} done"))?).verb(verb);
            let claim = done.wins().await?;
            // The one that is kept does not know that it is done, as after a lost answer.
            expect(&mut claim.twin(), &done.completes(), Commit::Recorded).await?;
            holders.push((claim, Force::No));
        }
    }
    for (claim, _) in &holders {
        if claim.record.lease == t.short() {
            t.ages(&claim.place.key, t.short() + t.subject().grain()).await?;
        }
    }
    Ok(holders)
}

pub(super) async fn a_reset_fences_its_holder_out(t: &Trial) -> Result<(), Breach> {
    for (claim, force) in holders(t).await? {
        let key = claim.place.key.clone();
        frees(t, &key, force).await?;
        let before = t.stands(&key).await?;
        expect(&mut claim.twin(), &t.client(&key).completes(), Commit::FencedOut).await?;
        for op in [Op::Renew, Op::Release(Ended::Failed), Op::Undo(None)] {
            // The holder of a mark takes it for done already, and asks nobody.
            let commit = put(&mut claim.twin(), &op).await?;
            must!(commit != Commit::Recorded, "{op:?} of a holder of {key} that was reset was {commit:?}");
        }
        must!(t.stands(&key).await?.version == before.version, "a holder that was reset wrote to {key}");
    }
    Ok(())
}

pub(super) async fn a_reset_raises_the_fence_and_deletes_nothing(t: &Trial) -> Result<(), Breach> {
    let nothing = t.key("nothing")?;
    must!(resets(t, &nothing, Force::Yes).await? == Reset::Free, "there was nothing to reset");
    must!(t.read(&nothing).await?.is_none(), "a reset of nothing left something");
    for (claim, force) in holders(t).await? {
        let key = &claim.place.key;
        let record = frees(t, key, force).await?;
        let (before, after) = (claim.record.fence, record.fence);
        must!(after > before, "a reset of {key} took the fence from {before} to {after}");
        let version = t.stands(key).await?.version;
        must!(resets(t, key, Force::Yes).await? == Reset::Free, "a key that is released was reset");
        must!(t.stands(key).await?.version == version, "a reset of a released key wrote something");
    }
    Ok(())
}

pub(super) async fn a_live_claim_is_reset_only_when_forced(t: &Trial) -> Result<(), Breach> {
    for verb in [Verb::Lock, Verb::Mutex, Verb::AtMostOnce] {
        let key = t.key(&verb.to_string())?;
        let client = t.client(&key).verb(verb);
        let mut claim = client.wins().await?;
        let before = t.stands(&key).await?;
        match resets(t, &key, Force::No).await? {
            Reset::Held { left } => must!(left <= LONG, "{left:?} are left of a lease of {LONG:?}"),
            other => return Err(Breach::new(format!("a reset of a live {verb} was answered {other:?}"))),
        }
        must!(t.stands(&key).await?.version == before.version, "a reset that was refused wrote something");
        let op = Op::Undo(claim.found());
        expect(&mut claim, &op, Commit::Recorded).await?;
        client.crashes().await?;
        let record = frees(t, &key, Force::Yes).await?;
        let history = (record.ended, record.runs);
        must!(history == (Ended::Unknown, 1), "a live {verb} that was reset left the history {history:?}");
    }
    Ok(())
}

pub(super) async fn a_key_that_was_reset_runs_again(t: &Trial) -> Result<(), Breach> {
    for (claim, force) in holders(t).await? {
        let key = claim.place.key.clone();
        frees(t, &key, force).await?;
        let client = t.client(&key).verb(claim.record.verb);
        let mut next = client.wins().await?;
        let history = (next.record.ended, next.record.runs);
        must!(history == (Ended::Unknown, 1), "after a reset {key} has the history {history:?}");
        let op = if next.record.verb == Verb::Mutex { Op::Release(Ended::Fresh) } else { client.completes() };
        expect(&mut next, &op, Commit::Recorded).await?;
    }
    let key = t.key("expired")?;
    let client = t.client(&key).ttl(t.short());
    expect(&mut client.wins().await?, &client.completes(), Commit::Recorded).await?;
    t.ages(&key, t.short() + t.subject().grain()).await?;
    frees(t, &key, Force::No).await?;
    let next = client.wins().await?;
    let history = (next.record.ended, next.record.runs);
    must!(history == (Ended::Fresh, 0), "an occurrence that was over, and reset, left {history:?}");
    Ok(())
}

pub(super) async fn a_reset_whose_answer_was_lost_is_made_once(t: &Trial) -> Result<(), Breach> {
    for (at, fault) in LOST.into_iter().enumerate() {
        let key = t.key(&format!("k{at}"))?;
        let client = t.client(&key);
        let mut claim = client.wins().await?;
        expect(&mut claim, &client.completes(), Commit::Recorded).await?;
        let chaos = Chaos::new(t.store().clone());
        chaos.next(On::Release, fault);
        let answer = reset_by(&t.subject().clock(), &chaos, &key, Force::No).await?;
        must!(!chaos.has_next(), "{fault:?} met no reset");
        must!(answer == Reset::Freed, "a reset that met {fault:?} was answered {answer:?}");
        let mut next = client.wins().await?;
        must!(next.record.runs == 1, "{fault:?}: one run was counted {} times", next.record.runs);
        let before = t.stands(&key).await?;
        // A sign that cannot be seen: the late write leaves nothing behind. So wait well past its time.
        t.ages(&key, t.short() + t.subject().grain()).await?;
        must!(t.stands(&key).await?.version == before.version, "{fault:?}: the reset was made twice");
        expect(&mut next, &client.completes(), Commit::Recorded).await?;
    }
    Ok(())
}

/// When somebody takes the key while it is being reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// Before the write, which loses.
    Before,
    /// After the write, whose answer is lost.
    After,
}

/// A store on which a successor takes the key in the middle of the first reset.
#[derive(Debug)]
struct Overtaking {
    inner: Arc<dyn Store>,
    successor: Client,
    taken: Taken,
    completes: bool,
    over: AtomicBool,
}

impl Overtaking {
    async fn take(&self) -> Result<(), StoreError> {
        let failed = |breach: Breach| StoreError::Corrupt { what: breach.to_string() };
        let mut claim = self.successor.wins().await.map_err(failed)?;
        if self.completes {
            let op = self.successor.completes();
            expect(&mut claim, &op, Commit::Recorded).await.map_err(failed)?;
        }
        Ok(())
    }
}

impl Store for Overtaking {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.inner.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            if self.over.swap(true, Ordering::SeqCst) {
                return self.inner.swap(key, seen, next).await;
            }
            if self.taken == Taken::Before {
                self.take().await?;
            }
            let answer = self.inner.swap(key, seen, next).await;
            if self.taken == Taken::After {
                self.take().await?;
                return Err(StoreError::unanswered("a lost answer"));
            }
            answer
        })
    }
}

pub(super) async fn a_reset_never_meets_who_came_after(t: &Trial) -> Result<(), Breach> {
    for (at, (taken, completes)) in
        [(Taken::Before, false), (Taken::Before, true), (Taken::After, false), (Taken::After, true)]
            .into_iter()
            .enumerate()
    {
        let key = t.key(&format!("k{at}"))?;
        t.client(&key).lease(t.short()).crashes().await?;
        t.ages(&key, t.short() + t.subject().grain()).await?;
        let store = Overtaking {
            inner: t.store().clone(),
            successor: t.client(&key),
            taken,
            completes,
            over: false.into(),
        };
        let answer = reset_by(&t.subject().clock(), &store, &key, Force::Yes).await?;
        must!(answer == Reset::Overtaken, "a reset that was overtaken {taken:?} was answered {answer:?}");
        if completes {
            t.client(&key).is_done().await?;
        } else {
            t.client(&key).is_held().await?;
        }
    }
    Ok(())
}
