//! Renewal stops before the claim is given to the work, and what is in flight then is settled.

use std::time::Duration;

use pushonce::store::Store as _;
use pushonce::store::record::State;
use tokio::time::Instant;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_until_the_commit() {
    let world = World::new();
    let app = world.app(world.layer().lease(seconds(9)).renew(), |sql, lease| async move {
        tokio::time::sleep(seconds(60)).await;
        effect(sql, lease).await
    });
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (DONE, 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_renewed_after_its_completion_was_taken() {
    let world = World::new();
    let app = world.app(world.layer().lease(seconds(9)).renew(), |sql, lease| async move {
        let completion = lease.completion(&sql).await?;
        let before = sql.record(lease.key()).unwrap().token;
        tokio::time::sleep(seconds(8)).await;
        assert_eq!(sql.record(lease.key()).unwrap().token, before);
        let mut tx = sql.begin();
        tx.insert(lease.key().text());
        completion.execute(&mut tx).await?;
        Ok(sql.commit_by_hand(tx).await?)
    });
    assert_eq!(push(&app, "m").await, RAN);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_in_flight_is_waited_for() {
    let world = World::new();
    let app = world.app(world.layer().lease(seconds(9)).renew(), |sql, lease| async move {
        sql.next_swap_stalls(Duration::from_millis(800));
        // The renewal is sent after three seconds.
        tokio::time::sleep(Duration::from_millis(3100)).await;
        let began = Instant::now();
        effect(sql, lease).await?;
        assert_eq!(began.elapsed().as_millis(), 700);
        Ok(())
    });
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(world.stands("m"), DONE);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_is_crossed_and_the_key_is_completed_on_the_version_that_it_wrote() {
    let world = World::new();
    let app = world.app(world.layer().lease(seconds(30)).renew(), |sql, lease| async move {
        // Written, and not answered for longer than anybody waits.
        sql.next_swap_stalls(seconds(20));
        tokio::time::sleep(Duration::from_millis(10_100)).await;
        let began = Instant::now();
        effect(sql, lease).await?;
        assert_eq!(began.elapsed().as_secs(), 1);
        Ok(())
    });
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!((world.stands("m"), world.sql.effects().len()), (DONE, 1));
}

#[tokio::test(start_paused = true)]
async fn an_undo_of_somebody_else_that_has_rewritten_the_claim_is_no_fencing_out() {
    for hand in [false, true] {
        let world = World::new();
        let app = world.app(world.layer(), move |sql, lease| async move {
            let key = lease.key().clone();
            let stored = sql.read(&key).await?.unwrap();
            let _ = sql.swap(&key, Some(&stored.version), &stored.record).await?;
            if hand { by_hand(sql, lease).await } else { effect(sql, lease).await }
        });
        assert_eq!(push(&app, "m").await, RAN);
        assert_eq!(world.stands("m").map(|(state, ..)| state), Some(State::Done));
        assert_eq!(world.sql.effects(), ["m"]);
    }
}
