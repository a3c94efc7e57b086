//! Laws of claims that nobody works on: undone by a write on the same condition, never by a look alone.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::client::{Client, expect};
use super::trial::{LONG, Trial, progress};
use super::{Breach, must};
use crate::key::Key;
use crate::lease::{Claimed, Commit, Op};
use crate::store::chaos::{Chaos, Fault, On};
use crate::store::record::{Ended, Progress, Record, State, Verb};
use crate::store::{BoxFuture, Store, StoreError, Stored, Swap, Version};
use crate::time::Clock;

/// More than a busy machine takes between a claim that is given up and its undo.
const NOISE: Duration = Duration::from_secs(1);

/// A claim that fails for want of an answer, over a store that cannot be read for a while either.
async fn gives_up(t: &Trial, client: &Client, fault: Fault) -> Result<Arc<Chaos>, Breach> {
    let chaos = Chaos::new(t.store().clone());
    chaos.always(On::Claim, fault);
    // A refusal is not tried again, so the claim gives up at once, before a late write of it lands.
    chaos.always(On::Read, Fault::Refuse);
    match client.clone().store(chaos.clone()).try_claim().await {
        Err(_) => {}
        other => return Err(Breach::new(format!("a claim that nobody can know of was answered {other:?}"))),
    }
    chaos.heal();
    Ok(chaos)
}

/// Waits until nobody's claim or mark stands under the key; an abandoned one must not wait for its lease.
async fn is_free(t: &Trial, key: &Key) -> Result<Option<Record>, Breach> {
    let mut patience = t.patience("an abandoned claim is undone");
    loop {
        match t.read(key).await? {
            Some(stored) if stored.record.state != State::Released => patience.more().await?,
            stored => return Ok(stored.map(|stored| stored.record)),
        }
    }
}

pub(super) async fn a_claim_that_was_given_up_leaves_the_key_free(t: &Trial) -> Result<(), Breach> {
    for (at, fault) in [Fault::LoseAnswer, Fault::Late(t.short())].into_iter().enumerate() {
        let key = t.key(&format!("k{at}"))?;
        gives_up(t, &t.client(&key), fault).await?;
        let mut patience = t.patience("an abandoned claim is undone");
        let free = loop {
            match is_free(t, &key).await? {
                Some(record) => break record,
                None => patience.more().await?,
            }
        };
        must!(free.runs == 0 && free.ended == Ended::Fresh, "a claim that nobody worked on left a history");
        let claim = t.client(&key).wins().await?;
        must!(claim.record.runs == 0, "a claim that nobody worked on was counted as a run");
    }
    Ok(())
}

pub(super) async fn a_create_that_lands_late_is_made_impossible(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let late = t.short() * 2 + NOISE;
    gives_up(t, &t.client(&key), Fault::Late(late)).await?;
    let mut patience = t.patience("something stands that makes the create impossible");
    while t.read(&key).await?.is_none() {
        patience.more().await?;
    }
    is_free(t, &key).await?;
    let before = t.stands(&key).await?;
    t.ages(&key, before.age + late + NOISE).await?;
    must!(t.stands(&key).await?.version == before.version, "a create that was given up landed");
    Ok(())
}

pub(super) async fn a_takeover_that_was_given_up_leaves_the_holder_its_claim(
    t: &Trial,
) -> Result<(), Breach> {
    let key = t.key("k")?;
    let late = t.short() * 2 + NOISE;
    let mut holder = t.client(&key).lease(t.short()).wins().await?;
    let before = t.ages(&key, t.short() + t.subject().grain()).await?;
    let chaos = Chaos::new(t.store().clone());
    // The create that is tried first says what stands, or a read does; the take-over is lost.
    chaos.next(On::Claim, Fault::Fail);
    chaos.always(On::Claim, Fault::Late(late));
    let taker = t.client(&key).store(chaos.clone());
    let mut claim = pin!(taker.try_claim());
    let gave_up = loop {
        tokio::select! {
            biased;
            answer = &mut claim => break answer,
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
        // Once the take-over was sent, nothing can be read any more.
        if chaos.trips().swaps >= 2 {
            chaos.always(On::Read, Fault::Refuse);
        }
    };
    must!(gave_up.is_err(), "a take-over that nobody can know of was answered {gave_up:?}");
    chaos.heal();
    let mut patience = t.patience("an abandoned take-over is undone");
    let undone = loop {
        let stored = t.stands(&key).await?;
        if stored.version != before.version {
            break stored;
        }
        patience.more().await?;
    };
    let record = &undone.record;
    must!(
        record.holder == Some(holder.me),
        "an undone take-over left another holder than the one that stood"
    );
    must!(record.state == State::Claimed, "an undone take-over left the key {:?}", record.state);
    must!(record.fence == before.record.fence, "an undone take-over changed the fence");
    must!(
        record.aged + t.subject().grain() >= before.age,
        "an undone take-over made a claim of {:?} only {:?} old",
        before.age,
        record.aged
    );
    t.ages(&key, undone.age + late + NOISE).await?;
    expect(&mut holder, &t.client(&key).completes(), Commit::Recorded).await?;
    t.client(&key).is_done().await.map(drop)
}

pub(super) async fn a_mark_that_cannot_be_read_back_is_undone(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).verb(Verb::AtMostOnce);
    gives_up(t, &client, Fault::LoseAnswer).await?;
    let free = is_free(t, &key).await?;
    must!(
        free.is_some_and(|record| record.receipt.is_none()),
        "an undone mark left nothing, or a receipt that nobody wrote"
    );
    client.wins().await.map(drop)
}

pub(super) async fn a_dropped_claim_is_given_back_as_it_was_found(t: &Trial) -> Result<(), Breach> {
    for (at, (verb, fault)) in
        [(Verb::Lock, None), (Verb::AtMostOnce, None), (Verb::AtMostOnce, Some(Fault::LoseAnswer))]
            .into_iter()
            .enumerate()
    {
        let key = t.key(&format!("k{at}"))?;
        // A first occurrence is done, and a second fails; then the one that is dropped.
        let first = t.client(&key).ttl(t.short()).message("first");
        let mut claim = first.wins().await?;
        expect(&mut claim, &first.completes(), Commit::Recorded).await?;
        t.ages(&key, t.short() + t.subject().grain()).await?;
        let mut second = first.wins().await?;
        expect(&mut second, &Op::Release(Ended::Failed), Commit::Recorded).await?;

        let chaos = Chaos::new(t.store().clone());
        chaos.next(On::Claim, Fault::Fail);
        if let Some(fault) = fault {
            chaos.next(On::Claim, fault);
        }
        let dropped = t.client(&key).verb(verb).message("dropped").store(chaos.clone());
        match dropped.try_claim().await? {
            Claimed::Won(claim) => drop(claim),
            other => return Err(Breach::new(format!("a released key was answered {other:?}"))),
        }
        must!(!chaos.has_next(), "{fault:?} met no claim");
        let Some(free) = is_free(t, &key).await? else {
            return Err(Breach::new("a claim that was given back was deleted"));
        };
        must!(free.fence > second.record.fence, "giving a claim back did not raise the fence");
        let found = (free.ended, free.runs);
        must!(found == (Ended::Failed, 1), "a {verb} that was given back left the history {found:?}");
        let receipt = free.receipt;
        must!(
            progress(receipt.as_ref()) == Some(Progress::Finished)
                && receipt.as_ref().is_some_and(|receipt| receipt.message.as_deref() == Some("first")),
            "a {verb} that was given back left the receipt {receipt:?}"
        );
    }
    Ok(())
}

/// A machine that is suspended during its calls: its wall clock jumps, its other clocks do not see it.
#[derive(Debug)]
struct Suspended {
    inner: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    times: AtomicU64,
    slept: AtomicU64,
    each: Duration,
}

impl Suspended {
    fn new(t: &Trial, times: u64, each: Duration) -> Arc<Self> {
        Arc::new(Self {
            inner: t.store().clone(),
            clock: t.subject().clock(),
            times: times.into(),
            slept: 0.into(),
            each,
        })
    }
}

impl Clock for Suspended {
    fn wall(&self) -> SystemTime {
        self.clock.wall() + Duration::from_micros(self.slept.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

impl Store for Suspended {
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
            let answer = self.inner.swap(key, seen, next).await;
            let times = self.times.load(Ordering::SeqCst);
            if times > 0 {
                self.times.store(times - 1, Ordering::SeqCst);
                self.slept.fetch_add(crate::time::duration_micros(self.each), Ordering::SeqCst);
            }
            answer
        })
    }
}

pub(super) async fn a_win_counts_only_with_half_its_lease_left(t: &Trial) -> Result<(), Breach> {
    for slept in [LONG / 2, LONG * 6 / 10] {
        let once = Suspended::new(t, 1, slept);
        let client = t.client(&t.key(&format!("once {slept:?}"))?).store(once.clone()).clock(once);
        let mut claim = client.wins().await?;
        must!(claim.left() > LONG / 2, "a win counted with {:?} of {LONG:?} left", claim.left());
        expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    }

    // Suspended at each renewal too: it must not work, and must not keep the key.
    let key = t.key("always")?;
    let always = Suspended::new(t, 3, LONG * 6 / 10);
    let client = t.client(&key).store(always.clone()).clock(always);
    match client.try_claim().await {
        Err(error) if error.is_transient() => {}
        other => return Err(Breach::new(format!("a win without half of its lease was answered {other:?}"))),
    }
    let free = is_free(t, &key).await?;
    must!(free.is_some_and(|record| record.runs == 0), "a win that did not count left a run, or nothing");
    Ok(())
}
