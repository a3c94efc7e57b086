//! Many instances at once, on a cluster and on a replica that was promoted. A single server is raced with all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use pushonce::store::Redis;
use pushonce::{RunError, Skip, Store, lock};

use crate::redis_server::RedisServer;
use crate::{cluster, fresh, report};

const ROUNDS: usize = 200;
const RACERS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_first_claims_on_a_cluster_one_runs_in_every_round() {
    one_runs_in_every_round(&cluster::shared().url()).await;
    report::test("redis-cluster", "of_twenty_first_claims_one_runs_in_every_round");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_first_claims_on_a_promoted_replica_one_runs_in_every_round() {
    let old = RedisServer::start(&[]);
    let new = old.replica();
    new.promote(&old);
    one_runs_in_every_round(&new.url()).await;
    report::test("redis-failover", "of_twenty_first_claims_one_runs_in_every_round");
}

/// Each racer on connections of its own, for a key that all want and for one of its neighbours.
async fn one_runs_in_every_round(url: &str) {
    let prefix = fresh();
    let store = |_| -> Arc<dyn Store> { Arc::new(Redis::builder(url).prefix(&prefix).build().unwrap()) };
    let stores: Vec<_> = (0..RACERS).map(store).collect();
    for round in 0..ROUNDS {
        let (ran, neighbours) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let count = |count: &Arc<AtomicUsize>| {
            let count = count.clone();
            async move {
                count.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        };
        let claims = stores.iter().enumerate().map(|(racer, store)| {
            let (work, next) = (count(&ran), count(&neighbours));
            async move {
                let one = lock(format!("{round}"), store).run(work);
                let own = lock(format!("{round}-{racer}"), store).run(next);
                tokio::join!(one, own)
            }
        });
        for (one, own) in join_all(claims).await {
            own.unwrap();
            assert!(
                matches!(
                    &one,
                    Ok(()) | Err(RunError::Skipped(Skip::Duplicate { .. } | Skip::InProgress { .. }))
                ),
                "{one:?}"
            );
        }
        assert_eq!((ran.load(Ordering::SeqCst), neighbours.load(Ordering::SeqCst)), (1, RACERS));
    }
}
