//! A cluster: slots that move, nodes that are out or have lost their scripts.

use std::sync::{Arc, OnceLock};

use pushonce::store::{Maintain as _, Redis};
use pushonce::{RunError, Skip, Store, lock};

use crate::redis_server::{RedisCluster, RedisServer};
use crate::{at, fresh, key, name, passes, record, report, standing, store_at, written};

/// One for all tests that do not hurt it.
pub(crate) fn shared() -> &'static RedisCluster {
    static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
    CLUSTER.get_or_init(RedisCluster::start)
}

/// How often the node has sent somebody on.
fn sent_on(node: &RedisServer, how: &str) -> u64 {
    let told = node.info("errorstats", &format!("errorstat_{how}"));
    told.map_or(0, |told| told.trim_start_matches("count=").parse().unwrap())
}

#[tokio::test]
async fn a_slot_that_moves_is_followed_while_it_moves_and_after() {
    let cluster = RedisCluster::start();
    let prefix = fresh();
    let store = Redis::builder(cluster.url()).prefix(&prefix).build().unwrap();
    let moving = name(&prefix, &key("po-1"));
    let slot = cluster.nodes[0].ask::<u16>(&["CLUSTER", "KEYSLOT", &moving]).to_string();
    let (from, to) = cluster.owner_and_other(&moving);
    let (from_id, to_id): (String, String) = (from.ask(&["CLUSTER", "MYID"]), to.ask(&["CLUSTER", "MYID"]));
    let mut version = written(store.swap(&key("po-1"), None, &record(1)).await);

    let () = to.ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    let () = from.ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    version = written(store.swap(&key("po-1"), Some(&version), &record(2)).await);
    let () = from.ask(&["MIGRATE", "127.0.0.1", &to.port.to_string(), &moving, "0", "5000"]);
    // The script is new to the other node, and it may only be asked in passing.
    version = written(store.swap(&key("po-1"), Some(&version), &record(3)).await);
    assert_eq!(standing(&store, &key("po-1")).await.version, version);
    assert!(sent_on(from, "ASK") > 0);

    for node in &cluster.nodes {
        let () = node.ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    }
    version = written(store.swap(&key("po-1"), Some(&version), &record(4)).await);
    assert_eq!(standing(&store, &key("po-1")).await.version, version);
    assert!(sent_on(from, "MOVED") > 0);
    report::test("redis-cluster", "a_slot_that_moves_is_followed_while_it_moves_and_after");
}

// F72
#[tokio::test]
async fn every_node_gets_its_scripts_back_on_its_own() {
    let cluster = Arc::new(RedisCluster::start());
    let store = store_at(cluster.url());
    let flushed = cluster.clone();
    let work = move || {
        for node in &flushed.nodes {
            let () = node.ask(&["SCRIPT", "FLUSH"]);
        }
        Ok(())
    };
    for text in ["a", "b", "c", "d", "e", "f"] {
        let work = work.clone();
        lock(key(text), &store).run(async move { work() }).await.unwrap();
        let again = lock(key(text), &store).run(async { Ok(()) }).await.unwrap_err();
        assert!(matches!(again, RunError::Skipped(Skip::Duplicate { .. })), "{again:?}");
    }
    report::test("redis-cluster", "every_node_gets_its_scripts_back_on_its_own");
}

#[tokio::test]
async fn a_node_that_is_out_costs_its_own_keys_alone_and_comes_back() {
    let cluster = RedisCluster::start();
    let prefix = fresh();
    let build = || Redis::builder(cluster.url()).prefix(&prefix).build().unwrap();
    let store = build();
    let out = &cluster.nodes[2];
    let (theirs, others): (Vec<_>, Vec<_>) = (0..20)
        .map(|text| key(&text.to_string()))
        .partition(|key| cluster.owner_and_other(&name(&prefix, key)).0.port == out.port);
    assert!(!theirs.is_empty() && !others.is_empty());
    for key in theirs.iter().chain(&others) {
        let _ = written(store.swap(key, None, &record(1)).await);
        // The scripts of the other nodes are gone, too: they must not need all nodes to get them back.
        let () = cluster.nodes[0].ask(&["SCRIPT", "FLUSH"]);
    }
    out.kill();
    for store in [&store, &build()] {
        for key in &theirs[..1] {
            // The driver may have sent it before it found out.
            passes(&store.swap(key, None, &record(2)).await.unwrap_err(), true);
            passes(&store.read(key).await.unwrap_err(), false);
        }
        for key in &others {
            assert_eq!(standing(store, key).await.record, record(1));
        }
    }
    out.restart();
    for key in &theirs {
        while store.read(key).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    report::test("redis-cluster", "a_node_that_is_out_costs_its_own_keys_alone_and_comes_back");
}

#[tokio::test]
async fn a_cluster_is_found_by_any_of_the_nodes_that_are_named() {
    let cluster = shared();
    let named = cluster.url().replace("//", "//127.0.0.1:1,");
    let store = at(named).build().unwrap();
    store.check().await.unwrap();
    let _ = written(store.swap(&key("po-1"), None, &record(1)).await);
    report::test("redis-cluster", "a_cluster_is_found_by_any_of_the_nodes_that_are_named");
}

#[tokio::test]
async fn a_node_that_evicts_is_refused() {
    let cluster = RedisCluster::start();
    for (name, value) in [("maxmemory", "50mb"), ("maxmemory-policy", "allkeys-lru")] {
        let () = cluster.nodes[1].ask(&["CONFIG", "SET", name, value]);
    }
    let error = store_at(cluster.url()).read(&key("po-1")).await.unwrap_err();
    crate::is_refused(&error, "`noeviction`");
    report::test("redis-cluster", "a_node_that_evicts_is_refused");
}
