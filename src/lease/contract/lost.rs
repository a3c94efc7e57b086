//! Laws of lost answers: a write of ours is known as ours, by the holder, whatever the answer was.
// F65

use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, expect};
use super::trial::Trial;
use super::{Breach, must};
use crate::key::Key;
use crate::lease::{Claim, Claimed, Commit, Op};
use crate::store::chaos::{Chaos, Fault, On};
use crate::store::record::{Ended, Progress, State, Verb};

/// What can happen to a write whose answer is lost: it never arrives, it arrived, it arrives later.
pub(super) const LOST: [Fault; 3] =
    [Fault::LoseBefore, Fault::LoseAnswer, Fault::Late(Duration::from_millis(30))];

/// A client that a fault will meet, and the script.
fn faulty(t: &Trial, client: &Client) -> (Client, Arc<Chaos>) {
    let chaos = Chaos::new(t.store().clone());
    (client.clone().store(chaos.clone()), chaos)
}

/// A key for each fault, and what to do with both.
fn cases(t: &Trial) -> Result<Vec<(Key, Fault)>, Breach> {
    LOST.into_iter().enumerate().map(|(at, fault)| Ok((t.key(&format!("k{at}"))?, fault))).collect()
}

/// One claim, of which an answer is lost, and which must be won by this one call.
async fn wins(client: &Client, fault: Fault) -> Result<Claim, Breach> {
    match client.try_claim().await? {
        Claimed::Won(mut claim) => {
            claim.begin();
            Ok(claim)
        }
        other => Err(Breach::new(format!("a claim that met {fault:?} was answered {other:?}"))),
    }
}

/// The claim is the record's, nobody else has it, and its holder can go on.
async fn stands_once(t: &Trial, claim: &mut Claim, fault: Fault) -> Result<(), Breach> {
    let key = claim.place.key.clone();
    let stands = t.stands(&key).await?.record;
    must!(stands.fence == claim.record.fence, "{fault:?}: the holder was told another fence than stands");
    must!(stands.holder == Some(claim.me), "{fault:?}: another holder stands than the one that won");
    if stands.state == State::Claimed {
        t.client(&key).is_held().await?;
    }
    expect(claim, &t.client(&key).completes(), Commit::Recorded).await?;
    t.client(&key).is_done().await.map(drop)
}

pub(super) async fn a_claim_whose_answer_was_lost_is_won_once(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let (client, chaos) = faulty(t, &t.client(&key));
        chaos.next(On::Claim, fault);
        let mut claim = wins(&client, fault).await?;
        must!(!chaos.has_next(), "{fault:?} met no claim");
        stands_once(t, &mut claim, fault).await?;
    }
    Ok(())
}

pub(super) async fn a_takeover_whose_answer_was_lost_is_won_once(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let crashed = t.client(&key).lease(t.short()).wins().await?;
        t.ages(&key, t.short() + t.subject().grain()).await?;
        let (client, chaos) = faulty(t, &t.client(&key));
        // The create that is tried first is lost for certain; the take-over is the second claim.
        chaos.next(On::Claim, Fault::Fail);
        chaos.next(On::Claim, fault);
        let mut claim = wins(&client, fault).await?;
        must!(!chaos.has_next(), "{fault:?} met no take-over");
        must!(claim.record.fence > crashed.record.fence, "{fault:?}: a take-over did not raise the fence");
        must!(claim.record.runs == 1, "{fault:?}: the crash was counted {} times", claim.record.runs);
        stands_once(t, &mut claim, fault).await?;
    }
    Ok(())
}

pub(super) async fn a_mark_whose_answer_was_lost_is_won_once(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let (client, chaos) = faulty(t, &t.client(&key).verb(Verb::AtMostOnce));
        chaos.next(On::Claim, fault);
        let mut claim = wins(&client, fault).await?;
        must!(!chaos.has_next(), "{fault:?} met no mark");
        let (receipt, _) = t.client(&key).verb(Verb::AtMostOnce).is_done().await?;
        must!(
            receipt.is_some_and(|receipt| receipt.progress == Progress::Started),
            "{fault:?}: the mark does not stand"
        );
        stands_once(t, &mut claim, fault).await?;
    }
    Ok(())
}

/// A holder, one of whose writes will meet the fault.
async fn holder(t: &Trial, key: &Key, on: On, fault: Fault) -> Result<(Claim, Arc<Chaos>), Breach> {
    let (client, chaos) = faulty(t, &t.client(key));
    let claim = client.wins().await?;
    chaos.next(on, fault);
    Ok((claim, chaos))
}

pub(super) async fn a_renewal_whose_answer_was_lost_is_recorded(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let (mut claim, chaos) = holder(t, &key, On::Renew, fault).await?;
        let fence = claim.record.fence;
        expect(&mut claim, &Op::Renew, Commit::Recorded).await?;
        must!(!chaos.has_next(), "{fault:?} met no renewal");
        must!(claim.record.fence == fence, "{fault:?}: a renewal changed the fence");
        stands_once(t, &mut claim, fault).await?;
    }
    Ok(())
}

pub(super) async fn a_completion_whose_answer_was_lost_is_recorded(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let (mut claim, chaos) = holder(t, &key, On::Complete, fault).await?;
        expect(&mut claim, &t.client(&key).completes(), Commit::Recorded).await?;
        must!(!chaos.has_next(), "{fault:?} met no completion");
        t.client(&key).is_done().await?;
    }
    Ok(())
}

pub(super) async fn a_rejection_whose_answer_was_lost_is_recorded(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let (mut claim, chaos) = holder(t, &key, On::Complete, fault).await?;
        expect(&mut claim, &t.client(&key).rejects(), Commit::Recorded).await?;
        must!(!chaos.has_next(), "{fault:?} met no rejection");
        let (receipt, _) = t.client(&key).is_done().await?;
        must!(
            receipt.is_some_and(|receipt| receipt.progress == Progress::Rejected),
            "{fault:?}: the key is not done as rejected"
        );
    }
    Ok(())
}

pub(super) async fn a_release_whose_answer_was_lost_is_recorded(t: &Trial) -> Result<(), Breach> {
    for (key, fault) in cases(t)? {
        let (mut claim, chaos) = holder(t, &key, On::Release, fault).await?;
        let unaware = claim.twin();
        expect(&mut claim, &Op::Release(Ended::Failed), Commit::Recorded).await?;
        must!(!chaos.has_next(), "{fault:?} met no release");
        let mut next = t.client(&key).wins().await?;
        must!(next.record.runs == 1, "{fault:?}: one failed run was counted {} times", next.record.runs);
        // The retry of a release that had landed comes when somebody else has the key.
        expect(&mut unaware.twin(), &Op::Release(Ended::Failed), Commit::FencedOut).await?;
        t.client(&key).is_held().await?;
        expect(&mut next, &t.client(&key).completes(), Commit::Recorded).await?;
    }
    Ok(())
}

pub(super) async fn a_late_write_changes_nothing(t: &Trial) -> Result<(), Breach> {
    let late = t.short();
    for (at, (on, op)) in [
        (On::Renew, Op::Renew),
        (On::Complete, t.client(&t.key("k")?).completes()),
        (On::Release, Op::Release(Ended::Failed)),
    ]
    .into_iter()
    .enumerate()
    {
        let key = t.key(&format!("k{at}"))?;
        let (mut claim, chaos) = holder(t, &key, on, Fault::Late(late)).await?;
        expect(&mut claim, &op, Commit::Recorded).await?;
        must!(!chaos.has_next(), "nothing was late");
        if on == On::Renew {
            expect(&mut claim, &Op::Release(Ended::Fresh), Commit::Recorded).await?;
        }
        if on != On::Complete {
            t.client(&key).crashes().await?;
        }
        let before = t.stands(&key).await?;
        // A sign that cannot be seen: the late write leaves nothing behind. So wait well past its time.
        t.ages(&key, before.age + late * 2).await?;
        must!(t.stands(&key).await?.version == before.version, "a late {on:?} was written");
    }
    Ok(())
}
