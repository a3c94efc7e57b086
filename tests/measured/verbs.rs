//! The verbs count as the layer does: each run once, under the consumer of its key.

use std::error::Error;

use pushonce::store::chaos::{Fault, On};
use pushonce::{Lease, Misuse, RunError, Store, at_most_once, lock, mutex, outcome_of};

use crate::samples::{listen, outcomes, times};
use crate::world::World;

/// What the error means to a layer that finds it.
fn named<T: std::fmt::Debug>(result: &Result<T, RunError>) -> &'static str {
    outcome_of(result.as_ref().unwrap_err() as &(dyn Error + 'static)).outcome.name()
}

#[tokio::test(start_paused = true)]
async fn each_run_of_a_verb_is_counted_once_by_the_name_that_a_layer_gives_it() {
    listen();
    let World { store, chaos, .. } = World::new();
    let key = |text: &'static str| ("verbs", text);
    lock(key("a"), &store).run(async { Ok(()) }).await.unwrap();
    let duplicate = lock(key("a"), &store).run(async { Ok(()) }).await;
    let failed = lock(key("b"), &store).run(async { Err::<(), _>("no".into()) }).await;
    let panicked = lock(key("c"), &store).run::<(), _>(async { panic!("no") }).await;
    let inner = store.clone();
    let held = mutex(key("d"), &store).run(async move {
        let same = mutex(key("d"), &inner).run(async { Ok(()) }).await;
        let other = lock(key("d"), &inner).run(async { Ok(()) }).await;
        Ok([named(&same), named(&other)])
    });
    assert_eq!(held.await.unwrap(), ["misuse", "misuse"]);
    chaos.always(On::Any, Fault::Fail);
    let down = lock(key("e"), &store).run(async { Ok(()) }).await;
    chaos.heal();
    assert_eq!(
        [&duplicate, &failed, &panicked, &down].map(named),
        ["duplicate", "failed", "failed", "unavailable"]
    );
    assert_eq!(
        outcomes("verbs"),
        [("ran", 2), ("duplicate", 1), ("failed", 2), ("unavailable", 1), ("misuse", 2)]
    );
    // The re-entrant ones never came to the store.
    assert_eq!(times("pushonce_claim_seconds", "verbs"), 6);
    assert_eq!(times("pushonce_work_seconds", "verbs"), 4);
}

#[tokio::test(start_paused = true)]
async fn work_with_a_transaction_of_its_own_is_counted_by_what_became_of_that() {
    listen();
    let World { store, chaos, .. } = World::new();
    // Takes the completion, and commits nothing.
    let work = || {
        let store = store.clone();
        move |lease: Lease| async move {
            drop(lease.completion(&store).await?);
            Ok(())
        }
    };
    let key = |text: &'static str| ("transacted", text);
    let rolled_back = lock(key("a"), &store).run_with(work()).await;
    let misused = mutex(key("b"), &store).run_with(work()).await;
    chaos.always(On::Any, Fault::Fail);
    chaos.next(On::Claim, Fault::Stall(std::time::Duration::ZERO));
    let unknown = lock(key("c"), &store).run_with(work()).await;
    chaos.heal();
    assert_eq!([&rolled_back, &misused, &unknown].map(named), ["failed", "misuse", "unavailable"]);
    assert_eq!(outcomes("transacted"), [("failed", 1), ("unavailable", 1), ("misuse", 1)]);
    assert_eq!(times("pushonce_complete_seconds", "transacted"), 3);
}

#[tokio::test]
async fn what_was_marked_and_failed_is_lost_and_so_is_its_repeat() {
    listen();
    let World { store, .. } = World::new();
    let failing = || at_most_once(("marks", "a"), &store).run(async { Err::<(), _>("no".into()) });
    assert!(failing().await.is_err());
    assert!(matches!(failing().await, Ok(None)));
    let done = || at_most_once(("marks", "b"), &store).run(async { Ok(()) });
    assert_eq!((done().await.unwrap(), done().await.unwrap()), (Some(()), None));
    assert_eq!(outcomes("marks"), [("ran", 1), ("duplicate", 1), ("lost", 2)]);
}

#[tokio::test]
async fn a_key_that_is_none_has_no_consumer_and_is_not_counted() {
    listen();
    let World { store, .. } = World::new();
    let blank = lock(("blank", " "), &store).run(async { Ok(()) }).await;
    assert!(matches!(blank, Err(RunError::Key(_))), "{blank:?}");
    let zero = lock(("blank", "a"), &store).lease(std::time::Duration::ZERO).run(async { Ok(()) }).await;
    assert!(matches!(zero, Err(RunError::Misuse(Misuse::Setting(_)))), "{zero:?}");
    assert_eq!(outcomes("blank"), []);
}

#[tokio::test]
async fn work_that_fails_of_what_a_verb_inside_of_it_met_has_failed() {
    listen();
    let World { store, .. } = World::new();
    lock(("met", "a"), &store).run(async { Ok(()) }).await.unwrap();
    let inner: std::sync::Arc<dyn Store> = store.clone();
    let outer = lock(("meeting", "a"), &store).run(async move {
        lock(("met", "a"), &inner).run(async { Ok(()) }).await?;
        Ok(())
    });
    // Where a layer finds that error it is the inner duplicate that counts.
    assert_eq!(named(&outer.await), "duplicate");
    assert_eq!(
        (outcomes("meeting"), outcomes("met")),
        (vec![("failed", 1)], vec![("ran", 1), ("duplicate", 1)])
    );
}

#[tokio::test]
async fn a_verb_inside_of_another_is_a_run_of_its_own() {
    listen();
    let World { store, .. } = World::new();
    let inner: std::sync::Arc<dyn Store> = store.clone();
    let outer = lock(("outer", "a"), &store).run(async move {
        lock(("inner", "a"), &inner).run(async { Ok(()) }).await?;
        Ok(())
    });
    outer.await.unwrap();
    assert_eq!((outcomes("outer"), outcomes("inner")), (vec![("ran", 1)], vec![("ran", 1)]));
}
