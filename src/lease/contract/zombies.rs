//! Laws of zombies: a holder that was replaced, released or deleted writes nothing any more.
// F58, F59

use super::client::expect;
use super::trial::Trial;
use super::{Breach, must};
use crate::lease::{Claim, Commit, Op};
use crate::store::record::Ended;

/// A holder whose lease lapsed, and the one that took its key over.
async fn replaced(t: &Trial, text: &str) -> Result<(Claim, Claim), Breach> {
    let key = t.key(text)?;
    let zombie = t.client(&key).lease(t.short()).wins().await?;
    let successor = t.client(&key).wins().await?;
    Ok((zombie, successor))
}

fn ops(t: &Trial, claim: &Claim) -> [Op; 5] {
    let client = t.client(&claim.place.key);
    [client.completes(), client.rejects(), Op::Renew, Op::Release(Ended::Failed), Op::Undo(None)]
}

/// The zombie is fenced out, and its successor goes on as if nothing had been.
async fn changes_nothing(t: &Trial, op: &Op) -> Result<(), Breach> {
    let (mut zombie, mut successor) = replaced(t, "k").await?;
    let key = zombie.place.key.clone();
    let before = t.stands(&key).await?;
    expect(&mut zombie, op, Commit::FencedOut).await?;
    must!(t.stands(&key).await?.version == before.version, "a zombie's {op:?} was written");
    t.client(&key).is_held().await?;
    expect(&mut successor, &Op::Renew, Commit::Recorded).await?;
    expect(&mut successor, &t.client(&key).completes(), Commit::Recorded).await
}

pub(super) async fn a_zombie_cannot_complete(t: &Trial) -> Result<(), Breach> {
    changes_nothing(t, &t.client(&t.key("k")?).completes()).await
}

pub(super) async fn a_zombie_cannot_reject(t: &Trial) -> Result<(), Breach> {
    changes_nothing(t, &t.client(&t.key("k")?).rejects()).await
}

pub(super) async fn a_zombie_cannot_renew(t: &Trial) -> Result<(), Breach> {
    changes_nothing(t, &Op::Renew).await
}

pub(super) async fn a_zombie_cannot_release(t: &Trial) -> Result<(), Breach> {
    changes_nothing(t, &Op::Release(Ended::Failed)).await
}

pub(super) async fn a_zombie_cannot_touch_what_its_successor_completed(t: &Trial) -> Result<(), Breach> {
    let (zombie, mut successor) = replaced(t, "k").await?;
    let client = t.client(&zombie.place.key).message("successor");
    expect(&mut successor, &client.completes(), Commit::Recorded).await?;
    let before = t.stands(&zombie.place.key).await?;
    for op in ops(t, &zombie) {
        expect(&mut zombie.twin(), &op, Commit::FencedOut).await?;
    }
    must!(t.stands(&zombie.place.key).await?.version == before.version, "a zombie wrote over a done key");
    let (receipt, _) = client.is_done().await?;
    let message = receipt.and_then(|receipt| receipt.message);
    must!(message.as_deref() == Some("successor"), "a duplicate was told of {message:?}");
    Ok(())
}

pub(super) async fn a_released_claim_is_dead(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut claim = t.client(&key).wins().await?;
    let unaware = claim.twin();
    expect(&mut claim, &Op::Release(Ended::Failed), Commit::Recorded).await?;
    let before = t.stands(&key).await?;
    for claim in [claim, unaware] {
        for op in [t.client(&key).completes(), t.client(&key).rejects(), Op::Renew] {
            expect(&mut claim.twin(), &op, Commit::FencedOut).await?;
        }
        expect(&mut claim.twin(), &Op::Release(Ended::Failed), Commit::Recorded).await?;
    }
    must!(t.stands(&key).await?.version == before.version, "a released claim was written again");
    t.client(&key).wins().await.map(drop)
}

pub(super) async fn a_holder_whose_record_was_deleted_is_fenced_out(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let claim = t.client(&key).wins().await?;
    t.subject().forget(&key).await;
    for op in ops(t, &claim) {
        expect(&mut claim.twin(), &op, Commit::FencedOut).await?;
        must!(t.read(&key).await?.is_none(), "{op:?} of a deleted claim created a record");
    }
    Ok(())
}

// F59
pub(super) async fn a_holder_cannot_touch_the_claim_that_followed_a_deletion(
    t: &Trial,
) -> Result<(), Breach> {
    let key = t.key("k")?;
    let old = t.client(&key).wins().await?;
    t.subject().forget(&key).await;
    let mut new = t.client(&key).wins().await?;
    let before = t.stands(&key).await?;
    for op in ops(t, &old) {
        expect(&mut old.twin(), &op, Commit::FencedOut).await?;
    }
    must!(t.stands(&key).await?.version == before.version, "a deleted claim was written over its successor");
    expect(&mut new, &Op::Release(Ended::Failed), Commit::Recorded).await?;
    t.client(&key).wins().await.map(drop)
}
