//! Connections that are lost before and after a write, on claim, reclaim, complete and release. // F65
//!
//! A proxy drops the connection either instead of passing the write on or instead of passing its
//! answer back. To the client both look the same.

use std::sync::Arc;

use axum::body::Body;
use axum::{Router, routing::post};
use pushonce::store::record::{Ended, State};
use pushonce::{Ack, Failure, History, IdempotentLayer, Key, RunError, Store, at_most_once, lock};
use tower::ServiceExt as _;

use crate::on_servers::on_servers;
use crate::proxy::Proxy;
use crate::site::Site;
use crate::world::{
    CLAIMED, DONE, LEASE, RELEASED, Runs, TAKEN_OVER, assert_done, key, leave_lapsed, settled,
};

on_servers! {
    wire {
        a_claim_whose_connection_is_lost_is_won_once
        a_reclaim_whose_connection_is_lost_is_won_once
        a_completion_whose_connection_is_lost_is_recorded
        a_release_whose_connection_is_lost_counts_one_run
        a_mark_whose_connection_is_lost_runs_once
        a_push_whose_claim_and_completion_are_cut_off_runs_once
    }
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    BeforeWrite,
    AfterWrite,
}

/// A store behind a proxy, and the same records past it.
#[derive(Clone)]
struct World {
    proxy: Arc<Proxy>,
    store: Arc<dyn Store>,
    past: Arc<dyn Store>,
}

impl World {
    fn cut(&self, cut: Cut, write: &'static str) {
        match cut {
            Cut::BeforeWrite => self.proxy.cut_before(write),
            Cut::AfterWrite => self.proxy.cut_after(write),
        }
    }
}

/// Runs the test for either cut, each on a key of its own.
async fn each(site: &Site, test: impl AsyncFn(World, Cut, Key)) {
    let proxy = Arc::new(site.proxy().await);
    let store = site.store_at(&proxy.address());
    let world = World { proxy, store, past: site.store() };
    for cut in [Cut::BeforeWrite, Cut::AfterWrite] {
        test(world.clone(), cut, key(format!("{cut:?}"))).await;
        assert!(!world.proxy.is_waiting(), "{cut:?} was made");
    }
}

async fn a_claim_whose_connection_is_lost_is_won_once(site: &Site) {
    each(site, async |world, cut, key| {
        let runs = Runs::default();
        let (counted, past) = (runs.clone(), world.past.clone());
        world.cut(cut, CLAIMED);
        let ran = lock(&key, &world.store)
            .run_with(|lease| async move { Ok(counted.run(past, lease).await) })
            .await;
        let (fence, history) = ran.unwrap();
        assert_eq!(history, History::Fresh, "its own claim is no earlier run");
        assert_done(&world.past, &key, fence).await;
        assert_eq!(runs.count(), 1);
    })
    .await;
}

async fn a_reclaim_whose_connection_is_lost_is_won_once(site: &Site) {
    each(site, async |world, cut, key| {
        let before = leave_lapsed(&world.past, &key).await;
        let runs = Runs::default();
        let (counted, past) = (runs.clone(), world.past.clone());
        // Not the create before it, which is lost to what stands.
        world.cut(cut, TAKEN_OVER);
        let ran = lock(&key, &world.store)
            .lease(4 * LEASE)
            .run_with(|lease| async move { Ok(counted.run(past, lease).await) })
            .await;
        let (fence, history) = ran.unwrap();
        assert_eq!(history, History::Unknown { runs: 1 });
        assert!(fence > before);
        assert_done(&world.past, &key, fence).await;
        assert_eq!(runs.count(), 1);
    })
    .await;
}

async fn a_completion_whose_connection_is_lost_is_recorded(site: &Site) {
    each(site, async |world, cut, key| {
        let runs = Runs::default();
        let (counted, inside) = (runs.clone(), world.clone());
        let ran = lock(&key, &world.store)
            .on_uncertain(|key| panic!("{key} is recorded"))
            .run_with(move |lease| async move {
                let (fence, _) = counted.run(inside.past.clone(), lease).await;
                inside.cut(cut, DONE);
                Ok(fence)
            })
            .await;
        assert_done(&world.past, &key, ran.unwrap()).await;
        assert_eq!(runs.count(), 1);
    })
    .await;
}

async fn a_release_whose_connection_is_lost_counts_one_run(site: &Site) {
    each(site, async |world, cut, key| {
        let inside = world.clone();
        let failed = lock(&key, &world.store)
            .run::<(), _>(async move {
                inside.cut(cut, RELEASED);
                Err("no".into())
            })
            .await;
        assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
        let record = settled(&world.past, &key, State::Released).await.record;
        assert_eq!((record.ended, record.runs), (Ended::Failed, 1));
        let history = lock(&key, &world.store).run_with(|lease| async move { Ok(lease.history()) }).await;
        assert_eq!(history.unwrap(), History::Failed { runs: 1 });
    })
    .await;
}

async fn a_mark_whose_connection_is_lost_runs_once(site: &Site) {
    each(site, async |world, cut, key| {
        world.cut(cut, DONE);
        assert_eq!(at_most_once(&key, &world.store).run(async { Ok(7) }).await.unwrap(), Some(7));
        assert_eq!(at_most_once(&key, &world.store).run(async { Ok(8) }).await.unwrap(), None);
    })
    .await;
}

async fn a_push_whose_claim_and_completion_are_cut_off_runs_once(site: &Site) {
    each(site, async |world, cut, key| {
        let runs = Runs::default();
        let (counted, inside) = (runs.clone(), world.clone());
        let handler = move |lease: pushonce::Lease| async move {
            counted.run(inside.past.clone(), lease).await;
            inside.cut(cut, DONE);
            Ok::<_, Failure>(Ack)
        };
        let layer = IdempotentLayer::new("orders", world.store.clone());
        let app: Router = Router::new().route("/", post(handler).layer(layer));
        world.cut(cut, CLAIMED);
        for (status, outcome) in [(200, "ran"), (204, "duplicate")] {
            let body = format!(r#"{{"message":{{"messageId":"{}","data":""}}}}"#, key.text());
            let push = http::Request::post("/").body(Body::from(body)).unwrap();
            let answer = app.clone().oneshot(push).await.unwrap();
            let told = answer.headers()["pushonce-outcome"].to_str().unwrap();
            assert_eq!((answer.status().as_u16(), told), (status, outcome), "{cut:?}");
        }
        assert_eq!(runs.count(), 1);
    })
    .await;
}
