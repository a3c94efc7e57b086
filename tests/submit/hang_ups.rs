//! Callers who hang up: what has begun ends, and drain waits for it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::store::record::State;
use pushonce::{Drained, Store as _, drain};

use crate::alone::alone;
use crate::world::{Fault as Publishing, World, eventually, in_progress};

/// Polls a submission once and drops it.
async fn hung_up(submission: impl Future) {
    let mut submission = Box::pin(submission);
    assert!(poll_fn(|context| Poll::Ready(submission.as_mut().poll(context).is_pending())).await);
}

#[tokio::test(start_paused = true)]
async fn a_submission_whose_caller_hangs_up_at_any_step_is_published_and_moved_on() {
    for step in 0..3 {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let world = World::on(chaos.clone());
        // The steps before it are quick.
        for at in 0..=step {
            let stall = if at == step { Duration::from_secs(2) } else { Duration::ZERO };
            chaos.next(On::Swap, Fault::Stall(stall));
        }
        // With no time between its calls, it is dropped in the stall.
        hung_up(world.charge("k").send()).await;
        assert!(!chaos.has_next(), "step {step}");
        tokio::time::sleep(Duration::from_secs(3)).await;
        let [id] = world.publisher.tasks()[..] else { panic!("step {step}: one message") };
        assert_eq!(in_progress(&world.charge("k").send().await), Some(id));
        let record =
            world.store.read(&world.store.key("pushonce-idempotency")).await.unwrap().unwrap().record;
        assert_eq!(record.state, State::Done, "step {step}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_publisher_never_answers_is_given_back_although_nobody_waits() {
    let world = World::on(Arc::new(Memory::new()));
    world.publisher.next(Publishing::Hang);
    hung_up(world.charge("k").send()).await;
    // Once the publisher's time is over, the key is given back and not left to its creating-lease.
    let began = tokio::time::Instant::now();
    let id =
        eventually("the key is given back", async || world.charge("k").send().await.ok()).await.task.task_id;
    assert!(began.elapsed() < Duration::from_secs(11), "after {:?}", began.elapsed());
    assert_eq!(world.publisher.tasks(), [id, id]);
    assert_eq!(in_progress(&world.charge("k").send().await), Some(id));
}

#[tokio::test(start_paused = true)]
async fn a_submission_that_was_never_polled_submits_nothing() {
    let world = World::on(Arc::new(Memory::new()));
    drop(world.charge("k").send());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((world.store.spaces().len(), world.publisher.tasks().len()), (0, 0));
}

#[test]
fn drain_waits_for_a_submission_whose_caller_has_gone() {
    alone("hang_ups::drain_waits_for_a_submission_whose_caller_has_gone", &[], async {
        let world = World::on(Arc::new(Memory::new()))
            .with(|submitter| submitter.publish_timeout(Duration::from_secs(3)));
        world.publisher.next(Publishing::Hang);
        hung_up(world.charge("k").send()).await;
        let began = tokio::time::Instant::now();
        assert_eq!(drain(Duration::from_secs(8)).await, Drained { cancelled: false, left: 0 });
        assert_eq!(began.elapsed().as_secs(), 3);
        // It was given back before the drain was over.
        assert!(!world.charge("k").send().await.unwrap().duplicate);
    });
}
