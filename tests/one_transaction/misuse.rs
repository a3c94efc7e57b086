//! What cannot be meant: told as such, and never acked on the work's word.

use std::sync::{Arc, Mutex};

use pushonce::store::record::{Ended, State};
use pushonce::{CommitError, Misuse, RunError, at_most_once, mutex};
use tracing::Level;

use crate::fake::FakeSql;
use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_store_commits_nothing_and_is_nacked_whatever_the_handler_says() {
    for careful in [false, true] {
        let world = World::new();
        let other = FakeSql::new(world.clock.clone());
        let effects = other.clone();
        let app = world.app(world.layer(), move |_, lease| {
            let other = other.clone();
            async move { if careful { effect(other, lease).await } else { careless(other, lease).await } }
        });
        assert_eq!(push(&app, "m").await, MISUSE, "{careful}");
        assert_eq!(world.stands("m"), FAILED);
        assert_eq!((effects.effects(), effects.record(("orders", "m"))), (vec![], None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_completion_of_another_store_is_misuse_too() {
    let world = World::new();
    let other = FakeSql::new(world.clock.clone());
    let app = world.app(world.layer(), move |_, lease| by_hand(other.clone(), lease));
    assert_eq!(push(&app, "m").await, MISUSE);
    assert_eq!(world.stands("m"), FAILED);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_committed_once() {
    let world = World::new();
    let second = Arc::new(Mutex::new(None));
    let told = second.clone();
    let app = world.app(world.layer(), move |sql, lease| {
        let told = told.clone();
        async move {
            effect(sql.clone(), lease.clone()).await?;
            let mut tx = sql.begin();
            tx.insert("twice");
            let again = lease.commit(&sql, tx).await;
            let completion = lease.completion(&sql).await;
            *told.lock().unwrap() = Some((again, completion.map(drop)));
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.sql.effects(), ["m"]);
    let told = second.lock().unwrap().take().unwrap();
    for error in [told.0.unwrap_err(), told.1.unwrap_err()] {
        let CommitError::Misuse(Misuse::Transaction { why, .. }) = &error else { panic!("{error:?}") };
        assert!(why.ends_with("once"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_try_after_a_rollback_is_misuse_and_commits_nothing() {
    let world = World::new();
    let app = world.app(world.layer(), |sql, lease| async move {
        let _ = effect(sql.clone(), lease.clone()).await;
        effect(sql, lease).await
    });
    world.sql.next_commit(crate::fake::Fault::Refused);
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (FAILED, 0));
}

#[tokio::test(start_paused = true)]
async fn a_mutex_is_never_done() {
    let world = World::new();
    let sql = world.sql.clone();
    let guarded = mutex("k", &world.store).clock(world.clock.clone());
    let ran = guarded.run_with(move |lease| careless(sql, lease)).await;
    assert!(matches!(&ran, Err(RunError::Misuse(Misuse::Transaction { .. }))), "{ran:?}");
    assert_eq!(world.sql.effects(), [""; 0]);
    assert_eq!(world.sql.record("k").map(|record| record.state), Some(State::Released));
}

#[tokio::test(start_paused = true)]
async fn at_most_once_commits_nothing_and_its_message_is_lost_loudly() {
    let world = World::new();
    let sql = world.sql.clone();
    let guarded = at_most_once("k", &world.store).clock(world.clock.clone());
    let ran = guarded.run_with(move |lease| careless(sql, lease)).await;
    assert!(matches!(&ran, Err(RunError::Misuse(Misuse::Transaction { .. }))), "{ran:?}");
    assert_eq!(world.sql.effects(), [""; 0]);
    let app = world.app(world.layer().at_most_once(), effect);
    assert_eq!(push(&app, "m").await, (500, "lost", Level::ERROR));
    assert_eq!(world.sql.effects(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn after_the_work_has_ended_there_is_nothing_to_commit() {
    let world = World::new();
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let ran = world.lock("k").run_with(|lease| async move {
        *keep.lock().unwrap() = Some(lease);
        Ok(())
    });
    ran.await.unwrap();
    let lease = kept.lock().unwrap().take().unwrap();
    let before = world.sql.record("k");
    let late = effect(world.sql.clone(), lease).await.unwrap_err();
    assert!(late.to_string().contains("nothing was committed"), "{late}");
    assert_eq!((world.sql.record("k"), world.sql.effects().len()), (before, 0));
    assert_eq!(world.sql.record("k").map(|record| record.ended), Some(Ended::Fresh));
}
