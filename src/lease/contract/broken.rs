//! For each law a store, or a lease, that is broken in just that way: a law that cannot fail is none.

use std::sync::Arc;

use super::flawed::{self, Flaw, Flawed};
use super::slow::Slow;
use super::{Group, LAWS, Law, Subject, Tells};
use crate::key::Key;
use crate::lease::planted;
use crate::store::chaos::Chaos;
use crate::store::{BoxFuture, Cached, Maintain, Store};
use crate::time::Clock;

/// How many random runs each law of the lease must stand.
const SEEDS: u64 = 100;

struct Broken(Arc<Flawed>);

impl Subject for Broken {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.0.memory.forget(&self.0.named(key));
        Box::pin(async {})
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.0.clone())
    }

    fn tells_what_stands(&self) -> Tells {
        Tells::Swaps
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock.clone()
    }
}

/// A runtime on paused time.
pub(super) fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Runs one law on paused time: on a store with that flaw, or on one without.
fn kept(law: &Law, flaw: Option<Flaw>) -> Result<(), String> {
    let runtime = paused();
    // Planted in this thread, on which the whole runtime runs.
    planted::plant(match flaw {
        Some(Flaw::Plants(fault)) => Some(fault),
        _ => None,
    });
    let result = runtime.block_on(async {
        let subject: Arc<dyn Subject> = Arc::new(Broken(Arc::new(Flawed::new(flaw))));
        match flaw {
            None => law.check(subject).await,
            // The faults of a random run could break what the flaw did not.
            Some(_) => law.check_on(&subject, subject.store()).await,
        }
    });
    planted::plant(None);
    result.map_err(|breach| breach.to_string())
}

#[test]
fn every_law_holds_on_a_store_without_flaws() {
    let broken: Vec<_> =
        LAWS.iter().filter_map(|law| Some(format!("{}: {}", law.name(), kept(law, None).err()?))).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_law_holds_on_a_store_as_slow_and_coarse_as_object_storage() {
    let broken: Vec<_> = LAWS
        .iter()
        .filter_map(|law| {
            let result = paused().block_on(async { law.check(Arc::new(Slow::new(flawed::paused()))).await });
            Some(format!("{}: {}", law.name(), result.err()?))
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_law_fails_on_each_store_that_breaks_it() {
    let holds: Vec<_> = LAWS
        .iter()
        .flat_map(|law| law.flaws.iter().map(move |flaw| (law, *flaw)))
        .filter(|(law, flaw)| kept(law, Some(*flaw)).is_ok())
        .map(|(law, flaw)| format!("{} holds although the store is broken by {flaw:?}", law.name()))
        .collect();
    assert!(holds.is_empty(), "{holds:#?}");
}

#[test]
fn the_laws_of_the_lease_hold_under_random_faults_of_many_seeds() {
    for law in LAWS.iter().filter(|law| law.group == Group::Lease) {
        for seed in 0..SEEDS {
            let result = paused().block_on(async {
                crate::random::seed(seed);
                let subject: Arc<dyn Subject> = Arc::new(Broken(Arc::new(Flawed::new(None))));
                law.check_on(&subject, Chaos::random(subject.store(), seed, 0.25)).await
            });
            assert_eq!(result, Ok(()), "{} under the seed {seed}", law.name());
        }
    }
}

#[test]
fn the_laws_of_the_lease_hold_with_faults_between_a_cache_and_its_store() {
    for law in LAWS.iter().filter(|law| law.group == Group::Lease) {
        for seed in 0..SEEDS {
            let result = paused().block_on(async {
                crate::random::seed(seed);
                let flawed = Arc::new(Flawed::new(None));
                let subject: Arc<dyn Subject> = Arc::new(Broken(flawed.clone()));
                let chaos = Chaos::random(flawed.clone(), seed, 0.25);
                let cached = Cached::new(chaos).clock(flawed.clock.clone());
                law.check_on(&subject, Arc::new(cached)).await
            });
            assert_eq!(result, Ok(()), "{} under the seed {seed}", law.name());
        }
    }
}

#[test]
fn every_law_has_a_name_of_its_own_a_sentence_and_a_flaw() {
    let mut names: Vec<_> = LAWS.iter().map(Law::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LAWS.len());
    assert!(LAWS.iter().all(|law| !law.says().is_empty() && !law.flaws.is_empty()));
}
