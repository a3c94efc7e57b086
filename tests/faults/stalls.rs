//! Servers that stand still past the deadline of a call and then go on.

use pushonce::store::record::{Ended, State};
use pushonce::{History, RunError, Skip, lock};

use crate::server::{Server, on_servers_of_our_own};
use crate::site::Site;
use crate::world::{LEASE, NEVER, Runs, assert_done, eventually, key, settled};

on_servers_of_our_own! {
    [redis postgres mariadb s3] {
        a_claim_that_is_stalled_is_given_up_and_harms_nobody
        a_completion_that_is_stalled_is_stored_later
        a_release_that_is_stalled_is_stored_later
    }
}

async fn a_claim_that_is_stalled_is_given_up_and_harms_nobody(name: &'static str) {
    let server = Server::start(name).await;
    let site = Site::of(name, &server.url()).await;
    let (store, key, runs) = (site.store(), key("po-1"), Runs::default());
    // Its connections are there already, as those of a process that has run for a while.
    assert!(store.read(&key).await.unwrap().is_none());
    let attempt = || {
        let (counted, inside) = (runs.clone(), store.clone());
        lock(&key, &store)
            .lease(LEASE)
            .run_with(|lease| async move { Ok(counted.run(inside.clone(), lease).await.0) })
    };
    server.stop().await;
    let given_up = tokio::time::timeout(NEVER, attempt()).await.expect("a claim has a deadline");
    assert!(matches!(&given_up, Err(RunError::Store(error)) if error.is_transient()), "{given_up:?}");
    assert_eq!(runs.count(), 0, "nothing runs without a claim");
    server.go_on();
    // The claim may have landed meanwhile: then it is undone, or it lapses.
    let fence = eventually("the key is free", async || match attempt().await {
        Ok(fence) => Some(fence),
        Err(RunError::Skipped(Skip::InProgress { .. }) | RunError::Store(_)) => None,
        Err(error) => panic!("{error:?}"),
    });
    assert_done(&store, &key, fence.await).await;
    assert_eq!(runs.count(), 1);
}

async fn a_completion_that_is_stalled_is_stored_later(name: &'static str) {
    let server = Server::start(name).await;
    let site = Site::of(name, &server.url()).await;
    let (store, key, runs) = (site.store(), key("po-1"), Runs::default());
    let (counted, inside) = (runs.clone(), store.clone());
    let run = lock(&key, &store).run_with(|lease| async move {
        let (fence, _) = counted.run(inside.clone(), lease).await;
        server.stop().await;
        Ok((server, fence))
    });
    let ran = tokio::time::timeout(NEVER, run).await.expect("an answer has a deadline");
    let (server, fence) = ran.expect("the work succeeded");
    server.go_on();
    assert_done(&store, &key, fence).await;
    assert_eq!(runs.count(), 1);
}

async fn a_release_that_is_stalled_is_stored_later(name: &'static str) {
    let server = Server::start(name).await;
    let site = Site::of(name, &server.url()).await;
    let (store, key) = (site.store(), key("po-1"));
    let (stopped, stops) = tokio::sync::oneshot::channel();
    let run = lock(&key, &store).run::<(), _>(async move {
        server.stop().await;
        stopped.send(server).expect("the test waits");
        Err("no".into())
    });
    let failed = tokio::time::timeout(NEVER, run).await.expect("an answer has a deadline");
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    let server = stops.await.expect("it ran");
    server.go_on();
    let record = settled(&store, &key, State::Released).await.record;
    assert_eq!((record.ended, record.runs), (Ended::Failed, 1));
    let history = lock(&key, &store).run_with(|lease| async move { Ok(lease.history()) }).await;
    assert_eq!(history.unwrap(), History::Failed { runs: 1 });
}
