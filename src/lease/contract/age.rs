//! Laws of age: the time since the last write, by the store's own clock.

use std::time::Duration;

use super::trial::Trial;
use super::{Breach, must};
use crate::store::record::Record;

/// More than any machine takes between a write and a read of it; far less than a time since an epoch.
const YOUNG: Duration = Duration::from_secs(60);

pub(super) async fn age_starts_near_zero(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let mut seen = None;
    for _ in 0..3 {
        seen = Some(t.write(&key, seen.as_ref(), &t.record()).await?);
        let age = t.stands(&key).await?.age;
        must!(age < YOUNG, "a record that was just written is {age:?} old");
    }
    Ok(())
}

pub(super) async fn age_grows(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    t.write(&key, None, &t.record()).await?;
    let step = t.short() / 2;
    let mut age = Duration::ZERO;
    for _ in 0..3 {
        age = t.ages(&key, age + step).await?.age;
    }
    Ok(())
}

pub(super) async fn reading_does_not_make_it_younger(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    t.write(&key, None, &t.record()).await?;
    let mut before = Duration::ZERO;
    // Read in steps that are far shorter than the age that it must reach.
    let mut patience = t.patience("a record that is read all the time grows old");
    loop {
        let age = t.stands(&key).await?.age;
        must!(age + t.subject().grain() >= before, "a read made a record of {before:?} only {age:?} old");
        if age >= t.short() {
            return Ok(());
        }
        before = before.max(age);
        patience.more().await?;
    }
}

pub(super) async fn every_write_starts_age_anew(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let created = t.stopwatch();
    let mut seen = t.write(&key, None, &t.record()).await?;
    for _ in 0..2 {
        t.ages(&key, t.short() + t.subject().grain() * 2).await?;
        let sent = t.stopwatch();
        seen = t.write(&key, Some(&seen), &t.record()).await?;
        let age = t.stands(&key).await?.age;
        let most = sent.elapsed() + t.subject().grain();
        must!(
            age <= most,
            "a record that was written at most {most:?} ago, and first {:?} ago, is {age:?} old",
            created.elapsed()
        );
    }
    Ok(())
}

pub(super) async fn age_is_without_aged(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let aged = Duration::from_secs(60 * 60);
    let sent = t.stopwatch();
    t.write(&key, None, &Record { aged, ..t.record() }).await?;
    let stored = t.stands(&key).await?;
    must!(stored.record.aged == aged, "`aged` was written as {aged:?} and read as {:?}", stored.record.aged);
    let most = sent.elapsed() + t.subject().grain();
    must!(stored.age <= most, "a record that was written at most {most:?} ago is {:?} old", stored.age);
    Ok(())
}
