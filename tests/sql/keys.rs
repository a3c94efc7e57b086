//! Keys as bytes: what a database would fold, pad, cut or take for something of its own.

use std::collections::HashSet;

use pushonce::store::{Maintain as _, Page};
use pushonce::{IntoKey as _, Key, Store as _};

use crate::server::{Place, Server, record, written};

on! {
    each [
        every_key_round_trips_and_distinct_keys_stay_distinct
        a_list_has_every_key_in_the_order_of_its_bytes
    ]
}

// F68
fn texts() -> Vec<String> {
    let long = "x".repeat(1999);
    let mut texts: Vec<String> = [
        "a",
        "A",
        "a ",
        " a",
        "a\t",
        "ab",
        "aB",
        "a/b",
        "..",
        ".",
        "__x__",
        "nul\0",
        "nul",
        "nul\0\0",
        "\u{e9}",
        "e\u{301}",
        "E\u{301}",
        "e",
        "stra\u{df}e",
        "strasse",
        "\u{1F600}",
        "\u{1F601}",
        "'",
        "''",
        "\\",
        "\\\\",
        "%",
        "_",
        "$1",
        "?",
        "\u{fffd}",
        "\u{feff}",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend([1499, 1500, 1501, 300_000].map(|length| "k".repeat(length)));
    texts.extend([599, 600].map(|count| "\u{20ac}".repeat(count)));
    texts.extend([format!("{long}a"), format!("{long}b")]);
    texts
}

fn keys() -> Vec<Key> {
    texts().iter().map(|text| ("orders", text).into_key().unwrap()).collect()
}

async fn every_key_round_trips_and_distinct_keys_stay_distinct<DB: Server>(place: Place<DB>) {
    let (store, keys) = (place.store(), keys());
    for (token, key) in (1..).zip(&keys) {
        let _ = written(store.swap(key, None, &record(token)).await.unwrap());
    }
    for (token, key) in (1..).zip(&keys) {
        let read = store.read(key).await.unwrap().unwrap().record;
        assert_eq!(read, record(token), "{:?}", key.stored_name(255));
    }
    assert_eq!(keys.iter().map(|key| key.stored_name(255)).collect::<HashSet<_>>().len(), keys.len());
}

async fn a_list_has_every_key_in_the_order_of_its_bytes<DB: Server>(place: Place<DB>) {
    let (store, keys) = (place.store(), keys());
    for (token, key) in (1..).zip(&keys) {
        let _ = written(store.swap(key, None, &record(token)).await.unwrap());
    }
    let mut in_order: Vec<_> = keys.iter().collect();
    in_order.sort_by_key(|key| key.stored_name(255).into_bytes());
    let expected: Vec<String> = in_order
        .iter()
        .map(|key| if key.to_string().len() > 131_072 { key.stored_name(1500) } else { key.to_string() })
        .collect();
    let mut found = Vec::new();
    let mut page = Page { after: None, limit: 7 };
    loop {
        let listing = store.list(&Default::default(), &page).await.unwrap();
        assert!(listing.found.len() <= 7);
        found.extend(listing.found.into_iter().map(|found| found.key));
        page.after = listing.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
}
