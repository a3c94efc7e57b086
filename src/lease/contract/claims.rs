//! Laws of claiming: who wins a key, when, and what the claim carries.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::json;

use super::client::{Client, expect, put};
use super::trial::{LONG, Trial};
use super::{Breach, must};
use crate::lease::{Claim, Claimed, Commit, Op};
use crate::store::record::{Ended, Record, State, Verb};
use crate::time::Clock;

/// How many claim at once.
const RACERS: usize = 8;

pub(super) async fn the_first_claim_of_a_key_wins(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let claim = t.client(&key).wins().await?;
    let stands = t.stands(&key).await?.record;
    must!(stands.state == State::Claimed, "a claimed key stands as {:?}", stands.state);
    must!(stands.holder == Some(claim.me), "the record names another holder than the one that won");
    must!(stands.fence == claim.record.fence && stands.fence > 0, "the holder was told another fence");
    Ok(())
}

pub(super) async fn a_live_claim_excludes_others(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut holder = t.client(&key).wins().await?;
    let before = t.stands(&key).await?;
    for _ in 0..3 {
        let left = t.client(&key).is_held().await?;
        must!(left <= LONG, "{left:?} are left of a lease of {LONG:?}");
    }
    must!(t.stands(&key).await?.version == before.version, "a claim that was refused wrote something");
    expect(&mut holder, &t.client(&key).completes(), Commit::Recorded).await
}

pub(super) async fn a_crashed_holder_heals_when_its_lease_lapses(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let crashed = t.client(&key).lease(t.short()).wins().await?;
    let successor = t.client(&key).wins().await?;
    must!(successor.record.fence > crashed.record.fence, "a take-over did not raise the fence");
    t.client(&key).is_held().await.map(drop)
}

pub(super) async fn a_released_key_is_claimed_at_once(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut first = t.client(&key).wins().await?;
    expect(&mut first, &Op::Release(Ended::Failed), Commit::Recorded).await?;
    let second = t.client(&key).wins().await?;
    must!(second.record.fence > first.record.fence, "a claim after a release did not raise the fence");
    Ok(())
}

pub(super) async fn of_many_claims_one_wins(t: &Trial) -> Result<(), Breach> {
    for round in 0..3 {
        let key = t.key(&format!("round {round}"))?;
        one_wins(&t.client(&key)).await?;
    }
    Ok(())
}

pub(super) async fn of_many_takeovers_one_wins(t: &Trial) -> Result<(), Breach> {
    for round in 0..2 {
        let key = t.key(&format!("round {round}"))?;
        t.client(&key).lease(t.short()).crashes().await?;
        t.ages(&key, t.short() + t.subject().grain()).await?;
        one_wins(&t.client(&key)).await?;
    }
    Ok(())
}

/// One wins at last, since a claim that failed comes again; and all others find it held.
async fn one_wins(client: &Client) -> Result<(), Breach> {
    let claims = join_all((0..RACERS).map(|_| client.ask())).await;
    let mut winners = Vec::new();
    for claim in claims {
        match claim? {
            Claimed::Won(mut claim) => {
                claim.begin();
                winners.push(claim);
            }
            Claimed::Held { .. } => {}
            Claimed::Done { .. } | Claimed::Misuse { .. } => {
                return Err(Breach::new("a racing claim was answered neither won nor held"));
            }
        }
    }
    must!(winners.len() <= 1, "{} of {RACERS} racing claims won", winners.len());
    // A claim that was given up may have kept all others out until it was undone.
    let mut winner = match winners.pop() {
        Some(winner) => winner,
        None => client.wins().await?,
    };
    client.is_held().await?;
    expect(&mut winner, &client.completes(), Commit::Recorded).await
}

pub(super) async fn a_mutex_cycles_and_is_never_done(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).verb(Verb::Mutex);
    let mut fence = 0;
    for round in 0..4 {
        let mut claim = client.wins().await?;
        must!(claim.record.fence > fence, "round {round} of a mutex did not raise the fence");
        fence = claim.record.fence;
        client.is_held().await?;
        let ended = if round % 2 == 0 { Ended::Fresh } else { Ended::Failed };
        expect(&mut claim, &Op::Release(ended), Commit::Recorded).await?;
        let state = t.stands(&key).await?.record.state;
        must!(state == State::Released, "a mutex that is through stands as {state:?}");
    }
    Ok(())
}

pub(super) async fn a_live_key_of_another_verb_is_misuse(t: &Trial) -> Result<(), Breach> {
    for (at, (stands, asked)) in [
        (Verb::Lock, Verb::Mutex),
        (Verb::AtMostOnce, Verb::Mutex),
        (Verb::Mutex, Verb::Lock),
        (Verb::Mutex, Verb::AtMostOnce),
    ]
    .into_iter()
    .enumerate()
    {
        let key = t.key(&format!("k{at}"))?;
        let mut claim = t.client(&key).verb(stands).wins().await?;
        t.client(&key).verb(asked).is_misused().await?;
        if stands == Verb::Lock {
            // Done is live too.
            expect(&mut claim, &t.client(&key).completes(), Commit::Recorded).await?;
            t.client(&key).verb(asked).is_misused().await?;
        }
        if stands == Verb::Mutex {
            // A released record is not live, and takes the verb of the next claim.
            expect(&mut claim, &Op::Release(Ended::Fresh), Commit::Recorded).await?;
            t.client(&key).verb(asked).crashes().await?;
            t.client(&key).verb(stands).is_misused().await?;
        }
    }
    let key = t.key("shared")?;
    t.client(&key).verb(Verb::Lock).crashes().await?;
    t.client(&key).verb(Verb::AtMostOnce).is_held().await.map(drop)
}

pub(super) async fn the_lease_and_ttl_that_count_are_the_records(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut holder = t.client(&key).wins().await?;
    t.ages(&key, t.short() + t.subject().grain()).await?;
    let impatient = t.client(&key).lease(t.short()).ttl(t.short());
    impatient.is_held().await?;
    expect(&mut holder, &impatient.completes(), Commit::Recorded).await?;
    t.ages(&key, t.short() + t.subject().grain()).await?;
    impatient.is_done().await.map(drop)
}

/// A clock that is that much ahead or behind.
#[derive(Debug)]
struct Skewed {
    inner: Arc<dyn Clock>,
    ahead: Duration,
    behind: Duration,
}

impl Clock for Skewed {
    fn wall(&self) -> SystemTime {
        self.inner.wall() + self.ahead - self.behind
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }
}

const HALF_A_DAY: Duration = Duration::from_secs(12 * 60 * 60);

fn ahead(t: &Trial) -> Arc<dyn Clock> {
    Arc::new(Skewed { inner: t.subject().clock(), ahead: HALF_A_DAY, behind: Duration::ZERO })
}

fn behind(t: &Trial) -> Arc<dyn Clock> {
    Arc::new(Skewed { inner: t.subject().clock(), ahead: Duration::ZERO, behind: HALF_A_DAY })
}

pub(super) async fn a_client_clock_decides_nothing(t: &Trial) -> Result<(), Breach> {
    let early = |key| t.client(key).clock(behind(t));
    let late = |key| t.client(key).clock(ahead(t));
    let live = t.key("live")?;
    early(&live).crashes().await?;
    late(&live).is_held().await?;
    let lapsed = t.key("lapsed")?;
    late(&lapsed).lease(t.short()).crashes().await?;
    early(&lapsed).crashes().await?;
    let done = t.key("done")?;
    let mut claim = early(&done).wins().await?;
    expect(&mut claim, &t.client(&done).completes(), Commit::Recorded).await?;
    late(&done).is_done().await.map(drop)
}

/// The fence as it stands in the store, which must be higher than before.
async fn rises(t: &Trial, claim: &Claim, before: &mut u64, what: &str) -> Result<(), Breach> {
    let fence = t.stands(&claim.place.key).await?.record.fence;
    must!(fence > *before, "{what} took the fence from {before} to {fence}");
    *before = fence;
    Ok(())
}

pub(super) async fn a_fence_rises_even_by_a_clock_that_is_behind(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    // The first writer is half a day ahead of all others: what they read, not their clock, has to carry the fence.
    let mut claim = t.client(&key).clock(ahead(t)).wins().await?;
    let mut fence = claim.record.fence;
    let others = t.client(&key).ttl(t.short());
    for _ in 0..2 {
        expect(&mut claim, &Op::Release(Ended::Failed), Commit::Recorded).await?;
        rises(t, &claim, &mut fence, "a release").await?;
        claim = others.clone().lease(t.short()).wins().await?;
        rises(t, &claim, &mut fence, "a claim after a release").await?;
        claim = others.wins().await?;
        rises(t, &claim, &mut fence, "a take-over").await?;
    }
    expect(&mut claim, &others.completes(), Commit::Recorded).await?;
    must!(t.stands(&key).await?.record.fence == fence, "a completion changed the fence");
    t.ages(&key, t.short() + t.subject().grain()).await?;
    claim = others.wins().await?;
    rises(t, &claim, &mut fence, "a claim after the ttl").await
}

// F59
pub(super) async fn a_fence_rises_across_deletion(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut fence = 0;
    for _ in 0..3 {
        let claim = t.client(&key).wins().await?;
        rises(t, &claim, &mut fence, "a claim after a deletion").await?;
        t.subject().forget(&key).await;
        // A fence counts microseconds; a later claim is later than that.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

pub(super) async fn what_the_lease_does_not_know_survives_it(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut kept = Record { state: State::Released, format: 101, ..t.record() };
    kept.data = Bytes::from_static(b"a task record");
    kept.unknown.insert("colour".into(), json!("blue"));
    let mut patience = t.patience("the record is planted");
    while t.store().swap(&key, None, &kept).await.is_err_and(|error| error.is_transient()) {
        patience.more().await?;
    }
    let client = t.client(&key);
    let ops = [Op::Renew, Op::Release(Ended::Failed), Op::Renew, client.completes()];
    let mut claim = None;
    for op in ops {
        let mut held: Claim = match claim.take() {
            Some(claim) => claim,
            None => client.wins().await?,
        };
        put(&mut held, &op).await?;
        if !matches!(op, Op::Release(_)) {
            claim = Some(held);
        }
        let stands = t.stands(&key).await?.record;
        must!(stands.format == kept.format, "after {op:?} the format is {}", stands.format);
        must!(stands.data == kept.data, "after {op:?} the data is {:?}", stands.data);
        must!(stands.unknown == kept.unknown, "after {op:?} the unknown fields are {:?}", stands.unknown);
    }
    Ok(())
}
