//! Workers that are faster than the producer's own last step.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use pushonce::Outcome;
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::BoxFuture;
use pushonce::submit::{SubmitError, TaskState};

use crate::caller::{Caller, Told};
use crate::on_servers::on_servers;
use crate::site::Site;
use crate::supplier::Supplier;
use crate::work::{self, Topic};

on_servers! {
    all {
        a_task_that_is_over_before_its_producer_hears_of_the_publish_is_a_success
        a_task_that_is_over_although_nobody_heard_of_the_publish_is_replayed
    }
}

/// Answers when the message is worked on.
#[derive(Debug)]
struct Overtaken {
    topic: Topic,
    supplier: Arc<Supplier>,
    worker: Router,
    answer: Heard,
}

#[derive(Debug, Clone, Copy)]
enum Heard {
    Published,
    Nothing,
}

impl Publisher for Overtaken {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let published = self.topic.publish(topic, message).await;
            let push = work::pushes(&self.supplier).pop().unwrap();
            assert_eq!(push.send(&self.worker).await.outcome, Some(Outcome::Ran));
            match self.answer {
                Heard::Published => published,
                Heard::Nothing => Err(PublishError::Unanswered { what: "cut off".to_owned(), source: None }),
            }
        })
    }
}

async fn overtaken(site: &Site, answer: Heard) -> (Caller, Arc<Supplier>) {
    let supplier = Arc::new(Supplier::start().await);
    let to = work::address(&supplier.url("/"));
    let worker = work::worker(site.store(), to);
    let publisher = Arc::new(Overtaken { topic: Topic(to), supplier: supplier.clone(), worker, answer });
    (caller(site, publisher), supplier)
}

pub(crate) fn caller(site: &Site, publisher: Arc<dyn Publisher>) -> Caller {
    let (topic, key) = (work::TOPIC.to_owned(), "po-1".to_owned());
    Caller { store: site.store(), publisher, topic, key, told: Told::default() }
}

async fn a_task_that_is_over_before_its_producer_hears_of_the_publish_is_a_success(site: &Site) {
    let (mut caller, supplier) = overtaken(site, Heard::Published).await;
    let submitted = caller.submit().await.unwrap();
    assert_eq!((submitted.duplicate, submitted.task.state), (false, TaskState::Completed));
    ended(&mut caller, &supplier).await;
}

async fn a_task_that_is_over_although_nobody_heard_of_the_publish_is_replayed(site: &Site) {
    let (mut caller, supplier) = overtaken(site, Heard::Nothing).await;
    let Err(SubmitError::Publish { task_id, keyed: true, .. }) = caller.submit().await else {
        panic!("nobody heard of it")
    };
    caller.told.ids.insert(task_id);
    ended(&mut caller, &supplier).await;
}

/// The caller is told so at once, and of one task; it was published and worked on once.
pub(crate) async fn ended(caller: &mut Caller, supplier: &Supplier) {
    let over = caller.accepted(Instant::now()).await;
    assert_eq!((over.duplicate, over.task.state), (true, TaskState::Completed));
    assert_eq!((caller.told.ids.len(), caller.told.late), (1, 0), "{:?}", caller.told);
    assert_eq!((work::pushes(supplier).len(), work::effects(supplier).len()), (1, 1), "{supplier}");
}
