//! The rows of the two documents on submission, each on every store.

use std::time::Duration;

use pushonce::Store as _;
use pushonce::idempotent::{End, Follow as _, Wanted};
use pushonce::store::Record;
use pushonce::submit::{Cancelled, Overload, Scope, SubmitError, TaskState, Why};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{World, eventually, in_progress, is_conflict, replayed};

on_servers! {
    all {
        the_first_submission_of_a_key_makes_its_task_and_publishes_it_once
        a_key_in_processing_is_in_progress_and_names_its_task
        a_completed_or_failed_key_replays_its_stored_task_and_publishes_nothing
        another_input_is_a_conflict_before_during_and_after
        a_submission_without_a_key_has_no_record_of_one_and_each_is_a_new_task
        a_key_whose_task_record_is_gone_makes_a_new_task
        a_replay_is_answered_before_back_pressure
        after_its_ttl_a_key_makes_a_new_task
        a_dead_lettered_task_fails_and_a_redrive_sets_its_key_back_to_processing
        a_cancelled_task_fails_and_is_replayed_and_its_message_is_skipped
        an_expired_task_fails_and_is_replayed_and_its_message_is_skipped
        a_task_that_is_retried_stays_in_processing
    }
}

async fn the_first_submission_of_a_key_makes_its_task_and_publishes_it_once(site: &Site) {
    let world = World::on(site.store());
    let submission = world.charge("k").attribute("shop", "7").ordering_key("order-1");
    let submitted = submission.send().await.unwrap();
    let task = submitted.task.clone();
    assert_eq!((submitted.duplicate, task.state), (false, TaskState::Processing));
    let messages = world.publisher.messages.lock().unwrap().clone();
    let [(topic, message)] = &messages[..] else { panic!("one message") };
    let attributes: Vec<_> = message.attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
    let id = task.task_id.to_string();
    let expected = [
        ("idempotency-key", "k"),
        ("shop", "7"),
        ("task-id", &id),
        ("task-scope", "type:charge"),
        ("task-type", "charge"),
    ];
    assert_eq!(
        (&**topic, &attributes[..], message.ordering_key.as_deref()),
        ("tasks", &expected[..], Some("order-1"))
    );
    assert_eq!(message.data, r#"{"amount":12,"order":1}"#);
    assert_eq!(world.submitter.tasks().get(task.task_id).await.unwrap(), Some(task));
}

async fn a_key_in_processing_is_in_progress_and_names_its_task(site: &Site) {
    let world = World::on(site.store());
    let task = world.submitted("k").await;
    for _ in 0..2 {
        let again = World::on(site.store()).charge("k").send().await;
        assert_eq!(in_progress(&again), Some(task), "{again:?}");
    }
    assert_eq!(world.publisher.tasks(), [task]);
}

async fn a_completed_or_failed_key_replays_its_stored_task_and_publishes_nothing(site: &Site) {
    let world = World::on(site.store());
    for (end, state, why) in [
        (End::Completed, TaskState::Completed, None),
        (End::DeadLettered, TaskState::Failed, Some(Why::DeadLettered)),
        (End::Lost, TaskState::Failed, Some(Why::Lost)),
    ] {
        let key = format!("{end:?}");
        let id = world.submitted(&key).await;
        // Told twice, as a duplicate of its message does.
        for _ in 0..2 {
            world.submitter.tasks().ended(&id.to_string(), end).await.unwrap();
        }
        for _ in 0..2 {
            let again = world.charge(&key).send().await.unwrap();
            let found = (again.duplicate, again.task.task_id, again.task.state, again.task.why);
            assert_eq!(found, (true, id, state, why), "{key}");
        }
    }
    assert_eq!(world.publisher.tasks().len(), 3);
}

// F87
async fn another_input_is_a_conflict_before_during_and_after(site: &Site) {
    let world = World::on(site.store()).with(|submitter| submitter.creating_lease(Duration::from_secs(300)));
    // Its creator never comes back.
    *world.store.left.lock().unwrap() = Some(1);
    let creating = tokio::spawn(world.charge("k").send());
    world.store.held.notified().await;
    let other = World::on(site.store());
    assert!(is_conflict(&other.other("k").send().await));
    assert!(in_progress(&other.charge("k").send().await).is_some());
    creating.abort();
    let id = other.submitted("l").await;
    assert!(is_conflict(&other.other("l").send().await));
    other.submitter.tasks().ended(&id.to_string(), End::Completed).await.unwrap();
    let conflict = other.other("l").send().await;
    assert!(is_conflict(&conflict) && !format!("{conflict:?}").contains("amount"));
    // The same input for another type of task is another submission too.
    let typed = |scoped: &World| scoped.charge("m").scope(Scope::Global);
    typed(&other).send().await.unwrap();
    let refund = other.submitter.submit_json("refund", r#"{"amount":12,"order":1}"#);
    assert!(is_conflict(&refund.idempotency_key("m").scope(Scope::Global).send().await));
    // However it is written, the same input is no conflict.
    let spelled = other.submitter.submit_json("charge", r#"{ "order": 1.0, "amount": 12 }"#);
    assert!(in_progress(&spelled.idempotency_key("m").scope(Scope::Global).send().await).is_some());
    assert_eq!(other.publisher.tasks().len(), 2);
}

async fn a_submission_without_a_key_has_no_record_of_one_and_each_is_a_new_task(site: &Site) {
    let world = World::on(site.store());
    let submit = || world.submitter.submit_bytes("charge", "any").send();
    let (one, other) = (submit().await.unwrap(), submit().await.unwrap());
    assert!(one.task.task_id < other.task.task_id, "ids sort by time");
    assert_eq!(
        (one.duplicate, one.task.idempotency_key.is_none(), one.task.scope.is_none()),
        (false, true, true)
    );
    assert_eq!(world.publisher.tasks(), [one.task.task_id, other.task.task_id]);
    world.submitter.tasks().ended(&one.task.task_id.to_string(), End::Completed).await.unwrap();
    assert!(world.store.spaces().iter().all(|space| space == "pushonce-tasks"), "{:?}", world.store.spaces());
    let ended = world.submitter.tasks().get(one.task.task_id).await.unwrap().unwrap();
    assert_eq!(ended.state, TaskState::Completed);
}

async fn a_key_whose_task_record_is_gone_makes_a_new_task(site: &Site) {
    let world = World::on(site.store());
    let lost = world.submitted("k").await;
    let key = world.store.key("pushonce-tasks");
    let stood = world.store.read(&key).await.unwrap().unwrap();
    let gone = Record { ttl: Duration::ZERO, ..stood.record };
    let _ = world.store.swap(&key, Some(&stood.version), &gone).await.unwrap();
    assert_eq!(world.submitter.tasks().get(lost).await.unwrap(), None);
    let fresh = world.submitted("k").await;
    assert_ne!(fresh, lost);
    assert_eq!(in_progress(&world.charge("k").send().await), Some(fresh));
    assert_eq!(world.publisher.tasks(), [lost, fresh]);
    // What is still told of the lost task moves nothing of the new one.
    world.submitter.tasks().ended(&lost.to_string(), End::Completed).await.unwrap();
    assert_eq!(in_progress(&world.charge("k").send().await), Some(fresh));
}

async fn a_replay_is_answered_before_back_pressure(site: &Site) {
    let world = World::on(site.store());
    let (over, runs) = (world.submitted("over").await, world.submitted("runs").await);
    world.submitter.tasks().ended(&over.to_string(), End::Completed).await.unwrap();
    let retry_after = Duration::from_secs(7);
    let full = World::on(site.store())
        .with(|submitter| submitter.backpressure(move |_| Some(Overload::Unavailable { retry_after })));
    assert_eq!(replayed(&full.charge("over").send().await), Some(over));
    assert_eq!(in_progress(&full.charge("runs").send().await), Some(runs));
    assert!(is_conflict(&full.other("over").send().await));
    let turned = |answer| matches!(answer, Err(SubmitError::Overloaded(Overload::Unavailable { retry_after: told })) if told == retry_after);
    assert!(turned(full.charge("new").send().await));
    assert!(turned(full.submitter.submit_bytes("charge", "any").send().await));
    assert_eq!(full.publisher.tasks(), []);
    // It has left no record either.
    assert!(!World::on(site.store()).charge("new").send().await.unwrap().duplicate);
}

async fn after_its_ttl_a_key_makes_a_new_task(site: &Site) {
    let world = World::on(site.store()).with(|submitter| submitter.idempotency_ttl(Duration::from_secs(1)));
    let first = world.submitted("k").await;
    let fresh = eventually("the key is free", async || world.charge("k").send().await.ok()).await;
    assert_eq!((fresh.duplicate, fresh.task.task_id == first), (false, false));
    assert_eq!(world.publisher.tasks(), [first, fresh.task.task_id]);
    // The first task is as it was: it was the key that ran out.
    let stood = world.submitter.tasks().get(first).await.unwrap().unwrap();
    assert_eq!(stood.state, TaskState::Processing);
}

async fn a_dead_lettered_task_fails_and_a_redrive_sets_its_key_back_to_processing(site: &Site) {
    let world = World::on(site.store());
    let id = world.submitted("k").await;
    let tasks = world.submitter.tasks();
    tasks.ended(&id.to_string(), End::DeadLettered).await.unwrap();
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
    tasks.redriven(&id.to_string()).await.unwrap();
    assert_eq!(in_progress(&world.charge("k").send().await), Some(id));
    assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), Wanted::Yes);
    tasks.ended(&id.to_string(), End::Completed).await.unwrap();
    // What has succeeded does not run again.
    tasks.redriven(&id.to_string()).await.unwrap();
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
    assert_eq!(world.publisher.tasks(), [id]);
}

async fn a_cancelled_task_fails_and_is_replayed_and_its_message_is_skipped(site: &Site) {
    let world = World::on(site.store());
    let id = world.submitted("k").await;
    let tasks = world.submitter.tasks();
    for _ in 0..2 {
        let Cancelled::Cancelled(task) = tasks.cancel(id).await.unwrap() else { panic!("not cancelled") };
        assert_eq!((task.state, task.why), (TaskState::Failed, Some(Why::Cancelled)));
    }
    assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), Wanted::No { why: "cancelled" });
    let again = world.charge("k").send().await.unwrap();
    assert_eq!((again.duplicate, again.task.task_id, again.task.why), (true, id, Some(Why::Cancelled)));
    let over = world.submitted("over").await;
    tasks.ended(&over.to_string(), End::Completed).await.unwrap();
    let Cancelled::Over(task) = tasks.cancel(over).await.unwrap() else { panic!("it was over") };
    assert_eq!(task.state, TaskState::Completed);
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    assert_eq!(tasks.cancel(unknown).await.unwrap(), Cancelled::Unknown);
}

async fn an_expired_task_fails_and_is_replayed_and_its_message_is_skipped(site: &Site) {
    let world = World::on(site.store());
    let id = world.charge("k").run_within(Duration::from_secs(1)).send().await.unwrap().task.task_id;
    let tasks = world.submitter.tasks();
    let skipped = eventually("its time is over", async || {
        Some(tasks.wanted(&id.to_string()).await.unwrap()).filter(|wanted| *wanted != Wanted::Yes)
    });
    assert_eq!(skipped.await, Wanted::Late { why: "expired" });
    tasks.ended(&id.to_string(), End::Skipped).await.unwrap();
    let again = world.charge("k").send().await.unwrap();
    let found = (again.duplicate, again.task.task_id, again.task.state, again.task.why);
    assert_eq!(found, (true, id, TaskState::Failed, Some(Why::Expired)));
}

async fn a_task_that_is_retried_stays_in_processing(site: &Site) {
    let world = World::on(site.store());
    let id = world.submitted("k").await;
    // A failing delivery asks whether the work is wanted, and tells nothing of its end.
    for _ in 0..3 {
        assert_eq!(world.submitter.tasks().wanted(&id.to_string()).await.unwrap(), Wanted::Yes);
        assert_eq!(in_progress(&world.charge("k").send().await), Some(id));
    }
}
