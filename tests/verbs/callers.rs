//! The caller goes away: work that began still ends and is written down, and nothing is orphaned.

use pushonce::RunError;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::record::State;
use tracing::Instrument as _;

use crate::world::{Log, Runs, World, begin, hang_up, seconds};

// F48
#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_in_mid_work_stops_nothing_and_a_second_delivery_is_a_duplicate() {
    let (world, started, ended) = (World::new(), Runs::default(), Runs::default());
    let work = {
        let (started, ended) = (started.clone(), ended.clone());
        async move {
            started.add();
            tokio::time::sleep(seconds(10)).await;
            ended.add();
            Ok(())
        }
    };
    hang_up(begin(world.lock("k").run(work)).await).await;
    world.until("k", State::Done).await;
    assert_eq!((started.count(), ended.count()), (1, 1));
    let again = world.lock("k").run(started.work()).await;
    assert!(matches!(again, Err(RunError::Skipped(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_after_its_caller_hung_up_is_released() {
    let world = World::new();
    let work = async {
        tokio::time::sleep(seconds(10)).await;
        Err::<(), _>("no".into())
    };
    hang_up(begin(world.lock("k").run(work)).await).await;
    world.until("k", State::Released).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_in_mid_claim_orphans_nothing() {
    for fault in [Fault::Stall(seconds(2)), Fault::LoseAnswer, Fault::LoseBefore, Fault::Late(seconds(2))] {
        let world = World::new();
        world.chaos.next(On::Claim, fault);
        hang_up(begin(world.lock("k").run(async { Ok(()) })).await).await;
        world.until("k", State::Done).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_never_answers_is_undone_also_without_its_caller() {
    let (world, runs) = (World::new(), Runs::default());
    world.chaos.always(On::Claim, Fault::LoseAnswer);
    world.chaos.always(On::Read, Fault::Fail);
    world.chaos.always(On::Release, Fault::LoseBefore);
    hang_up(begin(world.lock("k").run(runs.work())).await).await;
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(world.state("k").await, Some(State::Claimed));
    world.chaos.heal();
    world.until("k", State::Released).await;
    assert_eq!((runs.count(), world.record("k").await.unwrap().runs), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_outcome_is_told_although_its_caller_hung_up() {
    let (log, _guard) = Log::capture();
    let (world, told) = (World::new(), Runs::default());
    world.chaos.always(On::Complete, Fault::Fail);
    let hook = told.clone();
    let guarded = world.lock("k").on_uncertain(move |key| {
        assert_eq!(key.text(), "k");
        hook.add();
    });
    hang_up(begin(guarded.run(async { Ok(()) })).await).await;
    tokio::time::sleep(seconds(20)).await;
    assert_eq!((told.count(), log.event("uncertain").len()), (1, 1));
    world.chaos.heal();
    world.until("k", State::Done).await;
}

#[tokio::test(start_paused = true)]
async fn the_work_runs_in_the_span_of_its_caller() {
    let (_log, _guard) = Log::capture();
    let world = World::new();
    let span = tracing::info_span!("request");
    let inside =
        world.lock("k").run(async { Ok(tracing::Span::current().id()) }).instrument(span.clone()).await;
    assert!(span.id().is_some());
    assert_eq!(inside.unwrap(), span.id());
}
