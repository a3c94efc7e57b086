//! Many first claims at once, of one key and of its neighbours: one runs, and nobody meets an error. // F64, F76, F78

use std::sync::Arc;

use futures_util::future::join_all;
use pushonce::{RunError, Skip, Store, lock};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{Runs, key};

const RACERS: usize = 20;
const ROUNDS: usize = 200;
/// Each with connections of its own, as instances have.
const STORES: usize = 4;

on_servers! {
    all {
        of_many_first_claims_one_runs_and_none_fails
    }
}

async fn of_many_first_claims_one_runs_and_none_fails(site: &Site) {
    let stores: Vec<_> = (0..STORES).map(|_| site.store()).collect();
    // SeaweedFS lets those who want one object wait for more than a second, so there rounds overlap.
    let at_once = if site.name == "s3" { 4 } else { 1 };
    for first in (0..ROUNDS).step_by(at_once) {
        join_all((first..first + at_once).map(|number| round(&stores, number))).await;
    }
}

async fn round(stores: &[Arc<dyn Store>], round: usize) {
    let one = std::iter::repeat_n(key(format!("{round}")), RACERS);
    let neighbours = (0..RACERS).map(|racer| key(format!("{round}-{racer}")));
    let (for_one, for_neighbours) = (Runs::default(), Runs::default());
    let race = one.zip(std::iter::repeat(&for_one)).chain(neighbours.zip(std::iter::repeat(&for_neighbours)));
    let race = race.zip(stores.iter().cycle()).map(|((key, runs), store)| {
        let (runs, past) = (runs.clone(), store.clone());
        lock(key, store).run_with(|lease| async move {
            runs.run(past, lease).await;
            Ok(())
        })
    });
    for ended in join_all(race).await {
        let skipped =
            |error: &_| matches!(error, RunError::Skipped(Skip::InProgress { .. } | Skip::Duplicate { .. }));
        assert!(ended.as_ref().err().is_none_or(skipped), "round {round}: {ended:?}");
    }
    assert_eq!((for_one.count(), for_neighbours.count()), (1, 20), "round {round}");
}
