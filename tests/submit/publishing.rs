//! Publishers that refuse, fail, say nothing or panic: an immediate retry of the key submits, with the same task. // F89, F91

use std::sync::Arc;
use std::time::Duration;

use pushonce::publish::PublishError;
use pushonce::store::Memory;
use pushonce::submit::{SubmitError, TaskState};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{Fault, World, in_progress, is_conflict};

on_servers! {
    all {
        after_a_publish_that_failed_an_immediate_retry_submits_the_same_task
    }
}

async fn after_a_publish_that_failed_an_immediate_retry_submits_the_same_task(site: &Site) {
    let world =
        World::on(site.store()).with(|submitter| submitter.publish_timeout(Duration::from_millis(500)));
    let faults = [Fault::Refuse, Fault::Unavailable, Fault::Unanswered, Fault::Panic, Fault::Hang];
    for fault in faults {
        let key = format!("{fault:?}");
        let mut ids = Vec::new();
        // Twice, since a retry may fail as well.
        for _ in 0..2 {
            world.publisher.next(fault);
            let failed = world.charge(&key).send().await;
            let Err(SubmitError::Publish { task_id, keyed: true, source }) = failed else {
                panic!("{failed:?}")
            };
            let maybe = matches!(fault, Fault::Unanswered | Fault::Panic | Fault::Hang);
            assert_eq!(source.may_have_published(), maybe, "{fault:?}");
            assert_eq!(source.is_transient(), !matches!(fault, Fault::Refuse), "{fault:?}");
            ids.push(task_id);
            assert!(is_conflict(&world.other(&key).send().await), "{fault:?}");
        }
        let made = world.charge(&key).send().await.unwrap();
        assert_eq!((made.duplicate, made.task.state), (false, TaskState::Processing));
        ids.push(made.task.task_id);
        assert!(ids.iter().all(|id| *id == ids[0]), "{fault:?}: {ids:?}");
        assert_eq!(in_progress(&world.charge(&key).send().await), Some(ids[0]));
        // Whatever was published is of the one task.
        let sent = world.publisher.tasks();
        let sent = sent.iter().filter(|id| **id == ids[0]).count();
        assert_eq!(sent, if matches!(fault, Fault::Unanswered | Fault::Hang) { 3 } else { 1 }, "{fault:?}");
    }
}

#[tokio::test]
async fn without_a_key_the_error_says_that_a_retry_is_another_task() {
    let world = World::on(Arc::new(Memory::new()));
    world.publisher.next(Fault::Unanswered);
    let failed = world.submitter.submit_bytes("charge", "any").send().await;
    let unanswered = |source: &PublishError| matches!(source, PublishError::Unanswered { .. });
    assert!(
        matches!(&failed, Err(SubmitError::Publish { keyed: false, source, .. }) if unanswered(source)),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_queue_is_published_to_its_topic_and_one_without_to_the_submitters() {
    let world = World::on(Arc::new(Memory::new())).with(|submitter| submitter.queue("mail", "mails"));
    for queue in ["mail", "other"] {
        world.charge(queue).queue(queue).send().await.unwrap();
    }
    let messages = world.publisher.messages.lock().unwrap();
    let topics: Vec<_> = messages.iter().map(|(topic, _)| topic.as_str()).collect();
    assert_eq!(topics, ["mails", "tasks"]);
}

#[tokio::test]
async fn a_traceparent_goes_along_and_what_is_none_is_left_out() {
    let world = World::on(Arc::new(Memory::new()));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (key, text) in [("a", trace.to_owned()), ("b", "none".to_owned()), ("c", "x".repeat(5000))] {
        world.charge(key).traceparent(text).send().await.unwrap();
    }
    let messages = world.publisher.messages.lock().unwrap();
    let traces =
        messages.iter().map(|(_, message)| message.attributes.get("googclient_traceparent").cloned());
    assert_eq!(traces.collect::<Vec<_>>(), [Some(trace.to_owned()), None, None]);
}
