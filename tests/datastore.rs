//! The Datastore store on both emulators that speak for Firestore in Datastore mode.
//!
//! `DATASTORE_EMULATOR_HOST` names the Datastore emulator (started with `--firestore_in_datastore_mode`)
//! and `PUSHONCE_TEST_FIRESTORE` the Firestore emulator (started with `--database-mode=datastore-mode`),
//! both as `host:port`. Each catches what the other lets through, so a missing one is a failure.
#![cfg(test)]

#[path = "support/both_emulators.rs"]
mod both_emulators;
#[path = "support/datastore_emulator.rs"]
mod emulator;
#[path = "support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod proxy;
#[path = "support/report.rs"]
mod report;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use both_emulators::on_both_emulators;
use emulator::{Emulator, PROJECT, key, record};
use futures_util::future::join_all;
use gcloud_sdk::google::datastore::v1::value::ValueType;
use proxy::{Proxy, Speech};
use pushonce::store::record::Id;
use pushonce::store::{Datastore, Maintain as _, Standing, StoreError, Stored, Swap, Version};
use pushonce::{Clock, IntoKey, Key, Store};

const RACERS: usize = 20;
/// What is in every write and in no look-up.
const WRITE: &str = r#"{"format":100,"#;

on_both_emulators! {
    a_record_is_created_once_and_swapped_on_its_version_only
    of_twenty_racers_one_creates_and_one_updates
    a_version_from_before_a_deletion_is_lost
    every_key_round_trips_and_distinct_keys_stay_distinct
    expires_at_is_a_timestamp_and_nothing_is_indexed
    age_grows_and_begins_again_with_a_write
    the_same_content_under_a_fresh_token_moves_the_version
    unknown_fields_survive_a_rewrite
    a_newer_major_format_is_refused_and_left_untouched
    what_is_not_a_record_is_corrupt_and_never_absent
    an_emulator_is_found_however_its_address_is_spelled
    a_call_costs_one_rpc_and_all_calls_share_one_connection
    a_connection_that_fell_silent_is_replaced_by_the_next_call
    a_write_whose_answer_is_lost_is_known_by_its_token
    a_write_that_was_cut_off_on_its_way_is_not_there
    a_server_that_is_not_there_yet_is_an_outage_and_found_later
    a_set_up_that_works_passes_the_check
}

fn written(swap: Swap) -> Version {
    let Swap::Written(version) = swap else { panic!("nothing was written: {swap:?}") };
    version
}

fn is_lost(swap: &Swap) -> bool {
    matches!(swap, Swap::Lost(Standing::Unknown | Standing::Absent))
}

async fn standing(store: &Datastore, key: &Key) -> Stored {
    store.read(key).await.unwrap().expect("a record stands under the key")
}

async fn a_record_is_created_once_and_swapped_on_its_version_only(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    assert!(store.read(&key).await.unwrap().is_none());
    let first = written(store.swap(&key, None, &record(1)).await.unwrap());
    let stored = standing(&store, &key).await;
    assert_eq!((stored.record, &stored.version), (record(1), &first));
    assert!(is_lost(&store.swap(&key, None, &record(2)).await.unwrap()));

    let second = written(store.swap(&key, Some(&first), &record(3)).await.unwrap());
    assert_ne!(first, second);
    assert!(is_lost(&store.swap(&key, Some(&first), &record(4)).await.unwrap()));
    let stored = standing(&store, &key).await;
    assert_eq!((stored.record, stored.version), (record(3), second));
}

async fn of_twenty_racers_one_creates_and_one_updates(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let mut seen = None;
    for (round, tokens) in [("create", 1..21), ("update", 21..41)] {
        // Fresh tokens: a write of what stands already is accepted and wins nothing.
        let records: Vec<_> = tokens.map(record).collect();
        let race = records.iter().map(|record| store.swap(&key, seen.as_ref(), record));
        // Contention may also answer with an error, which the caller resolves by a read.
        let swaps = join_all(race).await;
        let winners: Vec<_> =
            swaps.iter().zip(&records).filter(|(swap, _)| matches!(swap, Ok(Swap::Written(_)))).collect();
        assert_eq!(winners.len(), 1, "{round}: {swaps:?}");
        let stored = standing(&store, &key).await;
        assert_eq!(&stored.record, winners[0].1, "{round}");
        seen = Some(stored.version);
    }
}

async fn a_version_from_before_a_deletion_is_lost(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let before = written(store.swap(&key, None, &record(1)).await.unwrap());
    emulator.delete(&key).await;
    assert!(is_lost(&store.swap(&key, Some(&before), &record(2)).await.unwrap()), "of an absent record");
    let after = written(store.swap(&key, None, &record(1)).await.unwrap());
    assert_ne!(before, after);
    assert!(is_lost(&store.swap(&key, Some(&before), &record(2)).await.unwrap()), "of a record made anew");
    assert_eq!(standing(&store, &key).await.record, record(1));
}

// F68
async fn every_key_round_trips_and_distinct_keys_stay_distinct(emulator: Emulator) {
    let store = emulator.store();
    let long = "x".repeat(1999);
    let texts = [
        "k".repeat(1500),
        "k".repeat(1501),
        "\u{20ac}".repeat(600),
        "__x__".to_owned(),
        "a/b".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        "nul\0".to_owned(),
        "nul".to_owned(),
        "a".to_owned(),
        "a ".to_owned(),
        "\u{e9}".to_owned(),
        "e\u{301}".to_owned(),
        format!("{long}a"),
        format!("{long}b"),
        "z".repeat(300_000),
    ];
    let keys: Vec<_> = texts.iter().map(|text| ("orders", text).into_key().unwrap()).collect();
    for (token, key) in (1..).zip(&keys) {
        let _ = written(store.swap(key, None, &record(token)).await.unwrap());
    }
    for (token, key) in (1..).zip(&keys) {
        assert_eq!(standing(&store, key).await.record, record(token));
    }
    assert_eq!(keys.iter().map(|key| key.stored_name(1500)).collect::<HashSet<_>>().len(), texts.len());
}

// F70
async fn expires_at_is_a_timestamp_and_nothing_is_indexed(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let _ = written(store.swap(&key, None, &record(1)).await.unwrap());
    let properties = emulator.raw_read(&key).await.unwrap().entity.unwrap().properties;
    let Some(ValueType::TimestampValue(expires)) = &properties["expires_at"].value_type else {
        panic!("{properties:?}")
    };
    assert_eq!((expires.seconds, expires.nanos), (1_800_000_000, 1_000));
    let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["expires_at", "key", "record", "state", "written_at"]);
    assert!(properties.values().all(|value| value.exclude_from_indexes), "{properties:?}");
}

/// A wall clock that stands until it is moved.
#[derive(Debug)]
struct Hands(Mutex<SystemTime>);

impl Clock for Hands {
    fn wall(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

async fn age_grows_and_begins_again_with_a_write(emulator: Emulator) {
    // For the emulator that tells no time; the other one's own clock goes on by itself.
    let clock = Arc::new(Hands(Mutex::new(UNIX_EPOCH + Duration::from_secs(1_700_000_000))));
    let (store, key) = (emulator.builder(&emulator.host).clock(clock.clone()).build().unwrap(), key());
    let version = written(store.swap(&key, None, &record(1)).await.unwrap());
    let old = Duration::from_millis(300);
    let aged = async {
        while standing(&store, &key).await.age < old {
            *clock.0.lock().unwrap() += Duration::from_millis(50);
        }
    };
    tokio::time::timeout(Duration::from_secs(20), aged).await.expect("the age grows");

    let mut rewritten = record(2);
    let now = clock.wall().duration_since(UNIX_EPOCH).unwrap();
    rewritten.written = u64::try_from(now.as_micros()).unwrap();
    let before = standing(&store, &key).await.age;
    let _ = written(store.swap(&key, Some(&version), &rewritten).await.unwrap());
    assert!(standing(&store, &key).await.age < before);

    *clock.0.lock().unwrap() = UNIX_EPOCH;
    assert!(standing(&store, &key).await.age < before, "never below zero, whatever our clock says");
}

async fn the_same_content_under_a_fresh_token_moves_the_version(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let first = written(store.swap(&key, None, &record(1)).await.unwrap());
    let second = written(store.swap(&key, Some(&first), &record(2)).await.unwrap());
    assert_ne!(first, second);
    assert!(is_lost(&store.swap(&key, Some(&first), &record(3)).await.unwrap()));
}

async fn unknown_fields_survive_a_rewrite(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let mut newer = record(1);
    newer.unknown.insert("colour".into(), "blue".into());
    let _ = written(store.swap(&key, None, &newer).await.unwrap());
    let mut stored = standing(&store, &key).await;
    assert_eq!(stored.record.unknown["colour"], "blue");
    stored.record.token = Id::from_bits(2);
    let _ = written(store.swap(&key, Some(&stored.version), &stored.record).await.unwrap());
    assert_eq!(standing(&store, &key).await.record.unknown["colour"], "blue");
}

async fn a_newer_major_format_is_refused_and_left_untouched(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let old = written(store.swap(&key, None, &record(1)).await.unwrap());
    emulator.rewrite(&key, "record", r#"{"format":200,"nothing":"as we know it"}"#).await;
    let before = emulator.raw_read(&key).await.unwrap();
    let error = store.read(&key).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 200, limit: 200 }), "{error:?}");
    for seen in [None, Some(&old)] {
        assert!(is_lost(&store.swap(&key, seen, &record(2)).await.unwrap()));
    }
    assert_eq!(emulator.raw_read(&key).await.unwrap(), before);
}

async fn what_is_not_a_record_is_corrupt_and_never_absent(emulator: Emulator) {
    let (store, key) = (emulator.store(), key());
    let _ = written(store.swap(&key, None, &record(1)).await.unwrap());
    for (property, text) in [("key", "orders:po-2"), ("record", "{}")] {
        emulator.rewrite(&key, property, text).await;
        let error = store.read(&key).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{property}: {error:?}");
    }
}

async fn an_emulator_is_found_however_its_address_is_spelled(emulator: Emulator) {
    let (host, key) = (&emulator.host, key());
    let _ = written(emulator.store().swap(&key, None, &record(1)).await.unwrap());
    for spelling in [host.clone(), format!("http://{host}"), format!("{host}/"), format!("http://{host}/")] {
        let store = emulator.builder(&spelling).build().unwrap();
        assert_eq!(standing(&store, &key).await.record, record(1), "{spelling}");
    }
}

#[tokio::test]
async fn the_environment_names_the_emulator_and_a_version_six_address_works() {
    let emulator = Emulator::datastore();
    let named = Datastore::builder(PROJECT).namespace(&emulator.namespace).build().unwrap();
    let _ = written(named.swap(&key(), None, &record(1)).await.unwrap());
    // The emulators listen on IPv4 only, so the counting proxy listens on IPv6 in front of one.
    let listener = tokio::net::TcpListener::bind("[::1]:0").await.expect("a loopback address of IPv6");
    let proxy = Proxy::start_on(listener, &emulator.host, Speech::Streams).unwrap();
    assert!(proxy.address().starts_with("[::1]:"));
    let store = emulator.builder(&proxy.address()).build().unwrap();
    assert_eq!(standing(&store, &key()).await.record, record(1));
    assert_eq!(proxy.take(), 1);
}

async fn a_call_costs_one_rpc_and_all_calls_share_one_connection(emulator: Emulator) {
    let proxy = Proxy::start(&emulator.host, Speech::Streams).await.unwrap();
    let (store, key) = (emulator.builder(&proxy.address()).build().unwrap(), key());
    assert_eq!(proxy.connections(), 0, "nothing is dialled when the store is built");
    let reads = join_all((0..RACERS).map(|_| store.read(&key))).await;
    assert!(reads.iter().all(|read| matches!(read, Ok(None))), "{reads:?}");
    assert_eq!(proxy.take(), RACERS);
    let version = written(store.swap(&key, None, &record(1)).await.unwrap());
    assert_eq!(proxy.take(), 1, "a create");
    let _ = written(store.swap(&key, Some(&version), &record(2)).await.unwrap());
    assert_eq!(proxy.take(), 1, "an update");
    let _ = standing(&store, &key).await;
    assert_eq!(proxy.take(), 1, "a read");
    assert!(is_lost(&store.swap(&key, None, &record(3)).await.unwrap()));
    assert_eq!(proxy.take(), 1, "a create that is lost");
    assert_eq!(proxy.connections(), 1);
}

async fn a_connection_that_fell_silent_is_replaced_by_the_next_call(emulator: Emulator) {
    let proxy = Proxy::start(&emulator.host, Speech::Streams).await.unwrap();
    let builder = emulator.builder(&proxy.address()).request_timeout(Duration::from_secs(2));
    let (store, key) = (builder.build().unwrap(), key());
    assert!(store.read(&key).await.unwrap().is_none());
    for (calls, connections) in [(1, 2), (5, 3)] {
        proxy.hold(WRITE);
        let (next, key) = (record(1), &key);
        let unanswered = join_all((0..calls).map(|_| store.swap(key, None, &next))).await;
        assert!(unanswered.iter().all(|swap| swap.as_ref().is_err_and(StoreError::may_have_written)));
        // Long before the next proof of life, and by one dial however many calls had waited.
        assert!(store.read(key).await.unwrap().is_none());
        assert_eq!(proxy.connections(), connections);
    }
}

// F65
async fn a_write_whose_answer_is_lost_is_known_by_its_token(emulator: Emulator) {
    let proxy = Proxy::start(&emulator.host, Speech::Streams).await.unwrap();
    let (store, key) = (emulator.builder(&proxy.address()).build().unwrap(), key());
    let mut seen = None;
    for token in 1..=2 {
        proxy.cut_after(WRITE);
        let error = store.swap(&key, seen.as_ref(), &record(token)).await.unwrap_err();
        assert!(error.is_transient() && error.may_have_written(), "{error:?}");
        let stored = standing(&store, &key).await;
        assert_eq!(stored.record.token, Id::from_bits(token));
        assert!(is_lost(&store.swap(&key, seen.as_ref(), &record(token)).await.unwrap()), "a blind retry");
        seen = Some(stored.version);
    }
}

async fn a_write_that_was_cut_off_on_its_way_is_not_there(emulator: Emulator) {
    let proxy = Proxy::start(&emulator.host, Speech::Streams).await.unwrap();
    let (store, key) = (emulator.builder(&proxy.address()).build().unwrap(), key());
    proxy.cut_before(WRITE);
    let error = store.swap(&key, None, &record(1)).await.unwrap_err();
    // To the store both cuts look the same, so it may not rule the write out.
    assert!(error.is_transient() && error.may_have_written(), "{error:?}");
    assert!(store.read(&key).await.unwrap().is_none());
    let _ = written(store.swap(&key, None, &record(1)).await.unwrap());
}

async fn a_server_that_is_not_there_yet_is_an_outage_and_found_later(emulator: Emulator) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (store, key) = (emulator.builder(&address.to_string()).build().unwrap(), key());
    for error in [
        store.swap(&key, None, &record(1)).await.unwrap_err(),
        store.read(&key).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ] {
        assert!(error.is_transient() && !error.may_have_written(), "nothing was sent: {error:?}");
    }
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let _proxy = Proxy::start_on(listener, &emulator.host, Speech::Streams).unwrap();
    let _ = written(store.swap(&key, None, &record(1)).await.unwrap());
}

async fn a_set_up_that_works_passes_the_check(emulator: Emulator) {
    emulator.store().check().await.unwrap();
}
