//! Laws of `at_most_once`: a mark stands before the work, and nobody runs it again.

use super::client::{Client, expect};
use super::trial::{LONG, Trial, progress};
use super::{Breach, must};
use crate::key::Key;
use crate::lease::{Commit, Op};
use crate::store::record::{Ended, Progress, Receipt, State, Verb};

fn marker(t: &Trial, key: &Key) -> Client {
    t.client(key).verb(Verb::AtMostOnce)
}

async fn is_told(client: &Client, right: Progress) -> Result<Option<Receipt>, Breach> {
    let (receipt, _) = client.is_done().await?;
    let told = progress(receipt.as_ref());
    must!(told == Some(right), "a duplicate was told {told:?}, not {right:?}");
    Ok(receipt)
}

pub(super) async fn a_marked_key_never_runs_again(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    // Its lease is over long before; only the ttl counts.
    let mut claim = marker(t, &key).lease(t.short()).wins().await?;
    let stands = t.ages(&key, t.short() + t.subject().grain()).await?.record;
    must!(stands.state == State::Done, "a marked key stands as {:?}", stands.state);
    is_told(&marker(t, &key), Progress::Started).await?;
    is_told(&t.client(&key), Progress::Started).await?;
    // A failure is not run again either.
    expect(&mut claim, &Op::Release(Ended::Failed), Commit::AlreadyDone).await?;
    is_told(&marker(t, &key), Progress::Started).await.map(drop)
}

pub(super) async fn a_mark_that_is_finished_keeps_its_window(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = marker(t, &key).message("m-1");
    let mut claim = client.wins().await?;
    let least = t.ages(&key, t.short()).await?.age;
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    let stands = t.stands(&key).await?;
    let age = stands.record.aged + stands.age;
    must!(age + t.subject().grain() >= least, "a mark of {least:?} became a receipt of {age:?}");
    must!(stands.record.fence == claim.record.fence, "finishing a mark changed its fence");
    must!(stands.record.ttl == LONG, "finishing a mark changed its ttl to {:?}", stands.record.ttl);
    let receipt = is_told(&client, Progress::Finished).await?;
    must!(receipt.and_then(|receipt| receipt.message).as_deref() == Some("m-1"), "the receipt names another");
    // The receipt is final.
    expect(&mut claim, &client.completes(), Commit::Recorded).await?;
    must!(t.stands(&key).await?.version == stands.version, "a finished mark was written again");
    Ok(())
}

pub(super) async fn a_mark_that_is_rejected_keeps_its_window(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let client = marker(t, &key).message("m-1");
    let mut claim = client.wins().await?;
    let least = t.ages(&key, t.short()).await?.age;
    // A renewal only says whose the mark is. Between the two nobody may run it either.
    expect(&mut claim, &Op::Renew, Commit::Recorded).await?;
    is_told(&client, Progress::Started).await?;
    expect(&mut claim, &client.rejects(), Commit::Recorded).await?;
    let stands = t.stands(&key).await?;
    let age = stands.record.aged + stands.age;
    must!(age + t.subject().grain() >= least, "a mark of {least:?} became a receipt of {age:?}");
    must!(stands.record.fence == claim.record.fence, "rejecting a mark changed its fence");
    let receipt = is_told(&client, Progress::Rejected).await?;
    must!(receipt.and_then(|receipt| receipt.message).as_deref() == Some("m-1"), "the receipt names another");
    expect(&mut claim, &client.rejects(), Commit::Recorded).await?;
    must!(t.stands(&key).await?.version == stands.version, "a rejected mark was written again");
    Ok(())
}

pub(super) async fn a_mark_is_free_after_its_ttl(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let first = marker(t, &key).ttl(t.short()).wins().await?;
    t.ages(&key, t.short() + t.subject().grain()).await?;
    let second = marker(t, &key).wins().await?;
    must!(second.record.fence > first.record.fence, "a mark over an old one did not raise the fence");
    let mut released = t.client(&t.key("released")?).wins().await?;
    expect(&mut released, &Op::Release(Ended::Failed), Commit::Recorded).await?;
    let mark = marker(t, &released.place.key).wins().await?;
    must!(mark.record.fence > released.record.fence, "a mark over a release did not raise the fence");
    is_told(&marker(t, &released.place.key), Progress::Started).await.map(drop)
}

pub(super) async fn a_mark_can_be_taken_back_before_the_work(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut mark = marker(t, &key).wins().await?;
    let (fence, unaware) = (mark.record.fence, mark.twin());
    let op = Op::Undo(mark.found());
    expect(&mut mark, &op, Commit::Recorded).await?;
    let stands = t.stands(&key).await?.record;
    must!(stands.state == State::Released, "a mark that was taken back stands as {:?}", stands.state);
    must!(stands.fence > fence, "taking back a mark took the fence from {fence} to {}", stands.fence);
    must!(stands.receipt.is_none(), "taking back a mark left the receipt {:?}", stands.receipt);
    expect(&mut mark, &Op::Renew, Commit::FencedOut).await?;
    for mut claim in [mark, unaware] {
        expect(&mut claim, &t.client(&key).completes(), Commit::FencedOut).await?;
    }
    marker(t, &key).wins().await.map(drop)
}
