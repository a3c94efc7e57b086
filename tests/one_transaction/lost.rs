//! The answer to a commit is lost: the record decides, and where nobody can ask it, nobody guesses.

use std::time::Duration;

use pushonce::store::record::{Ended, State};

use crate::fake::Fault;
use crate::world::*;

#[tokio::test(start_paused = true)]
async fn committed_and_its_answer_lost_is_acked() {
    let world = World::new();
    let app = world.app(world.layer(), careless);
    world.sql.next_commit(Fault::LostAfter);
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (DONE, 1));
    assert_eq!(push(&app, "m").await, DUPLICATE);
}

#[tokio::test(start_paused = true)]
async fn committed_and_its_answer_lost_is_acked_where_the_handler_passes_the_error_on_too() {
    let world = World::new();
    let app = world.app(world.layer(), effect);
    world.sql.next_commit(Fault::LostAfter);
    assert_eq!(push(&app, "m").await, RAN_LOUDLY);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (DONE, 1));
    assert_eq!(push(&app, "m").await, DUPLICATE);
}

#[tokio::test(start_paused = true)]
async fn rolled_back_and_its_answer_lost_is_nacked_and_runs_again() {
    for careful in [false, true] {
        let world = World::new();
        let app = if careful { world.app(world.layer(), effect) } else { world.app(world.layer(), careless) };
        world.sql.next_commit(Fault::LostBefore);
        assert_eq!(push(&app, "m").await, ROLLED_BACK);
        assert_eq!((world.stands("m"), world.sql.effects().len()), (FAILED, 0));
        assert_eq!(push(&app, "m").await, RAN);
        assert_eq!(world.sql.effects(), ["m"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_release_waits_for_the_commit_that_still_holds_the_row() {
    for (fault, told, effects) in
        [(Fault::Late(seconds(3)), RAN, 1), (Fault::LateRollback(seconds(3)), ROLLED_BACK, 0)]
    {
        let world = World::new();
        let app = world.app(world.layer(), careless);
        world.sql.next_commit(fault);
        let began = tokio::time::Instant::now();
        assert_eq!(push(&app, "m").await, told, "{fault:?}");
        assert!(began.elapsed() >= seconds(3), "{fault:?}: decided before anybody could know");
        assert_eq!(world.sql.effects().len(), effects);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_knows_so_it_is_nacked_and_the_record_decides_when_it_can_be_asked() {
    for (fault, state, again) in [
        (Fault::LostAfter, State::Done, DUPLICATE),
        (Fault::LostBefore, State::Released, RAN),
        (Fault::Late(seconds(8)), State::Done, DUPLICATE),
        (Fault::LateRollback(seconds(8)), State::Released, RAN),
    ] {
        let world = World::new();
        let app = world.app(world.layer(), |sql, lease| async move {
            let _ = effect(sql.clone(), lease).await;
            sql.down(true);
            Ok(())
        });
        world.sql.next_commit(fault);
        let before = seconds(5);
        let began = tokio::time::Instant::now();
        assert_eq!(push(&app, "m").await, UNAVAILABLE, "{fault:?}");
        assert!(began.elapsed() >= before, "{fault:?}: given up after {:?}", began.elapsed());
        // As it stands: claimed, or done by the commit that nobody heard of.
        assert_ne!(world.stands("m").map(|(state, ..)| state), Some(State::Released));
        world.sql.down(false);
        world.until("m", state).await;
        let app = world.app(world.layer(), effect);
        assert_eq!(push(&app, "m").await, again, "{fault:?}");
        assert_eq!(world.sql.effects(), ["m"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_commit_is_no_doubt_although_its_release_cannot_be_stored() {
    let world = World::new();
    let app = world.app(world.layer(), |sql, lease| async move {
        let committed = effect(sql.clone(), lease).await;
        sql.down(true);
        committed
    });
    world.sql.next_commit(Fault::Refused);
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    world.sql.down(false);
    world.until("m", State::Released).await;
    assert_eq!(push(&world.app(world.layer(), effect), "m").await, RAN);
    assert_eq!(world.sql.effects(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn the_record_is_believed_before_the_driver() {
    let world = World::new();
    let app = world.app(world.layer(), careless);
    world.sql.next_commit(Fault::Mistaken);
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (DONE, 1));
    assert_eq!(push(&app, "m").await, DUPLICATE);
}

#[tokio::test(start_paused = true)]
async fn a_commit_without_an_answer_is_given_up_and_decided() {
    let world = World::new();
    let app = world.app(world.layer(), effect);
    world.sql.next_commit(Fault::Silent);
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(world.stands("m"), FAILED);
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.sql.effects(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_the_release_that_is_lost_changes_nothing() {
    for fault in [Fault::LostAfter, Fault::LostBefore] {
        let world = World::new();
        let app = world.app(world.layer(), move |sql, lease| async move {
            let _ = effect(sql.clone(), lease).await;
            // Longer than a call may take: carried out, and not heard of.
            sql.next_swap_stalls(seconds(6));
            Ok(())
        });
        world.sql.next_commit(fault);
        let told = push(&app, "m").await;
        // The first call takes two seconds at most, so there is time left to look.
        assert_eq!(told, if fault == Fault::LostAfter { RAN } else { ROLLED_BACK }, "{fault:?}");
        let state = if fault == Fault::LostAfter { State::Done } else { State::Released };
        world.until("m", state).await;
        tokio::time::sleep(seconds(60)).await;
        let (_, ended, runs) = world.stands("m").unwrap();
        let history = if fault == Fault::LostAfter { (Ended::Fresh, 0) } else { (Ended::Failed, 1) };
        assert_eq!((ended, runs), history, "{fault:?}: released twice");
    }
}

#[tokio::test(start_paused = true)]
async fn while_nobody_knows_the_key_is_held() {
    let world = World::new();
    let app = world.app(world.layer(), |sql, lease| async move {
        let _ = effect(sql.clone(), lease).await;
        sql.down(true);
        Ok(())
    });
    world.sql.next_commit(Fault::LateRollback(seconds(20)));
    assert_eq!(push(&app, "m").await, UNAVAILABLE);
    world.sql.down(false);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(push(&app, "m").await.1, "in-progress");
    world.until("m", State::Released).await;
}
