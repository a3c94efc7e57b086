//! Laws of maintenance, for a store that can be looked through and cleaned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};

use super::trial::Trial;
use super::{Breach, must};
use crate::key::Key;
use crate::store::record::{Record, State};
use crate::store::{Filter, Found, Maintain, Page, StoreError, Stored, Swap, Version};
use crate::time::duration_micros;

/// How many keys are claimed anew during each purge.
const KEYS: usize = 12;

fn maintained(t: &Trial) -> Result<Arc<dyn Maintain>, Breach> {
    t.subject().maintained().ok_or_else(|| Breach::new("the store lends no `Maintain`"))
}

/// A record that garbage collection may have deleted an hour ago. Whether a store reads that from the
/// end of its retention, or from the time between the write and the end, it is over as it is written.
fn expired(t: &Trial) -> Record {
    let record = t.record();
    let hour = duration_micros(Duration::from_secs(60 * 60));
    Record { state: State::Done, expires: record.written - hour, ..record }
}

/// One purge of at most that many. `None`: the store refuses to.
async fn purge(t: &Trial, store: &dyn Maintain, limit: usize) -> Result<Option<usize>, Breach> {
    let mut patience = t.patience("a purge is answered");
    loop {
        match store.purge_expired(limit).await {
            Ok(purged) => {
                must!(purged <= limit, "a purge of at most {limit} deleted {purged}");
                return Ok(Some(purged));
            }
            Err(error) if error.is_transient() => patience.more().await?,
            Err(StoreError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) async fn a_check_passes_where_records_are_kept(t: &Trial) -> Result<(), Breach> {
    let store = maintained(t)?;
    t.client(&t.key("k")?).crashes().await?;
    store.check().await.map_err(|error| Breach::new(format!("a store that keeps records said: {error}")))
}

pub(super) async fn a_purge_removes_only_what_has_expired(t: &Trial) -> Result<(), Breach> {
    let store = maintained(t)?;
    let mut kept = Vec::new();
    for state in [State::Claimed, State::Released, State::Done] {
        let key = t.key(&format!("{state:?} kept"))?;
        kept.push((t.write(&key, None, &Record { state, ..t.record() }).await?, key));
    }
    let old = [t.key("old 1")?, t.key("old 2")?, t.key("old 3")?];
    for key in &old {
        t.write(key, None, &expired(t)).await?;
    }
    let mut patience = t.patience("what has expired is purged");
    for key in &old {
        while t.read(key).await?.is_some() && purge(t, &*store, 2).await?.is_some() {
            patience.more().await?;
        }
    }
    for (version, key) in kept {
        must!(t.stands(&key).await?.version == version, "a purge changed {key}, which has not expired");
    }
    Ok(())
}

pub(super) async fn a_purge_never_removes_a_key_that_was_claimed_anew(t: &Trial) -> Result<(), Breach> {
    let store = maintained(t)?;
    for round in 0..5 {
        let mut old: Vec<(Key, Version)> = Vec::new();
        for at in 0..KEYS {
            let key = t.key(&format!("round {round}, {at}"))?;
            let version = t.write(&key, None, &expired(t)).await?;
            old.push((key, version));
        }
        // Somewhere between the look of a purge and its deletions.
        let claims = old.iter().enumerate().map(async |(at, (key, version))| {
            tokio::time::sleep(Duration::from_millis(at as u64 / 2)).await;
            t.swap(key, Some(version), &t.record()).await
        });
        let (purged, claims) = join(purge(t, &*store, usize::MAX), join_all(claims)).await;
        purged?;
        for ((key, _), claim) in old.iter().zip(claims) {
            if let Swap::Written(version) = claim? {
                let stands = t.read(key).await?.is_some_and(|stored| stored.version == version);
                must!(stands, "a purge removed {key}, which was claimed anew");
            }
        }
    }
    Ok(())
}

pub(super) async fn a_store_that_cannot_purge_says_what_does(t: &Trial) -> Result<(), Breach> {
    let store = maintained(t)?;
    let mut patience = t.patience("a purge is answered");
    loop {
        match store.purge_expired(1).await {
            Err(error) if error.is_transient() => patience.more().await?,
            Err(StoreError::Refused { what, .. }) => {
                let says = ["lifecycle", "policy", "ttl", "retention", "collect", "evict"];
                let what = what.to_ascii_lowercase();
                must!(says.iter().any(|word| what.contains(word)), "it said only: {what}");
                return Ok(());
            }
            answer => return answer.map(drop).map_err(Breach::from),
        }
    }
}

/// The trial's records as they were written, some in each state, and how a list must show them.
async fn written(t: &Trial) -> Result<BTreeMap<String, Stored>, Breach> {
    let mut written = BTreeMap::new();
    for (at, text) in ["a", "a/b", "ab", "b", "é", "A", "a b", "z"].into_iter().enumerate() {
        let key = t.key(text)?;
        let state = [State::Claimed, State::Released, State::Done][at % 3];
        t.write(&key, None, &Record { state, ..t.record() }).await?;
        written.insert(key.to_string(), t.stands(&key).await?);
    }
    Ok(written)
}

/// All pages of that many.
async fn list(t: &Trial, filter: &Filter, limit: usize) -> Result<Vec<Found>, Breach> {
    let store = maintained(t)?;
    let mut patience = t.patience("a list has an end");
    let mut page = Page { after: None, limit };
    let mut all = Vec::new();
    loop {
        match store.list(filter, &page).await {
            Ok(listing) => {
                let brought = listing.found.len();
                must!(brought <= limit, "a page of {limit} brought {brought}");
                all.extend(listing.found);
                let Some(next) = listing.next else { return Ok(all) };
                must!(page.after.as_ref() != Some(&next), "a page is followed by itself");
                page.after = Some(next);
            }
            Err(error) if error.is_transient() => patience.more().await?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Lists, and demands that it brings just these, each once. Where somebody else writes to the same
/// store meanwhile a key may come twice; then it lists again.
async fn brings(t: &Trial, filter: &Filter, right: &BTreeMap<String, Stored>) -> Result<(), Breach> {
    let mut patience = t.patience("a list brings every key once");
    loop {
        let found = list(t, filter, 3).await?;
        let brought = found.len();
        let mut left = right.clone();
        for Found { key, stored } in found {
            let Some(right) = right.get(&key) else {
                return Err(Breach::new(format!("a list by {filter:?} brought {key}")));
            };
            let stored = stored?;
            let same = stored.version == right.version && stored.record == right.record;
            must!(same, "a list brought another record of {key} than stands");
            must!(stored.age + t.subject().grain() >= right.age, "a list made {key} younger than it is");
            left.remove(&key);
        }
        must!(left.is_empty(), "a list by {filter:?} left out {:?}", left.keys());
        if brought == right.len() {
            return Ok(());
        }
        patience.more().await?;
    }
}

pub(super) async fn a_list_brings_every_key_once(t: &Trial) -> Result<(), Breach> {
    let written = written(t).await?;
    brings(t, &Filter { prefix: t.prefix(), state: None }, &written).await
}

pub(super) async fn a_list_brings_what_its_filter_takes(t: &Trial) -> Result<(), Breach> {
    let written = written(t).await?;
    for state in [None, Some(State::Claimed), Some(State::Released), Some(State::Done)] {
        for text in ["", "a", "a/", "é", "none"] {
            let filter = Filter { prefix: t.prefix() + text, state };
            let right = written.iter().filter(|(key, stored)| filter.takes(key, &stored.record));
            let right = right.map(|(key, stored)| (key.clone(), stored.clone())).collect();
            brings(t, &filter, &right).await?;
        }
    }
    Ok(())
}

pub(super) async fn a_record_that_is_not_understood_hides_no_other(t: &Trial) -> Result<(), Breach> {
    let mut right = written(t).await?;
    t.write(&t.key("newer")?, None, &Record { format: 200, ..t.record() }).await?;
    let is_newer = |found: &Found| matches!(found.stored, Err(StoreError::NewerFormat { found: 200, .. }));
    for found in list(t, &Filter { prefix: t.prefix(), state: None }, 3).await? {
        if !is_newer(&found) {
            found.stored?;
            right.remove(&found.key);
        }
    }
    must!(right.is_empty(), "a list with a record of a newer format left out {:?}", right.keys());
    // Without a prefix: where its document cannot be understood, nor can its key.
    let all = list(t, &Filter::default(), 100).await?;
    must!(all.iter().any(is_newer), "a list left out the record of a newer format");
    Ok(())
}
