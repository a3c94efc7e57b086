//! The task of a dead letter: failed when it is received, processing when it is redriven, on every store.

use std::sync::Arc;

use pushonce::Store;
use pushonce::dead_letter::{NotKept, Received, RedriveError, Redriven, receiver};
use pushonce::idempotent::{End, Follow};
use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::submit::{Submitter, Task, TaskState, Tasks, Why};
use pushonce::testing::Push;

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{Fails, TOPIC, Topics, delivery, forwarded, letters, plain, published};

on_servers! {
    all {
        a_task_is_failed_then_processing_then_completed
        a_copy_does_not_fail_a_task_that_was_redriven_meanwhile
    }
}

/// A submitted task, and the push of its dead letter.
async fn submitted(store: &Arc<dyn Store>) -> (Task, Push) {
    let (_, publisher) = Topics::new();
    let submitter = Submitter::new(store.clone(), publisher, TOPIC);
    let submission = submitter.submit("charge", &serde_json::json!({ "po": "po-1" })).idempotency_key("po-1");
    let task = submission.send().await.unwrap().task;
    let push = forwarded("d-1").attribute("task-id", task.task_id.to_string());
    (task, push)
}

async fn state(store: &Arc<dyn Store>, task: &Task) -> (TaskState, Option<Why>) {
    let task = Tasks::new(store.clone()).get(task.task_id).await.unwrap().expect("it is known");
    (task.state, task.why)
}

const FAILED: (TaskState, Option<Why>) = (TaskState::Failed, Some(Why::DeadLettered));
const PROCESSING: (TaskState, Option<Why>) = (TaskState::Processing, None);
const COMPLETED: (TaskState, Option<Why>) = (TaskState::Completed, None);

async fn a_task_is_failed_then_processing_then_completed(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let tasks = Tasks::new(store.clone());
    let (task, push) = submitted(&store).await;
    assert_eq!(state(&store, &task).await, PROCESSING);
    let received = receiver(store.clone()).follow(tasks.clone()).keep(&delivery(&push)).await.unwrap();
    assert_eq!(state(&store, &task).await, FAILED);

    let (topics, publisher) = Topics::new();
    let redrive = || letters.redrive(&received.entry().id).follow(tasks.clone());
    let would = redrive().dry_run().to(&publisher, TOPIC).await.unwrap();
    let Redriven::WouldPublish { topic, key: None, task: Some(named), bytes: 13, .. } = would else {
        panic!("{would:?}")
    };
    assert_eq!((&*topic, named), (TOPIC, task.task_id.to_string()));
    assert_eq!((state(&store, &task).await, topics.count()), (FAILED, 0));

    published(redrive().to(&publisher, TOPIC).await.unwrap());
    assert_eq!(state(&store, &task).await, PROCESSING);
    assert_eq!(topics.messages()[0].attributes["task-id"], task.task_id.to_string());
    tasks.ended(&task.task_id.to_string(), End::Completed).await.unwrap();
    assert!(matches!(redrive().to(&publisher, TOPIC).await.unwrap(), Redriven::Before(_)));
    assert_eq!((state(&store, &task).await, topics.count()), (COMPLETED, 1));
}

async fn a_copy_does_not_fail_a_task_that_was_redriven_meanwhile(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let tasks = Tasks::new(store.clone());
    let (task, push) = submitted(&store).await;
    let receiver = receiver(store.clone()).follow(tasks.clone());
    let received = receiver.keep(&delivery(&push)).await.unwrap();
    let (_, publisher) = Topics::new();
    let redrive = letters.redrive(&received.entry().id).follow(tasks);
    published(redrive.to(&publisher, TOPIC).await.unwrap());
    let copy = receiver.keep(&delivery(&push)).await.unwrap();
    assert!(matches!(copy, Received::Copy(_)), "{copy:?}");
    assert_eq!(state(&store, &task).await, PROCESSING);
}

#[tokio::test]
async fn a_receiver_that_stopped_before_it_told_the_task_tells_it_on_the_next_delivery() {
    let records: Arc<dyn Store> = Arc::new(Memory::new());
    let (task, push) = submitted(&records).await;
    // The task is in a store of its own, which is out.
    let out = Chaos::new(records.clone());
    out.always(On::Any, Fault::Fail);
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let receiver = receiver(store.clone()).follow(Tasks::new(out.clone()));
    let refused = receiver.keep(&delivery(&push)).await;
    assert!(matches!(refused, Err(NotKept::Follow(_))), "{refused:?}");
    out.heal();
    let copy = receiver.keep(&delivery(&push)).await.unwrap();
    assert!(matches!(copy, Received::Copy(_)), "it was kept before");
    assert_eq!(state(&records, &task).await, FAILED);
}

#[tokio::test]
async fn a_task_is_failed_again_where_its_message_was_surely_not_published() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let (task, push) = submitted(&store).await;
    let tasks = Tasks::new(store.clone());
    let received = receiver(store.clone()).follow(tasks.clone()).keep(&delivery(&push)).await.unwrap();
    let letters = plain(store.clone());
    let (topics, publisher) = Topics::new();
    let redrive = || letters.redrive(&received.entry().id).follow(tasks.clone());
    for fails in [Fails::Unavailable, Fails::Refused] {
        topics.fail(fails);
        let failed = redrive().to(&publisher, TOPIC).await;
        assert!(matches!(failed, Err(RedriveError::NotPublished(_))), "{failed:?}");
        assert_eq!((state(&store, &task).await, topics.count()), (FAILED, 0));
    }
    // It may have been published, and then it runs.
    topics.fail(Fails::Unanswered);
    let unknown = redrive().to(&publisher, TOPIC).await;
    assert!(matches!(unknown, Err(RedriveError::Unanswered(_))), "{unknown:?}");
    assert_eq!(state(&store, &task).await, PROCESSING);
    published(redrive().to(&publisher, TOPIC).await.unwrap());
    assert_eq!(topics.count(), 2, "a second copy, as the error has said");
}

#[tokio::test]
async fn a_task_that_cannot_be_set_back_is_told_and_healed_by_the_next_redrive() {
    let records: Arc<dyn Store> = Arc::new(Memory::new());
    let (task, push) = submitted(&records).await;
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let tasks = Tasks::new(records.clone());
    let received = receiver(store.clone()).follow(tasks.clone()).keep(&delivery(&push)).await.unwrap();
    let letters = plain(store.clone());
    let (topics, publisher) = Topics::new();

    // It fails at the first step, and nothing is published.
    let out = Chaos::new(records.clone());
    out.always(On::Any, Fault::Fail);
    let redrive = || letters.redrive(&received.entry().id);
    let failed = redrive().follow(Tasks::new(out.clone())).to(&publisher, TOPIC).await;
    assert!(matches!(failed, Err(RedriveError::Follow(_))), "{failed:?}");
    assert_eq!((state(&records, &task).await, topics.count()), (FAILED, 0));

    topics.fail(Fails::Refused);
    let failed = redrive().follow(OnceOnly(tasks.clone())).to(&publisher, TOPIC).await;
    assert!(matches!(failed, Err(RedriveError::NotSetBack { .. })), "{failed:?}");
    assert_eq!(state(&records, &task).await, PROCESSING);
    topics.fail(Fails::Refused);
    redrive().follow(tasks.clone()).to(&publisher, TOPIC).await.unwrap_err();
    assert_eq!((state(&records, &task).await, topics.count()), (FAILED, 0));
}

/// Sets a task to processing, and fails to set it back.
#[derive(Debug)]
struct OnceOnly(Tasks);

impl Follow for OnceOnly {
    fn attribute(&self) -> &str {
        self.0.attribute()
    }

    fn wanted<'a>(
        &'a self,
        id: &'a str,
    ) -> pushonce::store::BoxFuture<'a, Result<pushonce::idempotent::Wanted, pushonce::store::BoxError>> {
        self.0.wanted(id)
    }

    fn ended<'a>(
        &'a self,
        _: &'a str,
        _: End,
    ) -> pushonce::store::BoxFuture<'a, Result<(), pushonce::store::BoxError>> {
        Box::pin(async { Err("the test says so".into()) })
    }

    fn redriven<'a>(
        &'a self,
        id: &'a str,
    ) -> pushonce::store::BoxFuture<'a, Result<(), pushonce::store::BoxError>> {
        self.0.redriven(id)
    }
}
