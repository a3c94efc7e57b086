//! Maintenance of a Datastore, on both emulators, past what the laws of the contract look at: more
//! entities than one query brings, and entities that are none of ours.
#![cfg(test)]

#[path = "support/both_emulators.rs"]
mod both_emulators;
#[path = "support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod emulator;
#[path = "support/report.rs"]
mod report;

use std::collections::BTreeSet;

use both_emulators::on_both_emulators;
use emulator::{Emulator, record};
use futures_util::{StreamExt as _, stream};
use pushonce::maintain::{Filter, Maintain as _, Page};
use pushonce::store::record::Record;
use pushonce::store::{Datastore, StoreError};
use pushonce::{IntoKey as _, Key, Store as _};

/// More than a purge looks at in one query.
const MANY: usize = 650;

on_both_emulators! {
    a_purge_goes_on_until_its_limit_or_the_end
    a_list_goes_over_many_pages
    what_is_not_a_record_is_listed_by_its_name_and_never_purged
    a_page_of_somebody_else_is_refused
}

fn key(at: usize) -> Key {
    ("orders", format!("po-{at}")).into_key().unwrap()
}

fn expired(at: usize) -> Record {
    Record { expires: 1_600_000_000_000_000, ..record(at as u128 + 1) }
}

/// Writes that many records, of which the even ones have expired.
async fn fill(store: &Datastore, many: usize) {
    let writes = (0..many).map(|at| async move {
        let live = Record { expires: 4_000_000_000_000_000, ..record(at as u128 + 1) };
        store.swap(&key(at), None, &if at % 2 == 0 { expired(at) } else { live }).await.map(drop)
    });
    let failed =
        stream::iter(writes).buffer_unordered(16).filter_map(async |done| done.err()).collect::<Vec<_>>();
    assert!(failed.await.is_empty());
}

/// The keys of all pages of that many.
async fn keys(store: &Datastore, limit: usize) -> Vec<String> {
    let mut page = Page { after: None, limit };
    let mut keys = Vec::new();
    loop {
        let listing = store.list(&Filter::default(), &page).await.unwrap();
        assert!(listing.found.len() <= limit);
        keys.extend(listing.found.into_iter().map(|found| found.key));
        let Some(next) = listing.next else { return keys };
        page.after = Some(next);
    }
}

async fn a_purge_goes_on_until_its_limit_or_the_end(emulator: Emulator) {
    let store = emulator.store();
    fill(&store, MANY).await;
    assert_eq!(store.purge_expired(0).await.unwrap(), 0);
    assert_eq!(store.purge_expired(200).await.unwrap(), 200);
    assert_eq!(store.purge_expired(usize::MAX).await.unwrap(), MANY / 2 - 200);
    assert_eq!(store.purge_expired(1).await.unwrap(), 0);
    let left: BTreeSet<_> = keys(&store, 1000).await.into_iter().collect();
    assert_eq!(left, (0..MANY).filter(|at| at % 2 == 1).map(|at| key(at).to_string()).collect());
}

async fn a_list_goes_over_many_pages(emulator: Emulator) {
    let store = emulator.store();
    fill(&store, 40).await;
    let right: Vec<_> = BTreeSet::from_iter((0..40).map(|at| key(at).to_string())).into_iter().collect();
    for limit in [1, 7, 20, 40, 41] {
        let in_order = keys(&store, limit).await;
        let mut sorted = in_order.clone();
        sorted.sort();
        assert_eq!(sorted, right, "in pages of {limit}");
        assert_eq!(in_order, keys(&store, 40).await, "another order in pages of {limit}");
    }
}

async fn what_is_not_a_record_is_listed_by_its_name_and_never_purged(emulator: Emulator) {
    let store = emulator.store();
    fill(&store, 4).await;
    emulator.rewrite(&key(0), "record", "by hand").await;
    let page = Page::default();
    let found = store.list(&Filter { prefix: "orders:po-0".into(), state: None }, &page).await.unwrap().found;
    assert_eq!(found.len(), 1);
    assert!(matches!(found[0].stored, Err(StoreError::Corrupt { .. })), "{:?}", found[0].stored);
    assert_eq!(store.purge_expired(usize::MAX).await.unwrap(), 1);
    assert_eq!(keys(&store, 10).await.len(), 3);
}

async fn a_page_of_somebody_else_is_refused(emulator: Emulator) {
    let store = emulator.store();
    for after in ["not base64!", "bm90IGEgY3Vyc29y"] {
        let page = Page { after: Some(after.into()), limit: 1 };
        let answer = store.list(&Filter::default(), &page).await;
        assert!(matches!(answer, Err(StoreError::Refused { .. })), "{after}: {answer:?}");
    }
}
