//! Laws of the two calls: what a swap writes, when, and what it says.

use futures_util::future::join_all;

use super::trial::Trial;
use super::{Breach, Tells, must};
use crate::random;
use crate::store::record::Record;
use crate::store::{Standing, Swap, Version};

/// How many race. More than a store's clients usually have connections.
const RACERS: usize = 12;

/// The record with a token of its own: what every write of the lease has.
fn anew(record: &Record) -> Record {
    Record { token: random::id(), ..record.clone() }
}

pub(super) async fn a_read_sees_the_last_write(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    must!(t.read(&key).await?.is_none(), "something stands under a fresh key");
    let mut next = t.record();
    let mut seen = None;
    for _ in 0..5 {
        next = anew(&next);
        seen = Some(t.write(&key, seen.as_ref(), &next).await?);
        let read = t.stands(&key).await?.record;
        must!(read.token == next.token, "a read after a write returned an older record");
    }
    t.subject().forget(&key).await;
    must!(t.read(&key).await?.is_none(), "a deleted record was read");
    Ok(())
}

pub(super) async fn a_create_writes_only_where_nothing_stands(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let first = t.record();
    t.write(&key, None, &first).await?;
    t.lose(&key, None, &t.record()).await?;
    must!(t.stands(&key).await?.record.token == first.token, "a create overwrote what stood");
    Ok(())
}

pub(super) async fn an_update_writes_only_over_the_version_it_names(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let old = t.write(&key, None, &t.record()).await?;
    let second = t.record();
    let new = t.write(&key, Some(&old), &second).await?;
    t.lose(&key, Some(&old), &t.record()).await?;
    must!(t.stands(&key).await?.record.token == second.token, "an update on an old version was written");
    t.write(&key, Some(&new), &t.record()).await?;
    Ok(())
}

pub(super) async fn an_update_of_a_deleted_record_is_lost(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let version = t.write(&key, None, &t.record()).await?;
    t.subject().forget(&key).await;
    t.lose(&key, Some(&version), &t.record()).await?;
    must!(t.read(&key).await?.is_none(), "an update of a deleted record created one");
    Ok(())
}

pub(super) async fn a_lost_swap_writes_nothing(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let old = t.write(&key, None, &t.record()).await?;
    let stands = t.record();
    let version = t.write(&key, Some(&old), &stands).await?;
    for seen in [None, Some(&old)] {
        // Whatever it says; another law looks at that.
        let _ = t.swap(&key, seen, &t.record()).await?;
        let read = t.stands(&key).await?;
        must!(read.record == stands, "a lost swap changed the record");
        must!(read.version == version, "a lost swap changed the version");
    }
    Ok(())
}

pub(super) async fn a_lost_swap_is_never_called_written(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let old = t.write(&key, None, &t.record()).await?;
    t.write(&key, Some(&old), &t.record()).await?;
    t.lose(&key, None, &t.record()).await?;
    t.lose(&key, Some(&old), &t.record()).await
}

pub(super) async fn what_a_lost_swap_says_is_true(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let old = t.write(&key, None, &t.record()).await?;
    let stands = t.record();
    let version = t.write(&key, Some(&old), &stands).await?;
    for seen in [None, Some(&old)] {
        match t.swap(&key, seen, &t.record()).await? {
            Swap::Lost(Standing::Is(said)) => {
                must!(said.version == version, "a lost swap told another version than the one that stands");
                must!(said.record == stands, "a lost swap told another record than the one that stands");
            }
            Swap::Lost(Standing::Absent) => {
                return Err(Breach::new("a lost swap said that nothing stands where something does"));
            }
            Swap::Lost(Standing::Unknown) => told(t, seen)?,
            Swap::Written(_) => return Err(Breach::new("a lost swap was answered as written")),
        }
    }
    t.subject().forget(&key).await;
    match t.swap(&key, Some(&version), &t.record()).await? {
        Swap::Lost(Standing::Absent) => Ok(()),
        Swap::Lost(Standing::Unknown) => told(t, Some(&version)),
        Swap::Lost(Standing::Is(_)) => Err(Breach::new("a lost swap told of a record that was deleted")),
        Swap::Written(_) => Err(Breach::new("a lost swap was answered as written")),
    }
}

fn told(t: &Trial, seen: Option<&Version>) -> Result<(), Breach> {
    let untold = if seen.is_some() { Tells::Creates } else { Tells::Never };
    must!(t.subject().tells_what_stands() <= untold, "a store that tells what stands did not say");
    Ok(())
}

pub(super) async fn the_version_of_a_write_is_the_one_that_is_read(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut seen: Option<Version> = None;
    for _ in 0..3 {
        let written = t.write(&key, seen.as_ref(), &t.record()).await?;
        let read = t.stands(&key).await?.version;
        must!(read == written, "a write returned {written:?} and a read {read:?}");
        seen = Some(read);
    }
    Ok(())
}

pub(super) async fn a_version_names_one_content(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut content = t.record();
    let mut versions = vec![t.write(&key, None, &content).await?];
    for _ in 0..5 {
        content = anew(&content);
        let version = t.write(&key, versions.last(), &content).await?;
        must!(!versions.contains(&version), "{version:?} names two contents of one key");
        versions.push(version);
    }
    Ok(())
}

pub(super) async fn a_version_does_not_come_back_after_deletion(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut versions: Vec<Version> = Vec::new();
    for _ in 0..3 {
        let stands = t.record();
        let created = t.write(&key, None, &stands).await?;
        for old in &versions {
            must!(*old != created, "{old:?} came back after a deletion");
            t.lose(&key, Some(old), &t.record()).await?;
        }
        must!(t.stands(&key).await?.record.token == stands.token, "an old version overwrote a new record");
        let updated = t.write(&key, Some(&created), &t.record()).await?;
        versions.extend([created, updated]);
        t.subject().forget(&key).await;
    }
    Ok(())
}

pub(super) async fn of_many_creates_one_wins(t: &Trial) -> Result<(), Breach> {
    for round in 0..5 {
        race(t, &format!("round {round}"), false).await?;
    }
    Ok(())
}

pub(super) async fn of_many_updates_one_wins(t: &Trial) -> Result<(), Breach> {
    for round in 0..5 {
        race(t, &format!("round {round}"), true).await?;
    }
    Ok(())
}

async fn race(t: &Trial, text: &str, update: bool) -> Result<(), Breach> {
    let key = t.key(text)?;
    let seen = if update { Some(t.write(&key, None, &t.record()).await?) } else { None };
    let records: Vec<Record> = (0..RACERS).map(|_| t.record()).collect();
    let swaps = join_all(records.iter().map(|next| t.swap(&key, seen.as_ref(), next))).await;
    let mut winners = Vec::new();
    for (next, swap) in records.iter().zip(swaps) {
        if let Swap::Written(version) = swap? {
            winners.push((next.token, version));
        }
    }
    must!(winners.len() == 1, "{} of {RACERS} racing writes won", winners.len());
    let stands = t.stands(&key).await?;
    must!(
        winners.contains(&(stands.record.token, stands.version)),
        "another record stands than the one that won the race"
    );
    Ok(())
}
