//! A key that is used in a way that cannot work is refused with the remedy, and only while it is live.

use std::sync::Arc;

use pushonce::store::record::Verb;
use pushonce::store::{Memory, record::State};
use pushonce::{InvalidKey, Misuse, RunError, Store, lock, mutex};

use crate::world::{Runs, World, begin, find, seconds};

fn wrong_verb<T: std::fmt::Debug>(result: Result<T, RunError>) -> (Verb, Verb) {
    match result {
        Err(RunError::Misuse(Misuse::WrongVerb { stands, asked, .. })) => (stands, asked),
        other => panic!("expected a wrong verb: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_mutex_on_a_live_lock_is_misuse_while_it_is_held_and_while_it_is_done() {
    let (world, runs) = (World::new(), Runs::default());
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let holder = begin(world.lock("k").ttl(seconds(60)).run(async move { Ok(released.await?) })).await;
    assert_eq!(wrong_verb(world.mutex("k").run(runs.work()).await), (Verb::Lock, Verb::Mutex));
    release.send(()).unwrap();
    holder.await.unwrap().unwrap();
    let misused = world.mutex("k").run(runs.work()).await.unwrap_err();
    let text = find::<Misuse>(&misused).unwrap().to_string();
    for remedy in ["scope", "wait", "reset"] {
        assert!(text.contains(remedy), "{text}");
    }
    assert_eq!(runs.count(), 0);
    // Once the ttl has passed nothing is live, and the new claim's verb counts.
    tokio::time::sleep(seconds(60)).await;
    world.mutex("k").run(runs.work()).await.unwrap();
    assert_eq!(world.record("k").await.unwrap().verb, Verb::Mutex);
}

#[tokio::test(start_paused = true)]
async fn the_other_two_on_a_live_mutex_are_misuse_until_it_is_released() {
    let (world, runs) = (World::new(), Runs::default());
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let holder = begin(world.mutex("k").run(async move { Ok(released.await?) })).await;
    assert_eq!(wrong_verb(world.lock("k").run(runs.work()).await), (Verb::Mutex, Verb::Lock));
    assert_eq!(wrong_verb(world.at_most_once("k").run(runs.work()).await), (Verb::Mutex, Verb::AtMostOnce));
    release.send(()).unwrap();
    holder.await.unwrap().unwrap();
    world.lock("k").run(runs.work()).await.unwrap();
    assert_eq!((runs.count(), world.state("k").await), (1, Some(State::Done)));
}

#[tokio::test(start_paused = true)]
async fn a_mutex_on_a_lapsed_lock_runs() {
    let (world, runs) = (World::new(), Runs::default());
    let holder = world.lock("k").lease(seconds(10)).work_timeout(seconds(1));
    holder.run(std::future::pending::<Result<(), _>>()).await.unwrap_err();
    wrong_verb(world.mutex("k").run(runs.work()).await);
    tokio::time::sleep(seconds(10)).await;
    world.mutex("k").run(runs.work()).await.unwrap();
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_taken_inside_the_work_that_holds_it_is_misuse_and_not_a_wait() {
    let world = World::new();
    let (store, began) = (world.store.clone(), tokio::time::Instant::now());
    let inner = async move { Ok(mutex("k", &store).run(async { Ok(()) }).await?) };
    let outer = world.mutex("k").run(inner).await.unwrap_err();
    assert!(matches!(outer, RunError::Work(_)), "{outer:?}");
    assert!(matches!(find::<Misuse>(&outer), Some(Misuse::Reentrant { .. })), "{outer:?}");
    assert_eq!(began.elapsed(), seconds(0));
    assert_eq!(world.state("k").await, Some(State::Released));
}

#[tokio::test(start_paused = true)]
async fn a_key_taken_two_levels_below_is_misuse_too() {
    let world = World::new();
    let store = world.store.clone();
    let innermost = {
        let store = store.clone();
        async move { Ok(lock("a", &store).run(async { Ok(()) }).await?) }
    };
    let inner = async move { Ok(lock("b", &store).run(innermost).await?) };
    let outer = world.lock("a").run(inner).await.unwrap_err();
    assert!(matches!(find::<Misuse>(&outer), Some(Misuse::Reentrant { .. })), "{outer:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_key_on_another_store_is_another_key() {
    let world = World::new();
    let other: Arc<dyn Store> = Arc::new(Memory::new());
    let inner = async move { Ok(lock("k", &other).run(async { Ok("both") }).await?) };
    assert_eq!(world.lock("k").run(inner).await.unwrap(), "both");
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_cannot_be_meant_is_refused_before_the_store_is_asked() {
    use std::time::Duration;
    let (world, runs) = (World::new(), Runs::default());
    for bad in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        for (setting, guarded) in [
            ("lease", world.lock("k").lease(bad)),
            ("ttl", world.lock("k").ttl(bad)),
            ("max_hold", world.lock("k").max_hold(bad)),
            ("work_timeout", world.lock("k").work_timeout(bad)),
        ] {
            let refused = guarded.run(runs.work()).await;
            let Err(RunError::Misuse(Misuse::Setting(text))) = refused else {
                panic!("{setting}: {refused:?}")
            };
            assert!(text.contains(setting), "{text}");
        }
    }
    let refused = world.lock("k").wait(Duration::MAX).run(runs.work()).await;
    assert!(
        matches!(&refused, Err(RunError::Misuse(Misuse::Setting(text))) if text.contains("wait")),
        "{refused:?}"
    );
    assert_eq!((runs.count(), world.chaos.trips().swaps + world.chaos.trips().reads), (0, 0));
}

// F27
#[tokio::test(start_paused = true)]
async fn a_blank_key_is_refused_before_the_store_is_asked() {
    let (world, runs) = (World::new(), Runs::default());
    let refused = world.lock(("orders", " ")).run(runs.work()).await;
    assert!(matches!(refused, Err(RunError::Key(InvalidKey::Blank { .. }))), "{refused:?}");
    assert_eq!((runs.count(), world.chaos.trips().swaps), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_setting_may_be_a_millisecond_and_a_hundred_years_and_nothing_beyond() {
    use std::time::Duration;
    let (world, work) = (World::new(), || async { Ok(()) });
    let (shortest, longest) = (Duration::from_millis(1), seconds(100 * 366 * 24 * 60 * 60));
    let least = Duration::from_nanos(1);
    for (at, (limit, beyond)) in
        [(shortest, shortest - least), (longest, longest + least)].into_iter().enumerate()
    {
        let lock = |name: &str| world.lock(format!("{name}-{at}"));
        lock("lease").lease(limit).run(work()).await.unwrap();
        lock("ttl").ttl(limit).run(work()).await.unwrap();
        lock("max_hold").max_hold(limit).run(work()).await.unwrap();
        lock("work_timeout").work_timeout(limit).run(work()).await.unwrap();
        for refused in [
            lock("lease").lease(beyond).run(work()).await,
            lock("ttl").ttl(beyond).run(work()).await,
            lock("max_hold").max_hold(beyond).run(work()).await,
            lock("work_timeout").work_timeout(beyond).run(work()).await,
        ] {
            assert!(matches!(refused, Err(RunError::Misuse(Misuse::Setting(_)))), "{refused:?}");
        }
    }
    // No wait is one that can be meant.
    for wait in [Duration::ZERO, longest] {
        world.lock(format!("wait-{wait:?}")).wait(wait).run(work()).await.unwrap();
    }
    let refused = world.lock("wait").wait(longest + least).run(work()).await;
    assert!(matches!(refused, Err(RunError::Misuse(Misuse::Setting(_)))), "{refused:?}");
}
