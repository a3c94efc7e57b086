//! Each step of a key's life, made into its fault; what holds after it; and in a few words what was seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pushonce::store::record::{Ended, State, Verb};
use pushonce::{History, Key, Lease, RunError, Skip, Store, at_most_once, lock};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::cell::Cell;
use super::operator;
use super::rows::Row;
use crate::world::{assert_done, eventually, settled, standing};

/// Of the holder whose key is taken over.
const OLD_LEASE: Duration = Duration::from_secs(3);

pub(crate) async fn make(cell: Arc<Cell>) -> &'static str {
    let said = match cell.row {
        Row::FirstClaimCreate | Row::FirstClaimRead => first_claim(&cell).await,
        Row::ReclaimCreate | Row::ReclaimSwap => reclaim(&cell, Verb::Lock).await,
        Row::ReclaimRead => reclaim(&cell, Verb::Mutex).await,
        Row::RenewSwap | Row::RenewRead => renew(&cell).await,
        Row::CompleteSwap | Row::CompleteRead => complete(&cell).await,
        Row::ReleaseSwap | Row::ReleaseRead => release(&cell).await,
        Row::MarkCreate => mark(&cell).await,
        row => operator::make(row, &cell).await,
    };
    if said != operator::NO_CALL {
        cell.judge();
    }
    said
}

/// A claim into the fault, and if it is not won, the next one: whoever wins runs once, and is recorded.
async fn claimed(cell: &Arc<Cell>, verb: Verb) -> (&'static str, (u64, History)) {
    let worker = cell.clone();
    let store = cell.store();
    let ran = cell.claim(verb, &store, move |lease| async move { Ok(worker.work(verb, lease).await) }).await;
    cell.answered().await;
    let (said, ran) = match ran {
        Ok(ran) => ("won", ran),
        Err(RunError::Store(error)) if error.is_transient() => {
            assert_eq!(cell.runs(), 0, "nothing runs without a claim");
            ("unavailable, then won", cell.next(verb).await)
        }
        other => panic!("a claim is told {other:?}"),
    };
    match verb {
        Verb::Mutex => _ = settled(&cell.past(), &cell.key, State::Released).await,
        _ => assert_done(&cell.past(), &cell.key, ran.0).await,
    }
    assert_eq!(cell.runs(), 1, "it runs once");
    (said, ran)
}

async fn first_claim(cell: &Arc<Cell>) -> &'static str {
    cell.aim().await;
    let (said, (_, history)) = claimed(cell, Verb::Lock).await;
    if said == "won" {
        assert_eq!(history, History::Fresh, "its own claim is no earlier run");
    }
    said
}

async fn reclaim(cell: &Arc<Cell>, verb: Verb) -> &'static str {
    // Its holder is not dead, and comes back.
    let zombie = Zombie::holds(cell).await;
    let lapsed =
        async || cell.past.read(&cell.key).await.ok().flatten().filter(|stands| stands.age > OLD_LEASE);
    eventually("a lease lapses", lapsed).await;
    cell.aim().await;
    let (said, (fence, history)) = claimed(cell, verb).await;
    assert!(fence > zombie.fence, "the fence rises");
    assert!(matches!(history, History::Unknown { runs: 1.. }), "{history:?}");
    let stands = standing(&cell.past(), &cell.key).await;
    assert!(zombie.comes_back().await, "who was replaced is told so");
    let after = standing(&cell.past(), &cell.key).await;
    assert_eq!(stands.version, after.version, "who was replaced writes nothing");
    said
}

/// A holder whose lease is over, and that does not know it yet.
struct Zombie {
    fence: u64,
    back: oneshot::Sender<()>,
    uncertain: Arc<AtomicBool>,
    ran: JoinHandle<Result<(), RunError>>,
}

impl Zombie {
    async fn holds(cell: &Cell) -> Self {
        loop {
            let (back, comes_back) = oneshot::channel::<()>();
            let (holds, held) = oneshot::channel();
            let uncertain = Arc::new(AtomicBool::new(false));
            let told = uncertain.clone();
            let (key, past) = (cell.key.clone(), cell.past());
            let ran = tokio::spawn(async move {
                lock(&key, &past)
                    .lease(OLD_LEASE)
                    .on_uncertain(move |_| told.store(true, Ordering::SeqCst))
                    .run_with(move |lease| async move {
                        let _ = holds.send(lease.fence());
                        Ok(comes_back.await?)
                    })
                    .await
            });
            // On a busy machine its claim may take too long for its short lease.
            if let Ok(fence) = held.await {
                return Self { fence, back, uncertain, ran };
            }
        }
    }

    /// Its work succeeds, and it would complete: whether it learned that it was replaced.
    async fn comes_back(self) -> bool {
        self.back.send(()).expect("the zombie waits");
        self.ran.await.expect("it does not panic").expect("its work succeeded");
        self.uncertain.load(Ordering::SeqCst)
    }
}

async fn renew(cell: &Arc<Cell>) -> &'static str {
    cell.aim().await;
    let lease = cell.leases.renewed;
    let ran = held(async || {
        let worker = cell.clone();
        let work = move |held: Lease| async move {
            worker.store.struck().await;
            worker.land().await;
            // A renewal that is known begins the lease anew.
            let renewed = async {
                while held.left() <= lease * 2 / 3 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let said = tokio::select! {
                () = renewed => "renewed",
                () = held.lost() => "lost",
            };
            Ok((worker.work(Verb::Lock, held).await.0, said))
        };
        let uncertain = |key: &Key| panic!("{key} is recorded");
        lock(&cell.key, &cell.store()).lease(lease).renew().on_uncertain(uncertain).run_with(work).await
    });
    let ran = ran.await;
    let (fence, said) = ran.expect("the work succeeded");
    assert_done(&cell.past(), &cell.key, fence).await;
    assert_eq!(cell.runs(), 1, "it runs once");
    said
}

async fn complete(cell: &Arc<Cell>) -> &'static str {
    let uncertain = Arc::new(AtomicBool::new(false));
    let ran = held(async || {
        let (worker, told) = (cell.clone(), uncertain.clone());
        lock(&cell.key, &cell.store())
            .lease(cell.leases.plain)
            .on_uncertain(move |_| told.store(true, Ordering::SeqCst))
            .run_with(move |lease| async move {
                let (fence, _) = worker.clone().work(Verb::Lock, lease).await;
                worker.aim().await;
                Ok(fence)
            })
            .await
    });
    // The work succeeded, so its caller is told so, whatever became of the record.
    let fence = ran.await.expect("after success nothing nacks");
    cell.answered().await;
    assert_done(&cell.past(), &cell.key, fence).await;
    assert_eq!(cell.runs(), 1, "it runs once");
    if uncertain.load(Ordering::SeqCst) { "uncertain, then recorded" } else { "recorded" }
}

async fn release(cell: &Arc<Cell>) -> &'static str {
    let failed = held(async || {
        let worker = cell.clone();
        lock(&cell.key, &cell.store())
            .lease(cell.leases.plain)
            .run_with(move |lease| async move {
                worker.clone().work(Verb::Lock, lease).await;
                worker.aim().await;
                Err::<(), _>("no".into())
            })
            .await
    });
    let failed = failed.await;
    assert!(matches!(&failed, Err(RunError::Work(error)) if error.to_string() == "no"), "{failed:?}");
    cell.answered().await;
    let record = settled(&cell.past(), &cell.key, State::Released).await.record;
    assert_eq!((record.ended, record.runs), (Ended::Failed, 1));
    let (fence, history) = cell.next(Verb::Lock).await;
    assert_eq!(history, History::Failed { runs: 1 });
    assert_done(&cell.past(), &cell.key, fence).await;
    "released, then won"
}

/// The claim comes before the fault: on a busy machine it may take a second one.
async fn held<T>(mut claim: impl AsyncFnMut() -> Result<T, RunError>) -> Result<T, RunError> {
    loop {
        match claim().await {
            Err(RunError::Store(_) | RunError::Skipped(Skip::InProgress { .. })) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            ran => return ran,
        }
    }
}

async fn mark(cell: &Arc<Cell>) -> &'static str {
    cell.aim().await;
    let attempt = async |store: &Arc<dyn Store>| {
        let worker = cell.clone();
        let work = async move {
            worker.enter();
            Ok(())
        };
        at_most_once(&cell.key, store).lease(cell.leases.plain).run(work).await
    };
    let said = match attempt(&cell.store()).await {
        Ok(Some(())) => "won",
        Err(RunError::Store(error)) if error.is_transient() => "unavailable, then won",
        other => panic!("a mark is told {other:?}"),
    };
    cell.answered().await;
    if said != "won" {
        assert_eq!(cell.runs(), 0, "nothing runs without a mark");
        // Until it is undone, a mark that landed late counts as done: the price of at most once.
        eventually("the next one has the key", async || match attempt(&cell.past()).await {
            Ok(ran) => ran,
            Err(RunError::Store(error)) if error.is_transient() => None,
            Err(error) => panic!("the next one is told {error:?}"),
        })
        .await;
    }
    let again = async || attempt(&cell.past()).await.ok();
    assert_eq!(eventually("the store answers", again).await, None, "it is marked");
    assert_eq!(cell.runs(), 1, "it runs once");
    said
}
