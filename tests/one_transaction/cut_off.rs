//! Work that is cut off in the middle of its own transaction: never a blind lapse, and never a blind release.

use std::time::Duration;

use pushonce::drain;
use pushonce::store::record::{Ended, State};
use pushonce::testing::Push;
use tracing::Level;

use crate::fake::Fault;
use crate::process::alone;
use crate::world::*;

const TIMED_OUT: (u16, &str, Level) = (504, "failed", Level::ERROR);
const PANICKED: (u16, &str, Level) = (500, "failed", Level::ERROR);
const UNKNOWN: Option<(State, Ended, u32)> = Some((State::Released, Ended::Unknown, 1));

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_timed_out_in_its_commit_is_decided_by_the_record() {
    let world = World::new();
    let app = world.app(world.layer().work_timeout(seconds(2)), effect);
    world.sql.next_commit(Fault::Silent);
    assert_eq!(push(&app, "m").await, TIMED_OUT);
    assert_eq!(world.stands("m"), UNKNOWN);
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.sql.effects(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_timed_out_after_its_completion_is_decided_by_the_record() {
    for committed in [false, true] {
        let world = World::new();
        let app = world.app(world.layer().work_timeout(seconds(2)), move |sql, lease| async move {
            let completion = lease.completion(&sql).await?;
            let mut tx = sql.begin();
            tx.insert(lease.key().text());
            completion.execute(&mut tx).await?;
            if committed {
                sql.commit_by_hand(tx).await?;
            }
            std::future::pending().await
        });
        let told = if committed { RAN_LOUDLY } else { TIMED_OUT };
        assert_eq!(push(&app, "m").await, told);
        assert_eq!(world.stands("m"), if committed { DONE } else { UNKNOWN });
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_after_its_completion_is_decided_by_the_record() {
    for committed in [false, true] {
        let world = World::new();
        let app = world.app(world.layer(), move |sql, lease| async move {
            if committed {
                by_hand(sql, lease).await?;
            } else {
                drop(lease.completion(&sql).await?);
            }
            panic!("no")
        });
        assert_eq!(push(&app, "m").await, if committed { RAN_LOUDLY } else { PANICKED });
        assert_eq!(world.stands("m"), if committed { DONE } else { UNKNOWN });
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_gives_its_own_commit_up_is_decided_by_the_record() {
    let world = World::new();
    let app = world.app(world.layer(), |sql, lease| async move {
        let _ = tokio::time::timeout(seconds(1), effect(sql, lease)).await;
        Ok(())
    });
    world.sql.next_commit(Fault::Silent);
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(world.stands("m"), FAILED);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_outlives_its_handler_is_decided_by_the_record() {
    // In time: the release waits for the row. Too late: its condition is false.
    for (late, told, effects) in [(false, RAN, 1), (true, ROLLED_BACK, 0)] {
        let world = World::new();
        let app = world.app(world.layer(), move |sql, lease| async move {
            let completion = lease.completion(&sql).await?;
            let (executed, is_executed) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                let mut tx = sql.begin();
                tx.insert(lease.key().text());
                if late {
                    let _ = executed.send(());
                    tokio::time::sleep(seconds(3)).await;
                    return completion
                        .execute(&mut tx)
                        .await
                        .expect_err("its condition is false now")
                        .to_string();
                }
                completion.execute(&mut tx).await.unwrap();
                let _ = executed.send(());
                tokio::time::sleep(seconds(3)).await;
                sql.commit_by_hand(tx).await.unwrap();
                String::new()
            });
            Ok(is_executed.await?)
        });
        assert_eq!(push(&app, "m").await, told);
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(world.sql.effects().len(), effects);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_wait_for_its_commit_is_not_trusted() {
    let world = World::new();
    let app = world.app(world.layer(), |sql, lease| async move {
        tokio::spawn(effect(sql, lease));
        tokio::time::sleep(seconds(1)).await;
        Ok(())
    });
    world.sql.next_commit(Fault::Silent);
    // Its commit is given up while the release waits for the row.
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (FAILED, 0));
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.sql.effects(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_in_the_commit_stops_nothing() {
    let world = World::new();
    let app = world.app(world.layer(), effect);
    world.sql.next_commit(Fault::Late(seconds(2)));
    let caller = tokio::spawn(async move { Push::empty().id("m").send(&app).await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    caller.abort();
    world.until("m", State::Done).await;
    tokio::time::sleep(seconds(20)).await;
    assert_eq!((world.stands("m"), world.sql.effects().len()), (DONE, 1));
}

#[test]
fn a_shutdown_in_the_commit_is_decided_by_the_record() {
    let name = "cut_off::a_shutdown_in_the_commit_is_decided_by_the_record";
    alone(name, &[], async {
        let world = World::new();
        let app = world.app(world.layer(), effect);
        world.sql.next_commit(Fault::Silent);
        let caller = tokio::spawn(async move { push(&app, "m").await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(drain(seconds(4)).await.left == 0);
        assert_eq!(caller.await.unwrap(), (503, "unavailable", Level::INFO));
        assert_eq!(world.stands("m"), UNKNOWN);
    });
}

#[test]
fn a_shutdown_after_the_commit_is_acked() {
    let name = "cut_off::a_shutdown_after_the_commit_is_acked";
    alone(name, &[], async {
        let world = World::new();
        let app = world.app(world.layer(), |sql, lease| async move {
            effect(sql, lease).await?;
            std::future::pending().await
        });
        let caller = tokio::spawn(async move { push(&app, "m").await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(drain(seconds(4)).await.left == 0);
        assert_eq!(caller.await.unwrap(), RAN_LOUDLY);
        assert_eq!(world.stands("m"), DONE);
    });
}

#[test]
fn where_nothing_is_guarded_the_transaction_is_committed_alone() {
    let name = "cut_off::where_nothing_is_guarded_the_transaction_is_committed_alone";
    alone(name, &[("PUSHONCE_DISABLED", "1")], async {
        let world = World::new();
        for work in 0..2 {
            let sql = world.sql.clone();
            world
                .lock("k")
                .run_with(move |lease| async move {
                    if work == 0 { effect(sql, lease).await } else { by_hand(sql, lease).await }
                })
                .await
                .unwrap();
        }
        assert_eq!((world.sql.effects(), world.sql.record("k")), (vec!["k".into(), "k".into()], None));
    });
}
