//! Servers that lose their scripts, restart with and without their records, or fail over.

use std::sync::Arc;

use pushonce::store::record::{Record, State};
use pushonce::store::{Redis, Standing, Swap};
use pushonce::{RunError, Skip, Store, lock};
use tokio::sync::oneshot;

use crate::forwarder::Forwarder;
use crate::redis_server::RedisServer;
use crate::{at, fresh, key, passes, record, report, standing, store_at, written};

/// A key that was completed through the store, once.
async fn is_done(store: &Arc<dyn Store>, text: &str) {
    let again = lock(key(text), store).run(async { Ok(()) }).await.unwrap_err();
    assert!(matches!(again, RunError::Skipped(Skip::Duplicate { .. })), "{again:?}");
}

// F72
#[tokio::test]
async fn a_script_cache_that_was_flushed_between_claim_and_completion_is_filled_again() {
    let server = Arc::new(RedisServer::start(&[]));
    let store = store_at(server.url());
    let flushed = server.clone();
    let work = async move {
        let () = flushed.ask(&["SCRIPT", "FLUSH"]);
        Ok(())
    };
    lock(key("po-1"), &store).run(work).await.unwrap();
    is_done(&store, "po-1").await;
    let () = server.ask(&["SCRIPT", "FLUSH"]);
    let _ = written(store.swap(&key("po-2"), None, &record(1)).await);
    report::test("redis", "a_script_cache_that_was_flushed_between_claim_and_completion_is_filled_again");
}

#[tokio::test]
async fn a_server_that_restarts_with_its_records_between_claim_and_completion_changes_nothing() {
    let server = Arc::new(RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]));
    let store = store_at(server.url());
    let restarted = server.clone();
    let work = async move {
        tokio::task::spawn_blocking(move || restarted.restart()).await.unwrap();
        Ok(())
    };
    lock(key("po-1"), &store).run(work).await.unwrap();
    is_done(&store, "po-1").await;
    report::test(
        "redis",
        "a_server_that_restarts_with_its_records_between_claim_and_completion_changes_nothing",
    );
}

// F73, F59
#[tokio::test]
async fn a_holder_whose_claim_was_forgotten_is_fenced_out() {
    let server = Arc::new(RedisServer::start(&[]));
    let store = store_at(server.url());
    let (restarted, other) = (server.clone(), store.clone());
    let (claimed, is_claimed) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let first = async move {
        // Nothing is persisted: the claim of this very work is gone, and another gets the key.
        tokio::task::spawn_blocking(move || restarted.restart()).await.unwrap();
        let second = async move {
            claimed.send(()).unwrap();
            ended.await.unwrap();
            Ok(())
        };
        let second = tokio::spawn(async move { lock(key("po-1"), &other).run(second).await });
        is_claimed.await.unwrap();
        Ok(second)
    };
    // Its work succeeded, so it is told so; its record is another's.
    let second = lock(key("po-1"), &store).run(first).await.unwrap();
    let stands = standing(&*store, &key("po-1")).await.record;
    assert_eq!(stands.state, State::Claimed, "the completion of the first is fenced out");
    end.send(()).unwrap();
    second.await.unwrap().unwrap();
    let stands = standing(&*store, &key("po-1")).await.record;
    assert_eq!(stands.state, State::Done);
    is_done(&store, "po-1").await;
    report::test("redis", "a_holder_whose_claim_was_forgotten_is_fenced_out");
}

// F59
#[tokio::test]
async fn a_version_from_before_the_loss_is_lost_also_over_a_record_of_the_same_content() {
    let server = RedisServer::start(&[]);
    let store = store_at(server.url());
    let old = written(store.swap(&key("po-1"), None, &record(1)).await);
    server.restart();
    // The connection is gone with the server.
    let _ = store.read(&key("po-1")).await;
    let lost = store.swap(&key("po-1"), Some(&old), &record(2)).await.unwrap();
    assert!(matches!(lost, Swap::Lost(Standing::Absent)), "{lost:?}");
    let again = Record { token: record(3).token, ..record(1) };
    let _ = written(store.swap(&key("po-1"), None, &again).await);
    let lost = store.swap(&key("po-1"), Some(&old), &record(2)).await.unwrap();
    assert!(matches!(lost, Swap::Lost(Standing::Is(stored)) if stored.record == again));
    report::test("redis", "a_version_from_before_the_loss_is_lost_also_over_a_record_of_the_same_content");
}

#[tokio::test]
async fn a_demoted_primary_is_believed_nothing_and_its_connection_is_replaced() {
    let old = RedisServer::start(&[]);
    let new = old.replica();
    let line = Forwarder::to(old.port);
    let prefix = fresh();
    // One for each call, all of them connected to the old primary.
    let stores = ["read", "create", "update"]
        .map(|call| (call, Redis::builder(line.url()).prefix(&prefix).build().unwrap()));
    let version = written(stores[0].1.swap(&key("po-1"), None, &record(1)).await);
    for (_, store) in &stores {
        assert_eq!(standing(store, &key("po-1")).await.version, version);
    }
    new.promote(&old);
    // The endpoint leads to the new primary, the open connections to the old one.
    line.switch(new.port);
    for (call, store) in &stores {
        let error = match *call {
            "read" => store.read(&key("po-1")).await.unwrap_err(),
            "create" => store.swap(&key("po-1"), None, &record(2)).await.unwrap_err(),
            _ => store.swap(&key("po-1"), Some(&version), &record(2)).await.unwrap_err(),
        };
        passes(&error, false);
        assert!(error.to_string().contains("READONLY"), "{call}: {error}");
        assert_eq!(standing(store, &key("po-1")).await.version, version);
    }
    assert_eq!(line.dialled(), 2 * stores.len());
    let _ = written(stores[0].1.swap(&key("po-1"), Some(&version), &record(3)).await);
    report::test("redis-failover", "a_demoted_primary_is_believed_nothing_and_its_connection_is_replaced");
}

#[tokio::test]
async fn a_failover_between_claim_and_completion_changes_nothing_where_nothing_was_lost() {
    let old = Arc::new(RedisServer::start(&[]));
    let new = Arc::new(old.replica());
    let line = Arc::new(Forwarder::to(old.port));
    let store = store_at(line.url());
    let (ends, endpoint) = ((old.clone(), new.clone()), line.clone());
    let work = async move {
        let promote = move || {
            ends.1.promote(&ends.0);
            endpoint.switch(ends.1.port);
        };
        tokio::task::spawn_blocking(promote).await.unwrap();
        Ok(())
    };
    lock(key("po-1"), &store).run(work).await.unwrap();
    is_done(&store, "po-1").await;
    report::test(
        "redis-failover",
        "a_failover_between_claim_and_completion_changes_nothing_where_nothing_was_lost",
    );
}

// F73
#[tokio::test]
async fn a_failover_that_loses_an_acknowledged_claim_fences_its_holder_out() {
    let old = RedisServer::start(&[]);
    let new = old.replica();
    let line = Forwarder::to(old.port);
    let store = at(line.url()).build().unwrap();
    // From here on the replica gets nothing.
    let () = new.ask(&["REPLICAOF", "NO", "ONE"]);
    let claimed = written(store.swap(&key("po-1"), None, &record(1)).await);
    old.kill();
    line.switch(new.port);
    let _ = store.read(&key("po-1")).await;
    let theirs = written(store.swap(&key("po-1"), None, &record(2)).await);
    let lost = store.swap(&key("po-1"), Some(&claimed), &record(3)).await.unwrap();
    assert!(matches!(lost, Swap::Lost(Standing::Is(stored)) if stored.version == theirs));
    report::test("redis-failover", "a_failover_that_loses_an_acknowledged_claim_fences_its_holder_out");
}
