//! Connections that are lost before and after a write, on claim, reclaim, complete and release. // F65
//!
//! A proxy in front of each emulator drops the connection either instead of passing a commit on or
//! instead of passing its answer back. To the client both look the same.
#![cfg(test)]

#[path = "support/both_emulators.rs"]
mod both_emulators;
#[path = "support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod emulator;
#[path = "support/report.rs"]
mod report;
#[path = "support/rpc_count.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod rpc_count;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::{Router, routing::post};
use both_emulators::on_both_emulators;
use emulator::Emulator;
use pushonce::store::Stored;
use pushonce::store::record::{Ended, State};
use pushonce::{
    Ack, Failure, History, IdempotentLayer, IntoKey, Key, Lease, RunError, Skip, Store, at_most_once, lock,
};
use rpc_count::RpcCount;
use tower::ServiceExt as _;

const LEASE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
enum Cut {
    BeforeWrite,
    AfterWrite,
}

/// A store behind the proxy, and the same records past it.
#[derive(Clone)]
struct World {
    proxy: Arc<RpcCount>,
    cuts: Arc<AtomicUsize>,
    store: Arc<dyn Store>,
    past: Arc<dyn Store>,
}

impl World {
    async fn of(emulator: &Emulator) -> Self {
        let proxy = RpcCount::start(&emulator.host).await.unwrap();
        let store = Arc::new(emulator.builder(&proxy.address()).build().unwrap());
        Self { proxy: Arc::new(proxy), cuts: Arc::default(), store, past: Arc::new(emulator.store()) }
    }

    fn cut(&self, cut: Cut) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        match cut {
            Cut::BeforeWrite => self.proxy.cut_before_next_write(),
            Cut::AfterWrite => self.proxy.cut_after_next_write(),
        }
    }

    async fn standing(&self, key: &Key) -> Stored {
        self.past.read(key).await.unwrap().expect("a record stands under the key")
    }

    /// Recorded once, under that fence, and skipped from then on.
    async fn assert_done(&self, key: &Key, fence: u64) {
        let record = self.standing(key).await.record;
        assert_eq!((record.state, record.fence), (State::Done, fence));
        let again = lock(key, &self.store).run(async { Ok(()) }).await;
        assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
    }

    /// Leaves a claim behind that nobody will settle, and waits until it has lapsed.
    async fn leave_lapsed(&self, key: &Key) -> u64 {
        let never = std::future::pending();
        let limit = Duration::from_millis(1);
        let ended = lock(key, &self.store).lease(LEASE).work_timeout(limit).run::<(), _>(never).await;
        assert!(matches!(ended, Err(RunError::Work(_))), "{ended:?}");
        let lapses = async {
            while self.standing(key).await.age <= LEASE {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(10 * LEASE, lapses).await.expect("a lease lapses");
        self.standing(key).await.record.fence
    }
}

/// Runs the test for either cut, each on a key of its own.
async fn each(world: &World, test: impl AsyncFn(Cut, Key)) {
    for cut in [Cut::BeforeWrite, Cut::AfterWrite] {
        test(cut, ("orders", format!("{cut:?}")).into_key().unwrap()).await;
    }
    // Each cut was made: it cost a connection.
    assert_eq!(world.proxy.connections(), 1 + world.cuts.load(Ordering::SeqCst));
}

/// The work: it counts its runs, and the store must agree on whose claim it is.
async fn work(world: World, runs: Arc<AtomicU32>, lease: Lease) -> (u64, History) {
    runs.fetch_add(1, Ordering::SeqCst);
    let held = world.standing(lease.key()).await.record;
    assert_eq!((held.state, held.fence), (State::Claimed, lease.fence()));
    (lease.fence(), lease.history())
}

async fn a_claim_whose_connection_is_lost_is_won_once(emulator: Emulator) {
    let world = World::of(&emulator).await;
    each(&world, async |cut, key| {
        let runs = Arc::<AtomicU32>::default();
        let (seen, counted) = (world.clone(), runs.clone());
        world.cut(cut);
        let ran = lock(&key, &world.store)
            .run_with(|lease| async move { Ok(work(seen, counted, lease).await) })
            .await;
        let (fence, history) = ran.unwrap();
        assert_eq!(history, History::Fresh, "its own claim is no earlier run");
        world.assert_done(&key, fence).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

async fn a_reclaim_whose_connection_is_lost_is_won_once(emulator: Emulator) {
    let world = World::of(&emulator).await;
    each(&world, async |cut, key| {
        let before = world.leave_lapsed(&key).await;
        let runs = Arc::<AtomicU32>::default();
        let (seen, counted) = (world.clone(), runs.clone());
        // The create, which is lost to what stands, is not what is cut off.
        world.proxy.let_pass(1);
        world.cut(cut);
        let ran = lock(&key, &world.store)
            .run_with(|lease| async move { Ok(work(seen, counted, lease).await) })
            .await;
        let (fence, history) = ran.unwrap();
        assert_eq!(history, History::Unknown { runs: 1 });
        assert!(fence > before);
        world.assert_done(&key, fence).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

async fn a_completion_whose_connection_is_lost_is_recorded(emulator: Emulator) {
    let world = World::of(&emulator).await;
    each(&world, async |cut, key| {
        let runs = Arc::<AtomicU32>::default();
        let (cutting, counted) = (world.clone(), runs.clone());
        let ran = lock(&key, &world.store)
            .on_uncertain(|key| panic!("{key} is recorded"))
            .run_with(move |lease| async move {
                let (fence, _) = work(cutting.clone(), counted, lease).await;
                cutting.cut(cut);
                Ok(fence)
            })
            .await;
        world.assert_done(&key, ran.unwrap()).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

async fn a_release_whose_connection_is_lost_counts_one_run(emulator: Emulator) {
    let world = World::of(&emulator).await;
    each(&world, async |cut, key| {
        let cutting = world.clone();
        let failed = lock(&key, &world.store)
            .run::<(), _>(async move {
                cutting.cut(cut);
                Err("no".into())
            })
            .await;
        assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
        let record = world.standing(&key).await.record;
        assert_eq!((record.state, record.ended, record.runs), (State::Released, Ended::Failed, 1));
        let history = lock(&key, &world.store).run_with(|lease| async move { Ok(lease.history()) }).await;
        assert_eq!(history.unwrap(), History::Failed { runs: 1 });
    })
    .await;
}

async fn a_mark_whose_connection_is_lost_runs_once(emulator: Emulator) {
    let world = World::of(&emulator).await;
    each(&world, async |cut, key| {
        world.cut(cut);
        assert_eq!(at_most_once(&key, &world.store).run(async { Ok(7) }).await.unwrap(), Some(7));
        assert_eq!(at_most_once(&key, &world.store).run(async { Ok(8) }).await.unwrap(), None);
    })
    .await;
}

async fn a_push_whose_claim_and_completion_are_cut_off_runs_once(emulator: Emulator) {
    let world = World::of(&emulator).await;
    each(&world, async |cut, key| {
        let runs = Arc::new(AtomicU32::new(0));
        let (cutting, counted) = (world.clone(), runs.clone());
        let handler = move || async move {
            counted.fetch_add(1, Ordering::SeqCst);
            cutting.cut(cut);
            Ok::<_, Failure>(Ack)
        };
        let layer = IdempotentLayer::new("orders", world.store.clone());
        let app: Router = Router::new().route("/", post(handler).layer(layer));
        world.cut(cut);
        for (status, outcome) in [(200, "ran"), (204, "duplicate")] {
            let body = format!(r#"{{"message":{{"messageId":"{}","data":""}}}}"#, key.text());
            let push = http::Request::post("/").body(Body::from(body)).unwrap();
            let answer = app.clone().oneshot(push).await.unwrap();
            let told = answer.headers()["pushonce-outcome"].to_str().unwrap();
            assert_eq!((answer.status().as_u16(), told), (status, outcome), "{cut:?}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

on_both_emulators! {
    a_claim_whose_connection_is_lost_is_won_once
    a_reclaim_whose_connection_is_lost_is_won_once
    a_completion_whose_connection_is_lost_is_recorded
    a_release_whose_connection_is_lost_counts_one_run
    a_mark_whose_connection_is_lost_runs_once
    a_push_whose_claim_and_completion_are_cut_off_runs_once
}
