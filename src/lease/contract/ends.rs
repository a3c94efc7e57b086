//! Laws of what a holder writes: complete, renew, release; and of what the next claim finds.

use std::time::Duration;

use super::client::expect;
use super::trial::{LONG, Trial, progress};
use super::{Breach, must};
use crate::key::Key;
use crate::lease::{Commit, Op};
use crate::store::record::{Ended, Progress, State, Verb};
use crate::time::{duration_micros, micros};

pub(super) async fn a_completed_key_skips_duplicates_with_its_receipt(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).message("m-1");
    let mut claim = client.wins().await?;
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    let before = t.stands(&key).await?;
    must!(before.record.fence == claim.record.fence, "a completion changed the fence");
    for _ in 0..2 {
        let (receipt, conflict) = t.client(&key).message("m-2").is_done().await?;
        must!(progress(receipt.as_ref()) == Some(Progress::Finished), "a duplicate was told {receipt:?}");
        let message = receipt.and_then(|receipt| receipt.message);
        must!(message.as_deref() == Some("m-1"), "a duplicate was told of the message {message:?}");
        must!(!conflict, "a payload that nobody checks was in conflict");
    }
    must!(t.stands(&key).await?.version == before.version, "a duplicate wrote something");
    Ok(())
}

pub(super) async fn a_rejected_key_skips_duplicates_as_rejected(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).lease(t.short()).message("m-1");
    let mut claim = client.wins().await?;
    // As late as a completion may be.
    t.ages(&key, t.short() + t.subject().grain()).await?;
    expect(&mut claim, &client.rejects(), Commit::Recorded).await?;
    let before = t.stands(&key).await?;
    must!(before.record.fence == claim.record.fence, "a rejection changed the fence");
    for _ in 0..2 {
        let (receipt, _) = t.client(&key).message("m-2").is_done().await?;
        must!(progress(receipt.as_ref()) == Some(Progress::Rejected), "a duplicate was told {receipt:?}");
        let message = receipt.and_then(|receipt| receipt.message);
        must!(message.as_deref() == Some("m-1"), "a duplicate was told of the message {message:?}");
        expect(&mut claim, &client.rejects(), Commit::Recorded).await?;
    }
    must!(t.stands(&key).await?.version == before.version, "a rejected key was written again");
    Ok(())
}

pub(super) async fn a_done_key_is_free_after_its_ttl(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).ttl(t.short());
    let mut first = client.wins().await?;
    expect(&mut first, &client.completes(), Commit::Recorded).await?;
    t.ages(&key, t.short() + t.subject().grain()).await?;
    let second = client.wins().await?;
    must!(second.record.fence > first.record.fence, "a new occurrence did not raise the fence");
    let (ended, runs) = (second.record.ended, second.record.runs);
    must!(ended == Ended::Fresh && runs == 0, "a new occurrence found the history {ended:?}, {runs} runs");
    Ok(())
}

pub(super) async fn a_late_completion_is_recorded(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).lease(t.short());
    let mut claim = client.wins().await?;
    let lapsed = t.ages(&key, t.short() + t.subject().grain()).await?;
    must!(claim.left().is_zero(), "a lease that lapsed {:?} ago is not over for its holder", lapsed.age);
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    client.is_done().await.map(drop)
}

pub(super) async fn completing_twice_does_not_slide_the_window(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key);
    let mut claim = client.wins().await?;
    let mut unaware = claim.twin();
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    let before = t.stands(&key).await?;
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    expect(&mut unaware, &client.completes(), Commit::Recorded).await?;
    must!(t.stands(&key).await?.version == before.version, "a second completion was written");
    Ok(())
}

pub(super) async fn a_done_key_is_neither_renewed_nor_released(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key);
    let mut claim = client.wins().await?;
    let unaware = claim.twin();
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    let before = t.stands(&key).await?;
    for op in [Op::Renew, Op::Release(Ended::Failed), Op::Undo(None)] {
        expect(&mut claim.twin(), &op, Commit::AlreadyDone).await?;
        expect(&mut unaware.twin(), &op, Commit::AlreadyDone).await?;
    }
    must!(t.stands(&key).await?.version == before.version, "a done key was written");
    client.is_done().await.map(drop)
}

pub(super) async fn a_release_never_deletes(t: &Trial) -> Result<(), Breach> {
    for (verb, ended) in [(Verb::Lock, Ended::Failed), (Verb::Mutex, Ended::Fresh)] {
        let key = t.key(&verb.to_string())?;
        let mut claim = t.client(&key).verb(verb).wins().await?;
        let fence = claim.record.fence;
        expect(&mut claim, &Op::Release(ended), Commit::Recorded).await?;
        let stands = t.stands(&key).await?.record;
        must!(stands.state == State::Released, "a released key stands as {:?}", stands.state);
        must!(stands.fence > fence, "a release took the fence from {fence} to {}", stands.fence);
    }
    Ok(())
}

pub(super) async fn a_renewal_starts_the_lease_anew(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut claim = t.client(&key).wins().await?;
    let old = t.ages(&key, t.short() + t.subject().grain() * 2).await?;
    let sent = t.stopwatch();
    expect(&mut claim, &Op::Renew, Commit::Recorded).await?;
    let new = t.stands(&key).await?;
    let most = sent.elapsed() + t.subject().grain();
    let age = new.record.aged + new.age;
    must!(age <= most, "a lease that was renewed at most {most:?} ago is {age:?} old");
    must!(claim.left() + most >= LONG, "the holder of a renewed lease counts only {:?}", claim.left());
    let kept = (old.record.fence, old.record.runs, old.record.ended, old.record.holder);
    let is = (new.record.fence, new.record.runs, new.record.ended, new.record.holder);
    must!(kept == is, "a renewal changed fence, runs, history or holder from {kept:?} to {is:?}");
    t.client(&key).is_held().await.map(drop)
}

pub(super) async fn another_payload_under_a_done_key_is_told_apart(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).digest([1; 32]);
    let mut claim = client.wins().await?;
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    for (asks, conflicts) in
        [(client.clone(), false), (t.client(&key).digest([2; 32]), true), (t.client(&key), false)]
    {
        let (_, conflict) = asks.is_done().await?;
        must!(conflict == conflicts, "of {asks:?} it was said that conflict is {conflict}");
    }
    Ok(())
}

pub(super) async fn every_write_counts_retention_anew(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key);
    let kept_until = async |key: &Key, least: Duration, what: &str| {
        let record = t.stands(key).await?.record;
        // The clock of the writer is ours, and it only went on since.
        let day = Duration::from_secs(24 * 60 * 60);
        let least = record.written.saturating_add(duration_micros(least + day));
        must!(record.expires >= least, "after {what} it may be collected at {}, not {least}", record.expires);
        Ok(record.written)
    };
    let began = micros(t.subject().clock().wall());
    let mut claim = client.wins().await?;
    must!(kept_until(&key, LONG + LONG, "a claim").await? >= began, "a claim was not written now");
    expect(&mut claim, &Op::Renew, Commit::Recorded).await?;
    kept_until(&key, LONG + LONG, "a renewal").await?;
    expect(&mut claim, &Op::Release(Ended::Failed), Commit::Recorded).await?;
    kept_until(&key, LONG, "a release").await?;
    let mut claim = client.wins().await?;
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    kept_until(&key, LONG, "a completion").await?;
    let key = t.key("rejected")?;
    let mut claim = t.client(&key).wins().await?;
    expect(&mut claim, &client.rejects(), Commit::Recorded).await?;
    kept_until(&key, LONG, "a rejection").await.map(drop)
}

pub(super) async fn a_failed_run_is_remembered(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    for runs in 0..3 {
        let mut claim = t.client(&key).wins().await?;
        let found = (claim.record.ended, claim.record.runs);
        let right = (if runs == 0 { Ended::Fresh } else { Ended::Failed }, runs);
        must!(found == right, "after {runs} failed runs a claim found {found:?}");
        expect(&mut claim, &Op::Release(Ended::Failed), Commit::Recorded).await?;
    }
    Ok(())
}

pub(super) async fn a_crash_is_remembered(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    for runs in 0..3 {
        let claim = t.client(&key).lease(t.short()).wins().await?;
        let found = (claim.record.ended, claim.record.runs);
        let right = (if runs == 0 { Ended::Fresh } else { Ended::Unknown }, runs);
        must!(found == right, "after {runs} crashed runs a claim found {found:?}");
    }
    Ok(())
}

pub(super) async fn a_mutex_that_succeeded_leaves_a_fresh_history(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = t.client(&key).verb(Verb::Mutex);
    for ended in [Ended::Failed, Ended::Fresh] {
        let mut claim = client.wins().await?;
        expect(&mut claim, &Op::Release(ended), Commit::Recorded).await?;
    }
    let found = client.wins().await?.record.clone();
    must!(
        (found.ended, found.runs) == (Ended::Fresh, 0),
        "after a success a mutex found {:?}, {} runs",
        found.ended,
        found.runs
    );
    Ok(())
}
