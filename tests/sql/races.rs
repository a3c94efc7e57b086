//! Many at once, on one key and on its neighbours, at every isolation level.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use pushonce::store::{Completes as _, Sql, Standing, StoreError, Swap};
use pushonce::{IntoKey as _, Key, RunError, Store, lock};

use crate::server::{Place, Server, record, written};

const RACERS: u128 = 20;
const ROUNDS: usize = 200;

on! {
    each [
        of_many_first_claims_of_a_key_and_its_neighbours_one_each_is_written
        of_many_updates_of_a_version_one_is_written
        who_is_overtaken_while_it_waits_is_told_to_look_again
        one_of_many_runs_at_repeatable_read
        one_of_many_runs_when_serializable
    ]
}

/// Keys whose names are neighbours in the index, as far as a hash allows it.
fn neighbours(round: usize) -> Vec<Key> {
    (0..RACERS).map(|at| ("orders", format!("{round}-{at}")).into_key().unwrap()).collect()
}

// F76, F78
async fn of_many_first_claims_of_a_key_and_its_neighbours_one_each_is_written<DB: Server>(place: Place<DB>) {
    // Each of four has connections of its own, as processes have.
    let stores: Vec<Sql<DB>> = (0..4).map(|_| place.store()).collect();
    for round in 0..ROUNDS {
        let one = ("orders", format!("one-{round}")).into_key().unwrap();
        let neighbours = neighbours(round);
        let records: Vec<_> = (1..=RACERS).map(record).collect();
        let race =
            records.iter().zip(stores.iter().cycle()).map(|(next, store)| store.swap(&one, None, next));
        let beside = neighbours
            .iter()
            .zip(stores.iter().cycle())
            .map(|(key, store)| store.swap(key, None, &records[0]));
        let (swaps, beside) = tokio::join!(join_all(race), join_all(beside));
        let swaps: Vec<Swap> = swaps.into_iter().map(Result::unwrap).collect();
        let won: Vec<_> = swaps.iter().filter(|swap| matches!(swap, Swap::Written(_))).collect();
        assert_eq!(won.len(), 1, "round {round}: {swaps:?}");
        for swap in beside {
            let _ = written(swap.unwrap());
        }
        let Swap::Written(version) = won[0] else { panic!() };
        assert_eq!(stores[0].read(&one).await.unwrap().unwrap().version, *version);
        for swap in &swaps {
            let Swap::Lost(standing) = swap else { continue };
            let says_so = match standing {
                Standing::Is(stands) => stands.version == *version,
                Standing::Unknown => true,
                Standing::Absent => false,
            };
            assert!(says_so, "round {round}: {standing:?}");
        }
    }
}

// F78: a statement that waited for another transaction does not see what that one has committed.
async fn who_is_overtaken_while_it_waits_is_told_to_look_again<DB: Server>(place: Place<DB>) {
    let (store, others) = (place.store(), place.pool(1));
    let stands = ("orders", "stands").into_key().unwrap();
    let mut seen = written(store.swap(&stands, None, &record(1)).await.unwrap());
    for round in 0.. {
        assert!(round < 50, "of 50 creates none was overtaken");
        let fresh = ("orders", format!("fresh-{round}")).into_key().unwrap();
        let mut transaction = others.begin().await.unwrap();
        let insert = format!(
            "INSERT INTO {} VALUES ({}, 'x', '{{}}', {}, {})",
            place.table,
            place.name_of(&fresh),
            DB::from_now(0),
            DB::from_now(99)
        );
        DB::run(&mut transaction, &insert).await.unwrap();
        let anew = record(1000 + round);
        let changed = store.swap_in(&mut transaction, &stands, &seen, &anew).await.unwrap();
        assert!(changed);
        let next = record(1);
        let (created, updated) = {
            let both = join(store.swap(&fresh, None, &next), store.swap(&stands, Some(&seen), &next));
            let mut both = pin!(both);
            let early = tokio::time::timeout(Duration::from_millis(100), &mut both).await;
            assert!(early.is_err(), "they wait: {early:?}");
            transaction.commit().await.unwrap();
            both.await
        };
        // What it cannot read, where it came late enough to see it, is no record.
        assert!(matches!(created, Ok(Swap::Lost(_)) | Err(StoreError::Corrupt { .. })), "{created:?}");
        let updated = updated.unwrap();
        assert!(matches!(updated, Swap::Lost(Standing::Unknown)), "{updated:?}");
        if matches!(created, Ok(Swap::Lost(Standing::Unknown))) {
            return;
        }
        seen = store.read(&stands).await.unwrap().unwrap().version;
    }
}

async fn of_many_updates_of_a_version_one_is_written<DB: Server>(place: Place<DB>) {
    let stores: Vec<Sql<DB>> = (0..4).map(|_| place.store()).collect();
    let key = ("orders", "one").into_key().unwrap();
    let mut seen = written(stores[0].swap(&key, None, &record(1)).await.unwrap());
    for round in 1..ROUNDS as u128 / 4 {
        let records: Vec<_> = (0..RACERS).map(|at| record(round * RACERS + at)).collect();
        let race = records
            .iter()
            .zip(stores.iter().cycle())
            .map(|(next, store)| store.swap(&key, Some(&seen), next));
        let swaps: Vec<Swap> = join_all(race).await.into_iter().map(Result::unwrap).collect();
        let mut won = swaps.iter().filter_map(|swap| match swap {
            Swap::Written(version) => Some(version.clone()),
            Swap::Lost(_) => None,
        });
        let winner = won.next().unwrap_or_else(|| panic!("round {round}: nobody won"));
        assert!(won.next().is_none(), "round {round}: {swaps:?}");
        assert_eq!(stores[1].read(&key).await.unwrap().unwrap().version, winner);
        seen = winner;
    }
}

async fn one_of_many_runs_at_repeatable_read<DB: Server>(place: Place<DB>) {
    one_of_many_runs(&place, DB::REPEATABLE_READ).await;
}

async fn one_of_many_runs_when_serializable<DB: Server>(place: Place<DB>) {
    one_of_many_runs(&place, DB::SERIALIZABLE).await;
}

/// The lease tries again where the database says so; to its users nothing is an error.
async fn one_of_many_runs<DB: Server>(place: &Place<DB>, isolation: &'static [&'static str]) {
    let stores: Vec<Arc<dyn Store>> = (0..4)
        .map(|_| place.pool_with(4, isolation))
        .map(|pool| Arc::new(Sql::builder(pool).table(&place.table).build().unwrap()) as Arc<dyn Store>)
        .collect();
    for round in 0..ROUNDS / 10 {
        let ran = Arc::new(AtomicUsize::new(0));
        let neighbours = neighbours(round);
        let keys = neighbours.iter().chain(std::iter::repeat_n(&neighbours[0], RACERS as usize));
        let race = keys.zip(stores.iter().cycle()).map(|(key, store)| {
            let ran = ran.clone();
            lock(key, store).run(async move { Ok(ran.fetch_add(1, Ordering::SeqCst)) })
        });
        for ended in join_all(race).await {
            assert!(matches!(ended, Ok(_) | Err(RunError::Skipped(_))), "round {round}: {ended:?}");
        }
        assert_eq!(ran.load(Ordering::SeqCst), neighbours.len(), "round {round}");
    }
}
