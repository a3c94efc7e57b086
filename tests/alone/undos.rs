//! Claims that were given up, and are still being undone, are bounded.

use std::time::Duration;

use pushonce::store::chaos::{Fault, On};

use crate::alone::alone;
use crate::world::{Runs, World, is_unavailable, seconds};

const LEASE: Duration = seconds(30);

#[test]
fn over_the_bound_on_undos_no_claim_is_begun() {
    alone("undos::over_the_bound_on_undos_no_claim_is_begun", &[], async {
        // Nobody knows whether a claim has landed, and no undo gets through.
        let (out, well, runs) = (World::new(), World::new(), Runs::default());
        out.chaos.always(On::Swap, Fault::LoseBefore);
        let gives_up = |n| tokio::spawn(out.lock(format!("k{n}")).lease(LEASE).run(async { Ok(()) }));
        let callers: Vec<_> = (1..1024).map(gives_up).collect();
        for caller in callers {
            let given_up = caller.await.unwrap();
            assert!(is_unavailable(&given_up), "{given_up:?}");
        }
        well.lock("under").run(runs.work()).await.unwrap();
        let given_up = gives_up(1024).await.unwrap();
        assert!(is_unavailable(&given_up), "{given_up:?}");

        well.chaos.take();
        let refused = well.lock("over").run(runs.work()).await;
        assert!(is_unavailable(&refused), "{refused:?}");
        assert_eq!((runs.count(), well.chaos.take().swaps), (1, 0));
        // What lands after the lease heals by lapsing.
        tokio::time::sleep(LEASE).await;
        well.lock("over").run(runs.work()).await.unwrap();
        assert_eq!(runs.count(), 2);
    });
}
