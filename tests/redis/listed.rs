//! The list, on one server and over the nodes of a cluster.

use std::collections::BTreeSet;

use pushonce::store::record::{Record, State};
use pushonce::store::{Filter, Listing, Maintain as _, Page, Redis, StoreError};
use pushonce::{IntoKey, Store as _};

use crate::redis_server::RedisServer;
use crate::{cluster, fresh, key, name, record, report, written};

/// All that the filter takes, page by page; and that no page looks at more than its limit.
async fn all(store: &Redis, filter: &Filter, limit: usize) -> BTreeSet<String> {
    let (mut found, mut page) = (BTreeSet::new(), Page { after: None, limit });
    loop {
        let Listing { found: some, next } = store.list(filter, &page).await.unwrap();
        assert!(some.len() <= limit, "{} of at most {limit}", some.len());
        found.extend(some.into_iter().map(|found| found.key));
        let Some(next) = next else { return found };
        page.after = Some(next);
    }
}

async fn lists(server: &str, url: String) {
    let store = Redis::builder(&url).prefix(fresh()).build().unwrap();
    assert!(store.list(&Filter::default(), &Page::default()).await.unwrap().found.is_empty());
    let mut expected = BTreeSet::new();
    for number in 0..30_u128 {
        let (state, consumer) = (
            if number % 2 == 0 { State::Done } else { State::Claimed },
            if number < 20 { "orders" } else { "mails" },
        );
        let key = (consumer, format!("{number}")).into_key().unwrap();
        let _ = written(store.swap(&key, None, &Record { state, ..record(number + 1) }).await);
        expected.insert(key.to_string());
    }
    // Beside it, of another prefix.
    let other = Redis::builder(&url).prefix(fresh()).build().unwrap();
    let _ = written(other.swap(&key("other"), None, &record(1)).await);
    for limit in [1, 3, 7, 1000] {
        assert_eq!(all(&store, &Filter::default(), limit).await, expected, "by {limit}");
    }
    let done = Filter { prefix: "orders:".to_owned(), state: Some(State::Done) };
    let found = all(&store, &done, 4).await;
    assert_eq!(found, (0..20).step_by(2).map(|number| format!("orders:{number}")).collect());
    assert_eq!(store.purge_expired(10).await.unwrap(), 0);
    let page = Page { after: Some("nonsense".to_owned()), limit: 1 };
    crate::is_refused(&store.list(&Filter::default(), &page).await.unwrap_err(), "no `next` of this store");
    report::test(server, "pages_hold_what_stands_once_and_no_more_than_their_limit");
}

#[tokio::test]
async fn pages_hold_what_stands_once_and_no_more_than_their_limit() {
    // Of its own, since a page looks at what others have there, too.
    let server = RedisServer::start(&[]);
    lists("redis", server.url()).await;
    lists("redis-cluster", cluster::shared().url()).await;
}

#[tokio::test]
async fn a_record_that_cannot_be_understood_hides_no_other() {
    let server = RedisServer::start(&[]);
    let prefix = fresh();
    let store = Redis::builder(server.url()).prefix(&prefix).build().unwrap();
    let _ = written(store.swap(&key("good"), None, &record(1)).await);
    let _ = written(store.swap(&key("newer"), None, &Record { format: 200, ..record(2) }).await);
    let _: u8 = server.ask(&["HSET", &name(&prefix, &key("foreign")), "colour", "blue"]);
    let _: redis::Value = server.ask(&["SET", &name(&prefix, &key("text")), "text"]);
    let mut found = store.list(&Filter::default(), &Page::default()).await.unwrap().found;
    found.sort_by(|one, other| one.key.cmp(&other.key));
    let keys: Vec<_> = found.iter().map(|found| &*found.key).collect();
    assert_eq!(keys, ["orders:foreign", "orders:good", "orders:newer", "orders:text"]);
    assert!(matches!(found[0].stored, Err(StoreError::Corrupt { .. })));
    assert!(found[1].stored.as_ref().is_ok_and(|stored| stored.record == record(1)));
    assert!(matches!(found[2].stored, Err(StoreError::NewerFormat { found: 200, .. })));
    assert!(matches!(found[3].stored, Err(StoreError::Corrupt { .. })));
    report::test("redis", "a_record_that_cannot_be_understood_hides_no_other");
}
