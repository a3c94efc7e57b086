//! Garbage collection: what has expired goes, what was claimed anew stays, in the foreground and in the background.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{join_all, poll_fn};
use pushonce::store::record::State;
use pushonce::store::{
    Commits as _, Completes as _, Filter, Maintain as _, Page, Sql, Standing, StoreError, Swap,
};
use pushonce::{IntoKey as _, Store as _};

use crate::server::{Place, Server, key, record, written};

on! {
    each [
        a_purge_cannot_remove_a_key_that_is_being_claimed_anew
        a_purge_and_a_claim_that_race_never_lose_the_claim
        a_purge_keeps_to_its_limit_and_to_what_has_expired
        many_may_purge_at_once
        expired_records_go_by_themselves_until_the_store_is_dropped
        a_list_is_filtered_and_hides_nothing_that_it_cannot_read
    ]
}

const LONG: Duration = Duration::from_secs(60);

async fn fill<DB: Server>(place: &Place<DB>, count: usize) {
    let store = place.store();
    for some in (0..count).collect::<Vec<_>>().chunks(100) {
        let keys: Vec<_> = some.iter().map(|at| ("orders", at.to_string()).into_key().unwrap()).collect();
        let next = record(1);
        for swap in join_all(keys.iter().map(|key| store.swap(key, None, &next))).await {
            let _ = written(swap.unwrap());
        }
    }
}

async fn expire<DB: Server>(place: &Place<DB>) {
    place.run(&format!("UPDATE {{table}} SET expires_at = {}", DB::from_now(-1))).await;
}

async fn a_purge_cannot_remove_a_key_that_is_being_claimed_anew<DB: Server>(place: Place<DB>) {
    let store = place.store();
    let seen = written(store.swap(&key(), None, &record(1)).await.unwrap());
    expire(&place).await;
    let mut transaction = place.pool(1).begin().await.unwrap();
    assert!(store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
    // It either passes the row over, or waits for it.
    let mut purging = pin!(store.purge_expired(10));
    let mut purged = None;
    for _ in 0..20 {
        if let Poll::Ready(ended) = poll_fn(|context| Poll::Ready(purging.as_mut().poll(context))).await {
            purged = Some(ended);
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.commit(transaction).await.unwrap();
    let purged = match purged {
        Some(purged) => purged,
        None => tokio::time::timeout(LONG, purging).await.expect("it ends"),
    };
    assert_eq!(purged.unwrap(), 0);
    assert_eq!(store.read(&key()).await.unwrap().unwrap().record, record(2));
}

async fn a_purge_and_a_claim_that_race_never_lose_the_claim<DB: Server>(place: Place<DB>) {
    let store = place.store();
    for _ in 0..50 {
        let seen = match store.read(&key()).await.unwrap() {
            Some(stored) => stored.version,
            None => written(store.swap(&key(), None, &record(1)).await.unwrap()),
        };
        expire(&place).await;
        let (anew, key) = (record(2), key());
        let (purged, swapped) = tokio::join!(store.purge_expired(10), store.swap(&key, Some(&seen), &anew));
        // MySQL may end one of the two to let the other go on. Then that one did nothing.
        let ended = |error: &StoreError| error.is_transient() && !error.may_have_written();
        let purged = purged.or_else(|error| if ended(&error) { Ok(0) } else { Err(error) }).unwrap();
        let stands = store.read(&key).await.unwrap();
        match swapped {
            Err(error) => {
                assert!(ended(&error), "{error:?}");
                assert_eq!(stands.is_none(), purged == 1);
            }
            Ok(Swap::Written(version)) => {
                assert_eq!((purged, stands.unwrap().version), (0, version.clone()));
                // The next round's write needs another token.
                let _ = written(store.swap(&key, Some(&version), &record(1)).await.unwrap());
            }
            Ok(Swap::Lost(standing)) => {
                assert!(matches!(standing, Standing::Unknown), "{standing:?}");
                assert_eq!((purged, stands.is_none()), (1, true));
            }
        }
    }
}

async fn a_purge_keeps_to_its_limit_and_to_what_has_expired<DB: Server>(place: Place<DB>) {
    let store = place.store();
    fill(&place, 2500).await;
    assert_eq!(store.purge_expired(usize::MAX).await.unwrap(), 0);
    expire(&place).await;
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
    for (limit, purged) in [(0, 0), (1, 1), (2200, 2200), (usize::MAX, 299), (usize::MAX, 0)] {
        assert_eq!(store.purge_expired(limit).await.unwrap(), purged);
    }
    assert!(store.read(&key()).await.unwrap().is_some());
}

async fn many_may_purge_at_once<DB: Server>(place: Place<DB>) {
    fill(&place, 1000).await;
    expire(&place).await;
    let stores: Vec<Sql<DB>> = (0..3).map(|_| place.store()).collect();
    let mut purged = 0;
    while purged < 1000 {
        for some in join_all(stores.iter().map(|store| store.purge_expired(50))).await {
            // Two that meet may be told to come again.
            purged += some.or_else(|error| if error.is_transient() { Ok(0) } else { Err(error) }).unwrap();
        }
    }
    assert_eq!((purged, place.run("DELETE FROM {table}").await), (1000, 0));
}

async fn expired_records_go_by_themselves_until_the_store_is_dropped<DB: Server>(place: Place<DB>) {
    fill(&place, 3).await;
    expire(&place).await;
    let (pool, reader) = (place.pool(2), place.store());
    let looked = || async { reader.list(&Filter::default(), &Page::default()).await.unwrap().found.len() };
    assert_eq!(looked().await, 3);
    drop(pool.acquire().await.unwrap());
    let before = settled().await;

    let builder = Sql::builder(pool.clone()).table(&place.table).purge_every(Duration::from_secs(1));
    let store = builder.build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    let gone = async {
        while looked().await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("they go");
    drop(store);
    let ended = async { while settled().await > before {} };
    tokio::time::timeout(LONG, ended).await.expect("the upkeep ends with its store");
}

/// How many tasks there are, once those that only bring a connection back are done.
async fn settled() -> usize {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (mut last, mut same) = (tasks(), 0);
    while same < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = tasks();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

async fn a_list_is_filtered_and_hides_nothing_that_it_cannot_read<DB: Server>(place: Place<DB>) {
    let store = place.store();
    for (consumer, text, state) in [
        ("orders", "1", State::Claimed),
        ("orders", "2", State::Done),
        ("orders-eu", "1", State::Done),
        ("mail", "1", State::Done),
        ("orders", "broken", State::Done),
    ] {
        let mut record = record(1);
        record.state = state;
        let _ = written(store.swap(&(consumer, text).into_key().unwrap(), None, &record).await.unwrap());
    }
    place.run("UPDATE {table} SET document = '{}' WHERE document LIKE '%broken%'").await;
    let filter = Filter { prefix: "orders:".into(), state: Some(State::Done) };
    let listing = store.list(&filter, &Page::default()).await.unwrap();
    let mut found: Vec<_> =
        listing.found.iter().map(|found| (found.key.as_str(), found.stored.is_ok())).collect();
    found.sort_unstable();
    assert_eq!((found, listing.next), (vec![("orders:2", true), ("orders:broken", false)], None));
    for found in listing.found.into_iter().filter_map(|found| found.stored.ok()) {
        assert!(found.age < LONG);
    }
    // Looks at no more than it was told to, and goes on from there.
    let (mut page, mut pages, mut found) = (Page { after: None, limit: 1 }, 0, 0);
    loop {
        let listing = store.list(&filter, &page).await.unwrap();
        (pages, found) = (pages + 1, found + listing.found.len());
        page.after = listing.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!((pages, found), (6, 2));
}
