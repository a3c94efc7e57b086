//! A producer that dies between two steps, on every store: the key heals, with the same task. // F90

use std::thread;
use std::time::Duration;

use pushonce::idempotent::{End, Follow as _};
use pushonce::submit::{SubmitError, TaskId};
use tokio::runtime::Builder;

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{Fault, World, eventually, in_progress, is_conflict, replayed};

on_servers! {
    all {
        after_the_key_record_a_retry_takes_over_with_the_same_task
        after_the_task_record_a_retry_takes_over_with_the_same_task
        after_the_publish_a_retry_takes_over_with_the_same_task
        a_task_whose_worker_was_through_before_the_take_over_is_replayed_and_not_published_again
    }
}

const CREATING_LEASE: Duration = Duration::from_secs(1);

/// Where a producer dies.
#[derive(Clone, Copy)]
enum Point {
    /// Before its write of that number, from 0.
    Write(usize),
    /// While the publisher's answer is on its way.
    Published,
}

/// A producer that submits `k` and dies there, with its runtime and all that runs on it. Tells which
/// messages it has published.
async fn died(site: &Site, point: Point) -> Vec<TaskId> {
    let store = site.store();
    let world = tokio::task::spawn_blocking(move || {
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let world = World::on(store).with(|submitter| submitter.creating_lease(CREATING_LEASE));
            let reached = match point {
                Point::Write(left) => {
                    *world.store.left.lock().unwrap() = Some(left);
                    world.store.held.clone()
                }
                Point::Published => {
                    world.publisher.next(Fault::Hang);
                    world.publisher.hangs.clone()
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    answer = world.charge("k").send() => panic!("it was not stopped: {answer:?}"),
                    () = reached.notified() => {}
                }
            });
            runtime.shutdown_background();
            world
        })
        .join()
        .unwrap()
    });
    world.await.unwrap().publisher.tasks()
}

/// What a retry meets at once and after the creating-lease.
async fn heals(site: &Site, sent: Vec<TaskId>) {
    let world = World::on(site.store()).with(|submitter| submitter.creating_lease(CREATING_LEASE));
    let mut known = sent.clone();
    let taken = eventually("a retry takes over", async || {
        let answer = world.charge("k").send().await;
        match &answer {
            Err(SubmitError::InProgress { task_id, retry_after }) => {
                assert!(*retry_after <= CREATING_LEASE, "it keeps out for {retry_after:?}");
                known.push(*task_id);
                None
            }
            _ => Some(answer.unwrap()),
        }
    });
    let taken = taken.await;
    let id = taken.task.task_id;
    assert!(!taken.duplicate && known.iter().all(|known| *known == id), "{known:?} {id}");
    assert_eq!(world.publisher.tasks(), [id]);
    assert_eq!(in_progress(&world.charge("k").send().await), Some(id));
    world.submitter.tasks().ended(&id.to_string(), End::Completed).await.unwrap();
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
}

async fn after_the_key_record_a_retry_takes_over_with_the_same_task(site: &Site) {
    let sent = died(site, Point::Write(1)).await;
    assert_eq!(sent, []);
    // Another input is a conflict also while nobody knows what became of the first.
    assert!(is_conflict(&World::on(site.store()).other("k").send().await));
    heals(site, sent).await;
}

async fn after_the_task_record_a_retry_takes_over_with_the_same_task(site: &Site) {
    // The publisher answers nobody any more.
    let sent = died(site, Point::Published).await;
    assert_eq!(sent.len(), 1);
    heals(site, sent).await;
}

async fn after_the_publish_a_retry_takes_over_with_the_same_task(site: &Site) {
    let sent = died(site, Point::Write(2)).await;
    assert_eq!(sent.len(), 1);
    heals(site, sent).await;
}

async fn a_task_whose_worker_was_through_before_the_take_over_is_replayed_and_not_published_again(
    site: &Site,
) {
    let [id] = died(site, Point::Write(2)).await[..] else { panic!("one message") };
    let world = World::on(site.store());
    world.submitter.tasks().ended(&id.to_string(), End::Completed).await.unwrap();
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
    assert_eq!(world.publisher.tasks(), []);
}
