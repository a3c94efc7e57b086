//! What `run` returns where there is no layer.

use std::error::Error;
use std::sync::Arc;

use pushonce::store::BoxError;
use pushonce::store::record::State;
use pushonce::{AfterCommit, CommitError, Lease, Misuse, Panicked, RunError, Skip, outcome_of};
use tracing::Level;

use crate::fake::{FakeSql, Fault};
use crate::log::Log;
use crate::world::*;

fn verdict(error: RunError) -> (&'static str, u16) {
    // As it comes out of a handler's `?`.
    let boxed: Box<dyn Error + Send + Sync> = Box::new(error);
    let verdict = outcome_of(&*boxed);
    (verdict.outcome.name(), verdict.status.as_u16())
}

#[tokio::test(start_paused = true)]
async fn a_commit_gives_the_value_and_the_next_one_is_a_duplicate() {
    let world = World::new();
    let sql = world.sql.clone();
    let ran = world.lock("k").run_with(|lease| async move {
        effect(sql, lease).await?;
        Ok(7)
    });
    assert_eq!(ran.await.unwrap(), 7);
    let again = world.lock("k").run(async { Ok(()) }).await;
    assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_is_an_error_whatever_the_work_says() {
    for fault in [Fault::Refused, Fault::LostBefore] {
        let world = World::new();
        world.sql.next_commit(fault);
        let sql = world.sql.clone();
        let error = world.lock("k").run_with(|lease| careless(sql, lease)).await.unwrap_err();
        assert!(
            matches!(error, RunError::Commit(CommitError::RolledBack { source: Some(_) })),
            "{fault:?}: {error:?}"
        );
        assert_eq!(verdict(error), ("failed", 500));
        assert_eq!(world.sql.record("k").unwrap().state, State::Released);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_before_the_commit_and_a_panic_after_a_refused_one_are_told_in_their_own_words() {
    async fn panics(sql: Arc<FakeSql>, lease: Lease) -> Result<(), BoxError> {
        effect(sql, lease).await.expect_err("it is refused");
        panic!("no")
    }
    let world = World::new();
    let sql = world.sql.clone();
    let failed = world.lock("k").run_with(|lease| async move {
        drop(lease.completion(&sql).await?);
        Err::<(), _>("out of stock".into())
    });
    let error = failed.await.unwrap_err();
    assert!(matches!(&error, RunError::Work(own) if own.to_string() == "out of stock"), "{error:?}");

    world.sql.next_commit(Fault::Refused);
    let sql = world.sql.clone();
    let panicked = world.lock("k").run_with(|lease| panics(sql, lease));
    let error = panicked.await.unwrap_err();
    assert!(matches!(&error, RunError::Work(own) if own.is::<Panicked>()), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_that_nobody_can_ask_for_is_told_as_that() {
    let world = World::new();
    world.sql.next_commit(Fault::LostAfter);
    let sql = world.sql.clone();
    let ran = world.lock("k").run_with(|lease| async move {
        let _ = effect(sql.clone(), lease).await;
        sql.down(true);
        Ok(())
    });
    let error = ran.await.unwrap_err();
    assert!(matches!(error, RunError::Commit(CommitError::Unknown { source: Some(_) })), "{error:?}");
    assert_eq!(verdict(error), ("unavailable", 503));
}

#[tokio::test(start_paused = true)]
async fn fenced_out_is_an_error_whatever_the_work_says() {
    let world = World::new();
    let sql = world.sql.clone();
    let ran = world.lock("k").run_with(|lease| async move {
        sql.forget(lease.key());
        careless(sql, lease).await
    });
    let error = ran.await.unwrap_err();
    assert!(matches!(error, RunError::Commit(CommitError::FencedOut { .. })), "{error:?}");
    assert_eq!(verdict(error), ("unavailable", 503));
}

#[tokio::test(start_paused = true)]
async fn an_error_after_the_commit_is_told_and_means_an_ack() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let sql = world.sql.clone();
    let ran = world.lock("k").run_with(|lease| async move {
        effect(sql, lease).await?;
        Err::<(), _>("no".into())
    });
    let RunError::Work(error) = ran.await.unwrap_err() else { panic!("the work failed") };
    let after: &AfterCommit = error.downcast_ref().unwrap();
    assert_eq!(after.source.to_string(), "no");
    assert_eq!(verdict(RunError::Work(error)), ("ran", 200));
    assert_eq!(world.sql.record("k").unwrap().state, State::Done);
    // Nothing delivers it again, so somebody has to look.
    let line = log.outcome();
    assert_eq!((line.field("event"), line.level), ("ran", Level::ERROR));
    assert!(line.field("error").contains("no"), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn misuse_is_told_with_what_to_do() {
    let world = World::new();
    let other = FakeSql::new(world.clock.clone());
    let error = world.lock("k").run_with(|lease| careless(other, lease)).await.unwrap_err();
    let RunError::Misuse(misuse @ Misuse::Transaction { .. }) = &error else { panic!("{error:?}") };
    assert!(misuse.to_string().contains("the very `Arc`"), "{misuse}");
    assert_eq!(verdict(error), ("misuse", 500));
}

#[tokio::test(start_paused = true)]
async fn a_completion_may_be_run_again_in_another_transaction_and_is_committed_once() {
    let world = World::new();
    let sql = world.sql.clone();
    let ran = world.lock("k").run_with(|lease| async move {
        let completion = lease.completion(&sql).await?;
        for fault in [Some(Fault::LostBefore), Some(Fault::LostAfter), None] {
            fault.into_iter().for_each(|fault| sql.next_commit(fault));
            let mut tx = sql.begin();
            tx.insert("k");
            completion.execute(&mut tx).await?;
            if sql.commit_by_hand(tx).await.is_ok() {
                break;
            }
        }
        Ok(())
    });
    // The third try is told that the key is completed; that is an error after the commit.
    let RunError::Work(error) = ran.await.unwrap_err() else { panic!("the work failed") };
    assert!(error.is::<AfterCommit>(), "{error:?}");
    assert_eq!(world.sql.effects(), ["k"]);
}
