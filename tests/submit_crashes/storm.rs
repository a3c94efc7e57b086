//! Every store, every point, many rounds: no kill makes a second task of a key, or keeps its callers out for long.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use pushonce::store::{Filter, Page};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::point::{KEYS, Point, TASKS};
use crate::program;
use crate::report;
use crate::round::Round;
use crate::site::Site;
use crate::totals::Totals;

/// How many rounds are played at a time: most of one is waiting for the creating-lease.
const AT_A_TIME: usize = 16;

#[test]
fn no_kill_makes_a_second_task() {
    // This is the process that is killed.
    if program::played() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(storm(rounds()));
}

/// How many for each point and store.
pub(crate) fn rounds() -> usize {
    std::env::var("PUSHONCE_ROUNDS").map_or(20, |rounds| rounds.parse().unwrap())
}

async fn storm(rounds: usize) {
    // All that outlive the process that is killed.
    let sites = [
        Site::sqlite().await,
        Site::redis().await,
        Site::postgres().await,
        Site::mariadb().await,
        Site::datastore_emulator().await,
        Site::firestore_emulator().await,
        Site::s3().await,
        Site::fake_gcs().await,
    ]
    .map(Arc::new);
    let names: Vec<_> = sites.iter().map(|site| site.name).collect();
    let (totals, turns) = (Arc::new(Totals::of(&names)), Arc::new(Semaphore::new(AT_A_TIME)));
    let (began, mut playing, mut named) = (Instant::now(), JoinSet::new(), HashMap::new());
    for round in 0..rounds {
        for (point, site) in
            Point::ALL.into_iter().flat_map(|point| sites.iter().map(move |site| (point, site)))
        {
            let turn = turns.clone().acquire_owned().await.unwrap();
            let (site, totals) = (site.clone(), totals.clone());
            let name = format!("{}, {point}, {round}", site.name);
            let played = playing.spawn(async move {
                let store = site.name;
                totals.began(store, point);
                let round = Round::new(site, point, format!("{point}-{round}")).await;
                totals.ended(store, point, &round.play(&totals).await);
                drop(turn);
            });
            named.insert(played.id(), name);
        }
    }
    let mut failures = Vec::new();
    while let Some(played) = playing.join_next().await {
        failures.extend(played.err().map(|failed| format!("{}: {failed}", named[&failed.id()])));
    }
    // Past the test's capture: the figures are of interest when it passes, too.
    let took = began.elapsed().as_secs_f64();
    let table = format!("\n{totals}{rounds} rounds of each took {took:.0} s, {AT_A_TIME} at a time\n");
    std::io::stderr().write_all(table.as_bytes()).unwrap();
    failures.extend(totals.broken(rounds));
    assert!(failures.is_empty(), "{failures:#?}");
    for site in &sites {
        // Also none that no caller was told of, and nothing is left on its way.
        let all = BTreeMap::from([("completed".to_owned(), rounds * Point::ALL.len())]);
        for space in [TASKS, KEYS] {
            assert_eq!(states(site, space).await, all, "{}: {space}", site.name);
        }
        report::test(site.name, "storm::no_kill_makes_a_second_task");
    }
}

/// How many records of a space are in each state.
pub(crate) async fn states(site: &Site, space: &str) -> BTreeMap<String, usize> {
    let store = site.operated();
    let filter = Filter { prefix: format!("{space}:"), ..Filter::default() };
    let (mut page, mut states) = (Page::default(), BTreeMap::new());
    loop {
        let listed = store.list(&filter, &page).await.unwrap();
        for found in listed.found {
            let data: Value = serde_json::from_slice(&found.stored.unwrap().record.data).unwrap();
            *states.entry(data["state"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        match listed.next {
            None => return states,
            next => page.after = next,
        }
    }
}
