//! Work that goes on without its caller is bounded.

use pushonce::store::chaos::{Fault, On};

use crate::alone::alone;
use crate::world::{Runs, SECOND, World, hang_up, is_unavailable, seconds};

#[test]
fn over_the_bound_on_detached_work_nothing_new_is_admitted() {
    alone("detached::over_the_bound_on_detached_work_nothing_new_is_admitted", &[], async {
        let (world, runs, done) = (World::new(), Runs::default(), Runs::default());
        let mut callers = Vec::new();
        for n in 0..1024 {
            let done = done.clone();
            let work = async move {
                tokio::time::sleep(seconds(60)).await;
                done.add();
                Ok(())
            };
            callers.push(tokio::spawn(world.lock(format!("k{n}")).run(work)));
        }
        tokio::time::sleep(SECOND).await;
        world.lock("while they are there").run(runs.work()).await.unwrap();
        for caller in callers {
            hang_up(caller).await;
        }
        tokio::time::sleep(SECOND).await;
        world.chaos.take();
        let refused = world.lock("over").run(runs.work()).await;
        assert!(is_unavailable(&refused), "{refused:?}");
        assert_eq!((runs.count(), world.chaos.take().swaps), (1, 0));
        tokio::time::sleep(seconds(60)).await;
        world.lock("over").run(runs.work()).await.unwrap();
        assert_eq!((runs.count(), done.count()), (2, 1024));
    });
}

#[test]
fn completions_that_are_stored_after_the_answer_count_too() {
    alone("detached::completions_that_are_stored_after_the_answer_count_too", &[], async {
        let (world, runs) = (World::new(), Runs::default());
        world.chaos.always(On::Complete, Fault::Fail);
        let callers: Vec<_> =
            (0..1024).map(|n| tokio::spawn(world.lock(format!("k{n}")).run(async { Ok(()) }))).collect();
        for caller in callers {
            caller.await.unwrap().unwrap();
        }
        let refused = world.lock("over").run(runs.work()).await;
        assert!(is_unavailable(&refused), "{refused:?}");
        world.chaos.heal();
        tokio::time::sleep(seconds(60)).await;
        world.lock("over").run(runs.work()).await.unwrap();
        assert_eq!(runs.count(), 1);
    });
}
