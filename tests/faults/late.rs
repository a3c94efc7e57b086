//! Writes that land late: held on their way past the deadline, and passed on when the key has moved on.

use std::sync::Arc;

use pushonce::store::record::State;
use pushonce::{RunError, Skip, lock};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{CLAIMED, DONE, LEASE, NEVER, Runs, assert_done, eventually, key, settled, standing};

on_servers! {
    wire {
        a_claim_that_lands_late_changes_nothing
        a_completion_that_lands_late_is_recorded_once
    }
}

async fn a_claim_that_lands_late_changes_nothing(site: &Site) {
    let proxy = site.proxy().await;
    let (store, past, key, runs) =
        (site.store_at(&proxy.address()), site.store(), key("po-1"), Runs::default());
    proxy.hold(CLAIMED);
    let attempt = |store: &_| {
        let (counted, inside) = (runs.clone(), past.clone());
        lock(&key, store)
            .lease(LEASE)
            .run_with(|lease| async move { Ok(counted.run(inside.clone(), lease).await.0) })
    };
    let given_up = tokio::time::timeout(NEVER, attempt(&store)).await.expect("a claim has a deadline");
    assert!(matches!(given_up, Ok(_) | Err(RunError::Store(_))), "{given_up:?}");
    // Another has the key meanwhile, unless a second try of the first has.
    let fence = match given_up {
        Ok(fence) => fence,
        Err(_) => {
            eventually("the key is free", async || match attempt(&past).await {
                Ok(fence) => Some(fence),
                Err(RunError::Skipped(Skip::InProgress { .. })) => None,
                Err(error) => panic!("{error:?}"),
            })
            .await
        }
    };
    let done = settled(&past, &key, State::Done).await;
    proxy.go_on().await;
    assert_eq!(standing(&past, &key).await.version, done.version);
    assert_done(&past, &key, fence).await;
    assert_eq!(runs.count(), 1);
}

async fn a_completion_that_lands_late_is_recorded_once(site: &Site) {
    let proxy = Arc::new(site.proxy().await);
    let (store, past, key) = (site.store_at(&proxy.address()), site.store(), key("po-1"));
    let held = proxy.clone();
    let run = lock(&key, &store).lease(LEASE).run_with(|lease| async move {
        held.hold(DONE);
        Ok(lease.fence())
    });
    let fence = tokio::time::timeout(NEVER, run).await.expect("an answer has a deadline").unwrap();
    // Its next try has stored it on another connection, or waits behind the first, as over HTTP/2.
    let before = standing(&past, &key).await;
    proxy.go_on().await;
    let done = settled(&past, &key, State::Done).await;
    assert!(before.record.state != State::Done || done.version == before.version);
    assert_done(&past, &key, fence).await;
}
