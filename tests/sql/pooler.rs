//! A pooler in transaction mode: nothing may outlive a statement, so each call is one message.

use pushonce::store::sql::Pooler;
use pushonce::store::{Commits as _, Completes as _, Filter, Maintain as _, Page, Sql, Standing, Swap};
use pushonce::{IntoKey as _, Store as _};
use sqlx::Postgres;

use crate::proxy::Proxy;
use crate::server::{Place, key, record, written};

on! {
    each []
    postgres [
        each_call_is_one_message_and_leaves_nothing_behind
        whatever_a_key_is_it_stays_a_key
    ]
}

/// The kinds of the messages in what a client sent: `Q` is a statement that is sent whole, `S` asks
/// whether anybody is there, `X` says good-bye.
fn kinds(sent: &[Vec<u8>]) -> Vec<char> {
    let bytes: Vec<u8> = sent.concat();
    let (mut kinds, mut rest) = (Vec::new(), bytes.as_slice());
    while let [kind, length @ ..] = rest {
        let Some(length) = length.first_chunk::<4>() else { break };
        kinds.push(char::from(*kind));
        rest = &rest[1 + u32::from_be_bytes(*length) as usize..];
    }
    kinds
}

async fn each_call_is_one_message_and_leaves_nothing_behind(place: Place<Postgres>) {
    let proxy = Proxy::start(place.server()).await;
    let pool = place.at(proxy.port).pool(1);
    let store = Sql::builder(pool.clone()).table(&place.table).pooler(Pooler::Transaction).build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    drop(pool.acquire().await.unwrap());
    proxy.take_sent();

    let first = written(store.swap(&key(), None, &record(1)).await.unwrap());
    let Swap::Lost(Standing::Is(stands)) = store.swap(&key(), None, &record(2)).await.unwrap() else {
        panic!()
    };
    assert_eq!((stands.version, stands.record), (first.clone(), record(1)));
    let second = written(store.swap(&key(), Some(&first), &record(3)).await.unwrap());
    let lost = store.swap(&key(), Some(&first), &record(4)).await.unwrap();
    assert!(matches!(lost, Swap::Lost(Standing::Unknown)), "{lost:?}");
    assert_eq!(store.list(&Filter::default(), &Page::default()).await.unwrap().found.len(), 1);
    assert_eq!(store.purge_expired(1).await.unwrap(), 0);
    assert!(store.read(&key()).await.unwrap().is_some());
    drop(pool.acquire().await.unwrap());

    let kinds = kinds(&proxy.take_sent());
    assert_eq!(kinds.iter().filter(|kind| **kind == 'Q').count(), 7, "{kinds:?}");
    assert!(kinds.iter().all(|kind| matches!(kind, 'Q' | 'S')), "{kinds:?}");
    let prepared = sqlx::raw_sql("SELECT 1 FROM pg_prepared_statements").fetch_all(&pool).await.unwrap();
    assert!(prepared.is_empty());

    // A transaction keeps its server until it ends.
    let mut transaction = pool.begin().await.unwrap();
    assert!(store.swap_in(&mut transaction, &key(), &second, &record(5)).await.unwrap());
    store.commit(transaction).await.unwrap();
    assert_eq!(store.read(&key()).await.unwrap().unwrap().record, record(5));
    store.check().await.unwrap();
}

async fn whatever_a_key_is_it_stays_a_key(place: Place<Postgres>) {
    let builder = Sql::builder(place.pool(2)).table(&place.table).pooler(Pooler::Transaction);
    let store = builder.build().unwrap();
    let texts = [
        "'; DROP TABLE x; --",
        "\\'",
        "$1",
        "$2",
        "{}",
        "\u{e9}",
        "e\u{301}",
        "nul\0",
        "a ",
        "\u{1F600}",
        "''",
    ];
    for (token, text) in (1..).zip(texts) {
        let key = ("orders", text).into_key().unwrap();
        let mut next = record(token);
        next.data = text.as_bytes().to_vec().into();
        next.unknown.insert("said".to_owned(), format!("{text} $3 \\").into());
        let _ = written(store.swap(&key, None, &next).await.unwrap());
        assert_eq!(store.read(&key).await.unwrap().unwrap().record, next, "{text:?}");
    }
}
