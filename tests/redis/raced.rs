//! Many instances at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use pushonce::{RunError, Skip, Store, lock};

use crate::{fresh, report, shared};

const ROUNDS: usize = 200;
const RACERS: usize = 20;

/// Each racer on a connection of its own, for a key that all want and for one of its neighbours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_first_claims_one_runs_in_every_round() {
    let prefix = fresh();
    let store = |_| -> Arc<dyn Store> {
        Arc::new(pushonce::store::Redis::builder(shared()).prefix(&prefix).build().unwrap())
    };
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
    report::test("redis", "of_twenty_first_claims_one_runs_in_every_round");
}
