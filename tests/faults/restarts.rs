//! Servers that are killed and started again while a key is held: what was acknowledged is there.

use pushonce::{RunError, Skip, lock};

use crate::server::{Server, on_servers_of_our_own};
use crate::site::Site;
use crate::world::{Runs, assert_done, key, standing};

on_servers_of_our_own! {
    [redis postgres mariadb s3] {
        a_claim_outlives_its_server_and_completes
        a_completion_waits_for_its_server_to_come_back
    }
}

async fn a_claim_outlives_its_server_and_completes(name: &'static str) {
    let mut server = Server::start(name).await;
    let site = Site::of(name, &server.url()).await;
    let (store, key, runs) = (site.store(), key("po-1"), Runs::default());
    let (counted, inside, at) = (runs.clone(), store.clone(), key.clone());
    let ran = lock(&key, &store)
        .run_with(|lease| async move {
            let (fence, _) = counted.run(inside.clone(), lease).await;
            server.kill();
            server.restart().await;
            // To another delivery, which is another task, it is still held, and by the same claim.
            let (other, its) = (inside.clone(), at.clone());
            let held = tokio::spawn(async move { lock(its, &other).run(async { Ok(()) }).await }).await?;
            assert!(matches!(held, Err(RunError::Skipped(Skip::InProgress { .. }))), "{held:?}");
            assert_eq!(standing(&inside, &at).await.record.fence, fence);
            Ok((server, fence))
        })
        .await;
    let (_server, fence) = ran.unwrap();
    assert_done(&site.store(), &key, fence).await;
    assert_eq!(runs.count(), 1);
}

async fn a_completion_waits_for_its_server_to_come_back(name: &'static str) {
    let mut server = Server::start(name).await;
    let site = Site::of(name, &server.url()).await;
    let (store, key, runs) = (site.store(), key("po-1"), Runs::default());
    let (counted, inside) = (runs.clone(), store.clone());
    let ran = lock(&key, &store)
        .run_with(|lease| async move {
            let (fence, _) = counted.run(inside.clone(), lease).await;
            server.kill();
            Ok((server, fence))
        })
        .await;
    // The work succeeded, so its caller is told so, whatever became of the record.
    let (mut server, fence) = ran.unwrap();
    server.restart().await;
    assert_done(&site.store(), &key, fence).await;
    assert_eq!(runs.count(), 1);
}
