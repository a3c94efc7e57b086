//! The store that makes faults: each fault does what it says, and nothing else.
#![cfg(feature = "testing")]

use std::sync::Arc;
use std::time::Duration;

use pushonce::store::chaos::{Chaos, Fault, On, Trips};
use pushonce::store::{Memory, StoreError};
use pushonce::{IntoKey, Key, RunError, Skip, Store, lock};

fn wrapped() -> (Arc<Chaos>, Arc<dyn Store>, Key) {
    let chaos = Chaos::new(Arc::new(Memory::new()));
    (chaos.clone(), chaos, "k".into_key().unwrap())
}

async fn runs(store: &Arc<dyn Store>) -> bool {
    match lock("k", store).run(async { Ok(()) }).await {
        Ok(()) => true,
        Err(RunError::Skipped(Skip::Duplicate { .. })) => false,
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_a_claim_and_of_a_completion_changes_nothing() {
    let (chaos, store, _) = wrapped();
    chaos.next(On::Claim, Fault::LoseAnswer);
    chaos.next(On::Complete, Fault::LoseAnswer);
    assert!(runs(&store).await);
    assert!(!chaos.has_next());
    assert!(!runs(&store).await);
}

#[tokio::test(start_paused = true)]
async fn a_late_write_lands_on_its_condition_only() {
    let (chaos, store, key) = wrapped();
    chaos.next(On::Claim, Fault::Late(Duration::from_secs(30)));
    assert!(runs(&store).await, "the second try of the claim wins");
    let version = store.read(&key).await.unwrap().unwrap().version;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(store.read(&key).await.unwrap().unwrap().version, version);
}

#[tokio::test(start_paused = true)]
async fn a_standing_fault_lasts_until_it_is_healed_and_every_call_is_counted() {
    let (chaos, store, key) = wrapped();
    chaos.always(On::Any, Fault::Fail);
    let failed = lock("k", &store).run(async { Ok(()) }).await;
    assert!(matches!(&failed, Err(RunError::Store(error)) if error.is_transient()), "{failed:?}");
    assert!(chaos.take().swaps > 0);
    chaos.heal();
    assert!(store.read(&key).await.unwrap().is_none());
    assert!(runs(&store).await);
    assert_eq!(chaos.take(), Trips { reads: 1, swaps: 2 });
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_final_and_a_stalled_read_is_as_old_as_it_took() {
    let (chaos, store, key) = wrapped();
    chaos.next(On::Swap, Fault::Refuse);
    let refused = lock("k", &store).run(async { Ok(()) }).await;
    assert!(matches!(refused, Err(RunError::Store(StoreError::Refused { .. }))), "{refused:?}");
    chaos.next(On::Read, Fault::Stall(Duration::from_secs(2)));
    let began = tokio::time::Instant::now();
    let (read, ran) = tokio::join!(store.read(&key), runs(&store));
    assert!(ran && read.unwrap().is_none());
    assert_eq!(began.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn random_faults_follow_from_their_seed() {
    async fn played(seed: u64) -> Vec<bool> {
        let chaos = Chaos::random(Arc::new(Memory::new()), seed, 0.5);
        let key = "k".into_key().unwrap();
        let mut failed = Vec::new();
        for _ in 0..64 {
            failed.push(chaos.read(&key).await.is_err());
        }
        failed
    }
    let first = played(1).await;
    assert_eq!(first, played(1).await);
    assert_ne!(first, played(2).await);
    assert!(first.contains(&true) && first.contains(&false));
}
