//! The rows of the table that an own transaction adds, and those that it must leave alone.

use axum::Router;
use pushonce::attribute;
use pushonce::store::record::{Ended, State};
use pushonce::testing::Push;

use crate::fake::Fault;
use crate::world::*;

/// Ends a story as each must end: the next delivery runs and commits, and one effect stands.
async fn comes_again(world: &World, app: &Router) {
    assert_eq!(push(app, "m").await, RAN);
    is_done_once(world, app).await;
}

async fn is_done_once(world: &World, app: &Router) {
    assert_eq!(world.sql.effects(), ["m"]);
    assert_eq!(world.stands("m").map(|(state, ..)| state), Some(State::Done));
    let before = world.sql.record(("orders", "m"));
    assert_eq!(push(app, "m").await, DUPLICATE);
    assert_eq!(world.sql.record(("orders", "m")), before);
    assert_eq!(world.sql.effects(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn effect_and_key_are_committed_together() {
    let world = World::new();
    let app = world.app(world.layer(), effect);
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.stands("m"), DONE);
    let receipt = world.sql.record(("orders", "m")).unwrap().receipt.unwrap();
    assert_eq!(receipt.message.as_deref(), Some("m"));
    is_done_once(&world, &app).await;
}

#[tokio::test(start_paused = true)]
async fn those_who_commit_themselves_run_the_completion() {
    let world = World::new();
    let app = world.app(world.layer(), by_hand);
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.stands("m"), DONE);
    is_done_once(&world, &app).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_commit_nacks_whatever_the_handler_answers() {
    for handler in [Handler::Passes, Handler::Careless] {
        let world = World::new();
        let app = handler.app(&world);
        world.sql.next_commit(Fault::Refused);
        assert_eq!(push(&app, "m").await, ROLLED_BACK, "{handler:?}");
        assert_eq!(world.stands("m"), FAILED);
        assert_eq!(world.sql.effects(), [""; 0]);
        comes_again(&world, &app).await;
    }
}

#[derive(Debug, Clone, Copy)]
enum Handler {
    /// Returns the error of its commit.
    Passes,
    /// Says that all is well.
    Careless,
}

impl Handler {
    fn app(self, world: &World) -> Router {
        match self {
            Self::Passes => world.app(world.layer(), effect),
            Self::Careless => world.app(world.layer(), careless),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_rolls_back_and_answers_200_is_nacked_and_runs_again() {
    let (world, runs) = (World::new(), Runs::default());
    let app = world.app(world.layer(), move |sql, lease| {
        let first = runs.add() == 0;
        async move {
            if !first {
                return by_hand(sql, lease).await;
            }
            let completion = lease.completion(&sql).await?;
            let mut tx = sql.begin();
            tx.insert("never");
            completion.execute(&mut tx).await?;
            drop(tx);
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(world.stands("m"), FAILED);
    comes_again(&world, &app).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_took_the_completion_and_never_ran_it_is_nacked() {
    let (world, runs) = (World::new(), Runs::default());
    let app = world.app(world.layer(), move |sql, lease| {
        let first = runs.add() == 0;
        async move {
            if !first {
                return effect(sql, lease).await;
            }
            drop(lease.completion(&sql).await?);
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    comes_again(&world, &app).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_before_the_commit_is_an_error_like_any_other() {
    for took in [false, true] {
        let (world, runs) = (World::new(), Runs::default());
        let app = world.app(world.layer(), move |sql, lease| {
            let first = runs.add() == 0;
            async move {
                if !first {
                    return effect(sql, lease).await;
                }
                let completion = if took { Some(lease.completion(&sql).await?) } else { None };
                drop(completion);
                Err("no".into())
            }
        });
        assert_eq!(push(&app, "m").await, ROLLED_BACK, "{took}");
        assert_eq!(world.stands("m"), FAILED);
        comes_again(&world, &app).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_commit_an_error_and_a_panic_are_acked_and_logged_and_the_record_stays_done() {
    for panics in [false, true] {
        for hand in [false, true] {
            let world = World::new();
            let app = world.app(world.layer(), move |sql, lease| async move {
                let committed = if hand { by_hand(sql, lease).await } else { effect(sql, lease).await };
                committed?;
                if panics { panic!("no") } else { Err("no".into()) }
            });
            assert_eq!(push(&app, "m").await, RAN_LOUDLY, "{panics} {hand}");
            assert_eq!(world.stands("m"), DONE);
            is_done_once(&world, &app).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_fenced_out_is_nacked_whatever_it_answers_and_the_record_is_left_alone() {
    for (what, hand) in [("passes", false), ("careless", false), ("panics", false), ("passes", true)] {
        let world = World::new();
        let app = world.app(world.layer().lease(seconds(9)), move |sql, lease| async move {
            lease.lost().await;
            tokio::time::sleep(seconds(2)).await;
            let written = if hand { by_hand(sql, lease).await } else { effect(sql, lease).await };
            match what {
                "passes" => written,
                "careless" => Ok(()),
                _ => panic!("no"),
            }
        });
        let zombie = tokio::spawn(async move { push(&app, "m").await });
        tokio::time::sleep(seconds(9) + std::time::Duration::from_millis(10)).await;
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let heir = tokio::spawn(world.lock(("orders", "m")).run(async move { Ok(gone.await?) }));
        tokio::time::sleep(seconds(1)).await;
        let before = world.sql.record(("orders", "m")).unwrap();
        assert_eq!((before.state, before.ended), (State::Claimed, Ended::Unknown));
        assert_eq!(zombie.await.unwrap(), UNAVAILABLE, "{what} {hand}");
        assert_eq!(world.sql.record(("orders", "m")).unwrap(), before);
        assert_eq!(world.sql.effects(), [""; 0]);
        go.send(()).unwrap();
        heir.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_record_was_deleted_so_nothing_is_committed() {
    let world = World::new();
    let app = world.app(world.layer(), |sql, lease| async move {
        sql.forget(lease.key());
        effect(sql, lease).await
    });
    assert_eq!(push(&app, "m").await, UNAVAILABLE);
    assert_eq!(world.stands("m"), None);
    assert_eq!(world.sql.effects(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_entity_of_serialize_is_given_back_however_the_transaction_ended() {
    for fault in [None, Some(Fault::Refused), Some(Fault::LostBefore), Some(Fault::LostAfter)] {
        let world = World::new();
        let app = world.app(world.layer().serialize(attribute("po")), effect);
        fault.into_iter().for_each(|fault| world.sql.next_commit(fault));
        let answer = Push::empty().id("m").attribute("po", "1").send(&app).await;
        assert_eq!(answer.acked(), matches!(fault, None | Some(Fault::LostAfter)), "{fault:?}");
        // Nobody waits for the entity.
        let began = tokio::time::Instant::now();
        let next = Push::empty().id("other").attribute("po", "1").send(&app).await;
        assert_eq!((next.status.as_u16(), began.elapsed().as_millis()), (200, 0), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_entity_of_serialize_is_held_until_the_transaction_is_decided() {
    // Decided before the answer, and long after it.
    for late in [3, 30] {
        let world = World::new();
        let layer = world.layer().serialize(attribute("po")).serialize_wait(seconds(60));
        let (see, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let app = world.app(layer, move |sql, lease| {
            see.send(sql.effects()).unwrap();
            effect(sql, lease)
        });
        let send = |id| Push::empty().id(id).attribute("po", "1");
        world.sql.next_commit(Fault::Late(seconds(late)));
        let (first, app_of_first) = (send("m-1"), app.clone());
        let first = tokio::spawn(async move { first.send(&app_of_first).await });
        assert_eq!(seen.recv().await.unwrap(), [""; 0]);
        assert_eq!(send("m-2").send(&app).await.status, 200);
        assert_eq!(seen.recv().await.unwrap(), ["m-1"], "the second began before the first had ended");
        assert_eq!(first.await.unwrap().acked(), late == 3);
    }
}
