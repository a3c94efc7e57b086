//! What a row holds, whose clock counts, and what is not a record.

use std::time::Duration;

use pushonce::store::record::Id;
use pushonce::store::{Maintain as _, Sql, Standing, StoreError, Swap, Version};
use pushonce::{IntoKey as _, Store as _};

use crate::server::{Place, Server, key, record, written};

on! {
    each [
        a_blind_retry_of_a_write_is_lost
        garbage_collection_counts_by_the_servers_clock
        an_age_counts_in_utc_whatever_the_session_says
        a_retention_without_end_is_kept_for_a_thousand_years
        a_newer_major_format_is_refused_and_left_untouched
        what_is_not_a_record_is_corrupt_and_never_absent
        a_version_of_another_store_is_refused
        a_set_up_that_works_passes_the_check
    ]
}

async fn a_blind_retry_of_a_write_is_lost<DB: Server>(place: Place<DB>) {
    let (store, key) = (place.store(), key());
    let first = written(store.swap(&key, None, &record(1)).await.unwrap());
    assert!(matches!(store.swap(&key, None, &record(1)).await.unwrap(), Swap::Lost(_)));
    let _ = written(store.swap(&key, Some(&first), &record(2)).await.unwrap());
    assert!(matches!(store.swap(&key, Some(&first), &record(2)).await.unwrap(), Swap::Lost(_)));
}

// A writer whose clock is years off keeps its record neither longer nor shorter.
async fn garbage_collection_counts_by_the_servers_clock<DB: Server>(place: Place<DB>) {
    let store = place.store();
    let hour = 3_600_000_000;
    for (token, written_at) in [(1, hour), (2, 1_700_000_000_000_000), (3, 7_000_000_000_000_000)] {
        let mut record = record(token);
        (record.written, record.expires) = (written_at, written_at + hour);
        let key = ("orders", token.to_string()).into_key().unwrap();
        let _ = written(store.swap(&key, None, &record).await.unwrap());
    }
    assert_eq!(store.purge_expired(10).await.unwrap(), 0);
    place.run(&format!("UPDATE {{table}} SET expires_at = {}", DB::from_now(-1))).await;
    assert_eq!(store.purge_expired(10).await.unwrap(), 3);
}

async fn an_age_counts_in_utc_whatever_the_session_says<DB: Server>(place: Place<DB>) {
    let key = key();
    let store = |zone| Sql::builder(place.pool_with(1, zone)).table(&place.table).build().unwrap();
    let (east, west) = (store(DB::EAST), store(DB::WEST));
    let _ = written(east.swap(&key, None, &record(1)).await.unwrap());
    for store in [&east, &west] {
        let age = store.read(&key).await.unwrap().unwrap().age;
        assert!(age < Duration::from_secs(60), "{age:?}");
    }
    place.run(&format!("UPDATE {{table}} SET written_at = {}", DB::from_now(-100))).await;
    let age = west.read(&key).await.unwrap().unwrap().age;
    assert!((100..160).contains(&age.as_secs()), "{age:?}");
    // A clock that was set back.
    place.run(&format!("UPDATE {{table}} SET written_at = {}", DB::from_now(1000))).await;
    assert_eq!(east.read(&key).await.unwrap().unwrap().age, Duration::ZERO);
}

async fn a_retention_without_end_is_kept_for_a_thousand_years<DB: Server>(place: Place<DB>) {
    let (store, key) = (place.store(), key());
    let mut endless = record(1);
    (endless.written, endless.expires) = (0, u64::MAX);
    let _ = written(store.swap(&key, None, &endless).await.unwrap());
    assert_eq!(store.read(&key).await.unwrap().unwrap().record, endless);
    let centuries = 990 * 365 * 86_400;
    let later = format!("UPDATE {{table}} SET token = 'x' WHERE expires_at > {}", DB::from_now(centuries));
    assert_eq!(place.run(&later).await, 1);
}

async fn a_newer_major_format_is_refused_and_left_untouched<DB: Server>(place: Place<DB>) {
    let (store, key) = (place.store(), key());
    let old = written(store.swap(&key, None, &record(1)).await.unwrap());
    let newer = r#"{"format":200,"nothing":"as we know it"}"#;
    place.run(&format!("UPDATE {{table}} SET token = 'newer', document = '{newer}'")).await;
    let error = store.read(&key).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 200, limit: 200 }), "{error:?}");
    for seen in [None, Some(&old)] {
        let swap = store.swap(&key, seen, &record(2)).await;
        let refused = matches!(swap, Err(StoreError::NewerFormat { .. }));
        assert!(refused || matches!(swap, Ok(Swap::Lost(Standing::Unknown))), "{swap:?}");
    }
    let untouched = format!("UPDATE {{table}} SET token = 'same' WHERE document = '{newer}'");
    assert_eq!(place.run(&untouched).await, 1);
}

async fn what_is_not_a_record_is_corrupt_and_never_absent<DB: Server>(place: Place<DB>) {
    let (store, key) = (place.store(), key());
    let _ = written(store.swap(&key, None, &record(1)).await.unwrap());
    place.run("UPDATE {table} SET document = replace(document, 'po-1', 'po-2')").await;
    let another = store.read(&key).await.unwrap_err();
    assert!(matches!(another, StoreError::Corrupt { .. }), "{another:?}");
    place.run("UPDATE {table} SET document = '{}'").await;
    let empty = store.read(&key).await.unwrap_err();
    assert!(matches!(empty, StoreError::Corrupt { .. }), "{empty:?}");
}

async fn a_version_of_another_store_is_refused<DB: Server>(place: Place<DB>) {
    let error = place.store().swap(&key(), Some(&Version::number(7)), &record(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    let read = place.store().read(&key()).await.unwrap();
    assert!(read.is_none_or(|stored| stored.record.token != Id::from_bits(1)));
}

async fn a_set_up_that_works_passes_the_check<DB: Server>(place: Place<DB>) {
    let store = place.store();
    store.check().await.unwrap();
    store.check().await.unwrap();
    pushonce::store::open(&place.url).unwrap().check().await.unwrap();
    assert_eq!(place.run("DELETE FROM {table}").await, 0, "a check writes nothing");
}
