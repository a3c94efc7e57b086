//! `PUSHONCE_DISABLED`: a loud pass-through, refused on Cloud Run.

use std::sync::Arc;

use pushonce::store::chaos::Trips;
use pushonce::{History, Lease, Misuse, Panicked, RunError, TimedOut, mutex};

use crate::alone::alone;
use crate::world::{Log, Runs, World, find, seconds};

#[test]
fn disabled_work_runs_as_often_as_it_is_asked_for_and_no_store_is_asked() {
    let name = "disabled::disabled_work_runs_as_often_as_it_is_asked_for_and_no_store_is_asked";
    alone(name, &[("PUSHONCE_DISABLED", "on")], async {
        let (world, runs, (log, _guard)) = (World::new(), Runs::default(), Log::capture());
        for _ in 0..2 {
            world.lock("k").run(runs.work()).await.unwrap();
            world.mutex("k").run(runs.work()).await.unwrap();
            assert_eq!(world.at_most_once("k").run(runs.work()).await.unwrap(), Some(()));
        }
        // Nothing is held, so nothing is re-entrant.
        let store = world.store.clone();
        let nested = async move { Ok(mutex("k", &store).run(async { Ok("inner") }).await?) };
        assert_eq!(world.mutex("k").run(nested).await.unwrap(), "inner");
        assert_eq!((runs.count(), world.chaos.trips()), (6, Trips::default()));
        let warnings = log.lines("PUSHONCE_DISABLED");
        assert!(warnings.len() == 1 && warnings.iter().all(|line| line.contains("WARN")), "{warnings:?}");
    });
}

#[test]
fn disabled_work_has_a_lease_and_is_caught_and_timed_as_ever() {
    let name = "disabled::disabled_work_has_a_lease_and_is_caught_and_timed_as_ever";
    alone(name, &[("PUSHONCE_DISABLED", "1")], async {
        let world = Arc::new(World::new());
        let work = |lease: Lease| async move {
            assert_eq!((lease.history(), lease.left()), (History::Fresh, seconds(60)));
            Ok((lease.fence(), lease.effect_id("charge")))
        };
        let (low, effect) = world.lock("k").lease(seconds(60)).run_with(work).await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        let (high, same) = world.lock("k").lease(seconds(60)).renew().run_with(work).await.unwrap();
        assert!(low < high && effect == same);
        let panicked = world.lock("k").run::<(), _>(async { panic!("no") }).await.unwrap_err();
        assert_eq!(find::<Panicked>(&panicked).unwrap().message, "no");
        let failed = world.lock("k").run::<(), _>(async { Err("no".into()) }).await.unwrap_err();
        assert!(matches!(failed, RunError::Work(_)), "{failed:?}");
        let endless = std::future::pending::<Result<(), _>>();
        let late = world.lock("k").work_timeout(seconds(1)).run(endless).await.unwrap_err();
        assert!(find::<TimedOut>(&late).is_some(), "{late:?}");
        let refused = world.lock(" ").run(async { Ok(()) }).await;
        assert!(matches!(refused, Err(RunError::Key(_))), "{refused:?}");
    });
}

async fn refused(says: &str) {
    let (world, runs) = (World::new(), Runs::default());
    let refused = world.lock("k").run(runs.work()).await;
    let Err(RunError::Misuse(Misuse::Setting(text))) = refused else { panic!("{refused:?}") };
    assert!(text.contains("PUSHONCE_DISABLED") && text.contains(says), "{text}");
    assert_eq!((runs.count(), world.chaos.trips()), (0, Trips::default()));
}

#[test]
fn on_cloud_run_nothing_runs_unguarded() {
    let variables = [("PUSHONCE_DISABLED", "true"), ("K_SERVICE", "orders")];
    alone("disabled::on_cloud_run_nothing_runs_unguarded", &variables, refused("K_SERVICE"));
}

#[test]
fn a_value_that_says_neither_yes_nor_no_is_refused() {
    let name = "disabled::a_value_that_says_neither_yes_nor_no_is_refused";
    alone(name, &[("PUSHONCE_DISABLED", "maybe")], refused("maybe"));
}

#[test]
fn a_no_guards() {
    alone("disabled::a_no_guards", &[("PUSHONCE_DISABLED", "off")], async {
        let (world, runs) = (World::new(), Runs::default());
        world.lock("k").run(runs.work()).await.unwrap();
        world.lock("k").run(runs.work()).await.unwrap_err();
        assert_eq!(runs.count(), 1);
    });
}
