//! What stands on the server, under which name and for how long, and what a call costs.

use std::collections::BTreeMap;
use std::time::Duration;

use pushonce::store::{Maintain as _, Redis, Standing, StoreError, Swap, Version};
use pushonce::{Skip, Store as _, lock};

use crate::redis_server::RedisServer;
use crate::{at, fresh, key, name, record, report, shared, standing, store_at, written};

/// Asks the shared server past the store.
async fn ask<T: redis::FromRedisValue>(command: &[&str]) -> T {
    let client = redis::Client::open(shared()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_record_is_one_hash_with_its_document_its_token_and_the_servers_time() {
    let prefix = fresh();
    let store = Redis::builder(shared()).prefix(&prefix).build().unwrap();
    let version = written(store.swap(&key("po-1"), None, &record(0xab)).await);
    assert_eq!(version, Version::text(format!("{:032x}", 0xab)));
    let hash: BTreeMap<String, String> = ask(&["HGETALL", &name(&prefix, &key("po-1"))]).await;
    assert_eq!(hash.keys().collect::<Vec<_>>(), ["document", "token", "written_us"]);
    assert!(hash["document"].contains(r#""key":"orders:po-1""#) && hash["document"].contains(r#""fence":7"#));
    assert_eq!(hash["token"], format!("{:032x}", 0xab));
    let (seconds, _): (u64, u64) = ask(&["TIME"]).await;
    let at: u64 = hash["written_us"].parse().unwrap();
    assert!((seconds - 60..=seconds).contains(&(at / 1_000_000)), "{at} is not the server's time");
    report::test("redis", "a_record_is_one_hash_with_its_document_its_token_and_the_servers_time");
}

#[tokio::test]
async fn retention_is_the_records_own_difference_and_is_set_anew_by_each_write() {
    let prefix = fresh();
    let store = Redis::builder(shared()).prefix(&prefix).build().unwrap();
    let (key, left) = (key("po-1"), |name: String| async move { ask::<i64>(&["PTTL", &name]).await });
    // By a client whose clock stands in 2023, as in `record`.
    let first = written(store.swap(&key, None, &record(1)).await);
    assert!((1..=100_000).contains(&left(name(&prefix, &key)).await));
    let longer = pushonce::store::Record { expires: record(2).written + 500_000_000_000, ..record(2) };
    let _ = written(store.swap(&key, Some(&first), &longer).await);
    assert!((400_000_000..=500_000_000).contains(&left(name(&prefix, &key)).await));
    report::test("redis", "retention_is_the_records_own_difference_and_is_set_anew_by_each_write");
}

#[tokio::test]
async fn braces_in_a_key_do_not_choose_its_slot() {
    let prefix = fresh();
    let store = Redis::builder(shared()).prefix(&prefix).build().unwrap();
    let mut slots = std::collections::BTreeSet::new();
    for text in ["{same}1", "{same}2", "{same}3", "{same}4", "}{", "{}"] {
        let _ = written(store.swap(&key(text), None, &record(1)).await);
        let name = name(&prefix, &key(text));
        assert_eq!(ask::<u8>(&["EXISTS", &name]).await, 1, "{name}");
        let digits = key(text).stored_name(256)[..4].to_owned();
        let slot_of =
            |text: &str| crate::cluster::shared().nodes[0].ask::<u16>(&["CLUSTER", "KEYSLOT", text]);
        assert_eq!(slot_of(&name), slot_of(&digits), "{name}");
        slots.insert(slot_of(&name));
    }
    assert!(slots.len() > 3, "{slots:?}");
    report::test("redis", "braces_in_a_key_do_not_choose_its_slot");
}

#[tokio::test]
async fn what_is_not_a_record_is_corrupt_and_never_absent() {
    let prefix = fresh();
    let store = Redis::builder(shared()).prefix(&prefix).build().unwrap();
    let other = written(store.swap(&key("other"), None, &record(1)).await);
    let others: String = ask(&["HGET", &name(&prefix, &key("other")), "document"]).await;
    let complete: &[&str] = &["document", &others, "token", "01", "written_us", "1"];
    for fields in [
        &["SET", "text"] as &[&str],
        &["HSET", "colour", "blue"],
        &["HSET", "document", "{}", "token", "01", "written_us", "1"],
        &["HSET", "document", &others, "token", "01"],
        &["HSET", "document", &others, "token", "01", "written_us", "today"],
        &[&["HSET"], complete].concat(),
    ] {
        let key = key(&format!("{fields:?}"));
        let name = name(&prefix, &key);
        let _: redis::Value = ask(&[&[fields[0], &name], &fields[1..]].concat()).await;
        for _ in 0..2 {
            let error = store.read(&key).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{fields:?}: {error:?}");
            let error = store.swap(&key, None, &record(2)).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{fields:?}: {error:?}");
        }
    }
    assert_eq!(standing(&store, &key("other")).await.version, other);
    report::test("redis", "what_is_not_a_record_is_corrupt_and_never_absent");
}

#[tokio::test]
async fn a_version_of_another_store_is_refused_and_is_no_create() {
    let store = at(shared()).build().unwrap();
    for foreign in [Version::number(1), Version::text("")] {
        let error = store.swap(&key("po-1"), Some(&foreign), &record(1)).await.unwrap_err();
        crate::is_refused(&error, "another store");
    }
    assert!(store.read(&key("po-1")).await.unwrap().is_none());
    report::test("redis", "a_version_of_another_store_is_refused_and_is_no_create");
}

#[tokio::test]
async fn every_call_is_one_trip_whatever_it_finds() {
    let server = RedisServer::start(&[]);
    let store = at(server.url()).build().unwrap();
    // Dialling and the first sight of the script cost more, once.
    store.check().await.unwrap();
    let asked = || -> u64 {
        let commands: redis::InfoDict = server.ask(&["INFO", "commandstats"]);
        // What the script does inside is no trip, and the asking here is none of the store's.
        let inside =
            ["time", "hdel", "exists", "hmget", "hset", "pexpire", "info", "client", "client|setinfo"];
        let trips = commands.keys().filter_map(|name| {
            let command = name.strip_prefix("cmdstat_").filter(|command| !inside.contains(command))?;
            let told: String = commands.get(name)?;
            Some((
                command.to_owned(),
                told.strip_prefix("calls=")?.split(',').next()?.parse::<u64>().unwrap(),
            ))
        });
        trips.map(|(_, calls)| calls).sum()
    };
    let (one, none) = (key("one"), key("none"));
    let before = asked();
    let version = written(store.swap(&one, None, &record(1)).await);
    assert_eq!(asked() - before, 1, "a create");
    let lost = store.swap(&one, None, &record(2)).await.unwrap();
    assert!(matches!(lost, Swap::Lost(Standing::Is(stored)) if stored.version == version));
    assert_eq!(asked() - before, 2, "a create that is lost, and says what stands");
    let lost = store.swap(&none, Some(&version), &record(3)).await.unwrap();
    assert!(matches!(lost, Swap::Lost(Standing::Absent)));
    assert_eq!(asked() - before, 3, "an update of what is not there");
    let _ = written(store.swap(&one, Some(&version), &record(4)).await);
    assert_eq!(asked() - before, 4, "an update");
    let _ = (standing(&store, &one).await, store.read(&none).await.unwrap());
    assert_eq!(asked() - before, 6, "two reads");

    let store: std::sync::Arc<dyn pushonce::Store> = std::sync::Arc::new(store);
    let before = asked();
    lock("first", &store).run(async { Ok(()) }).await.unwrap();
    assert_eq!(asked() - before, 2, "a first message");
    let again = lock("first", &store).run(async { Ok(()) }).await.unwrap_err();
    assert!(matches!(again, pushonce::RunError::Skipped(Skip::Duplicate { .. })));
    assert_eq!(asked() - before, 3, "its duplicate");
    report::test("redis", "every_call_is_one_trip_whatever_it_finds");
}

#[tokio::test]
async fn an_age_is_the_servers_and_never_below_zero() {
    let prefix = fresh();
    let store = Redis::builder(shared()).prefix(&prefix).build().unwrap();
    let _ = written(store.swap(&key("po-1"), None, &record(1)).await);
    let young = standing(&store, &key("po-1")).await.age;
    assert!(young < Duration::from_secs(60), "{young:?}, though the record says 2023");
    // As after a failover to a server whose clock is behind.
    let _: u8 = ask(&["HSET", &name(&prefix, &key("po-1")), "written_us", "9000000000000000"]).await;
    assert_eq!(standing(&store, &key("po-1")).await.age, Duration::ZERO);
    report::test("redis", "an_age_is_the_servers_and_never_below_zero");
}

#[tokio::test]
async fn a_store_is_built_without_a_server_and_finds_it_when_it_comes() {
    let server = RedisServer::start(&[]);
    server.kill();
    let store = store_at(server.url());
    for _ in 0..2 {
        crate::passes(&store.swap(&key("po-1"), None, &record(1)).await.unwrap_err(), false);
        crate::passes(&store.read(&key("po-1")).await.unwrap_err(), false);
    }
    server.restart();
    let _ = written(store.swap(&key("po-1"), None, &record(1)).await);
    report::test("redis", "a_store_is_built_without_a_server_and_finds_it_when_it_comes");
}
