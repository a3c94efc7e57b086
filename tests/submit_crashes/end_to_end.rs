//! One logical task through the real emulator of Pub/Sub: its producer and its worker are killed at each step in turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use pushonce::publish::CloudPubSub;
use pushonce::submit::{TaskState, Tasks};

use crate::caller::{Caller, Told};
use crate::front::{Answer, Front};
use crate::on_servers::on_servers;
use crate::point::{KEYS, Point, TASKS};
use crate::process::{Instance, Process};
use crate::program::{self, Role};
use crate::pubsub::{PubSub, Push};
use crate::site::Site;
use crate::storm::states;
use crate::supplier::Supplier;
use crate::{PATIENCE, report, work};

/// The emulator waits a second before it delivers again: of twenty rounds of all others three, of two hundred thirty.
fn rounds() -> usize {
    crate::storm::rounds().div_ceil(7)
}

on_servers! { [sqlite redis postgres datastore_emulator] { a_task_that_is_killed_at_every_step_is_one } }

async fn a_task_that_is_killed_at_every_step_is_one(site: &Site) {
    let rounds = rounds();
    join_all((0..rounds).map(|round| killed_at_every_step(site, format!("po-{round}")))).await;
    // Each key has had one task, and nothing is on its way any more.
    for space in [TASKS, KEYS] {
        assert_eq!(states(site, space).await, BTreeMap::from([("completed".to_owned(), rounds)]));
    }
    report::test("pubsub-emulator", "a_task_that_is_killed_at_every_step_is_one");
}

async fn killed_at_every_step(site: &Site, key: String) {
    let (pubsub, supplier) = (PubSub::from_env("task").await, Supplier::start().await);
    let front = Front::of([]).await;
    pubsub.topic("tasks").await;
    pubsub.push("work", "tasks", &front.url("/"), Push::new()).await;
    let topic = format!("projects/pushonce/topics/{}", pubsub.name("tasks"));

    // It works on what the third producer publishes, and is killed before it can tell.
    let mut worker = instance(site, &supplier, Some(Point::AfterDone)).await;
    front.turn_to([&worker]);
    for point in Point::ALL.into_iter().filter(|point| point.is_of_submission()) {
        let producer = Role::Producer { key: &key, topic: &topic };
        kill_at(point, &mut producer.start(site, &supplier.url("/"), Some(point))).await;
    }
    let publisher = Arc::new(CloudPubSub::from_env().unwrap());
    let mut caller = Caller { store: site.store(), publisher, topic, key, told: Told::default() };
    let accepted = caller.accepted(work::free(site)).await;
    assert!(!accepted.duplicate, "its work is not known to have ended: {accepted:?}");

    kill_at(Point::AfterDone, &mut worker.process).await;
    let mut next = instance(site, &supplier, Some(Point::BetweenMoves)).await;
    front.turn_to([&next]);
    kill_at(Point::BetweenMoves, &mut next.process).await;
    let last = instance(site, &supplier, None).await;
    front.turn_to([&last]);
    // Both messages, of which no earlier delivery was acked.
    let acked = |answers: &[Answer]| answers.iter().filter(|answer| answer.acks()).count() >= 2;
    let answers = front.await_answers(PATIENCE, acked).await;
    assert!(answers.iter().all(|answer| !answer.acks() || answer.outcome == "duplicate"), "{front}");

    let over = caller.accepted(Instant::now()).await;
    let task = Tasks::new(site.store()).get(accepted.task.task_id).await.unwrap().unwrap();
    assert!(over.duplicate, "{over:?}");
    for told in [&over.task, &task] {
        assert_eq!((told.task_id, told.state), (accepted.task.task_id, TaskState::Completed));
    }
    assert_eq!((caller.told.ids.len(), caller.told.late), (1, 0), "{:?}", caller.told);
    assert_eq!(work::effects(&supplier).len(), 1, "{supplier}");
    pubsub.delete("work").await;
}

async fn instance(site: &Site, supplier: &Supplier, point: Option<Point>) -> Instance {
    let process = Role::Worker.start(site, &supplier.url("/"), point);
    Instance { port: program::port(&process).await, process }
}

async fn kill_at(point: Point, process: &mut Process) {
    process.await_log(PATIENCE, &point.announcement()).await;
    process.kill_9().await;
}
