//! How long a key names its task: its window, what preserves it, and records that run out or vanish under a submission.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pushonce::idempotent::{End, Follow as _};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Memory, Record, Standing, StoreError, Stored, Swap, Version};
use pushonce::submit::Submitter;
use pushonce::testing::ManualClock;
use pushonce::{Key, Store};
use serde_json::{Value, json};

use crate::world::{World, in_progress, replayed};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn world() -> (World, ManualClock, Arc<Memory>) {
    let clock = ManualClock::new();
    let memory = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    let world = World::on(memory.clone()).with(|submitter| submitter.clock(Arc::new(clock.clone())));
    (world, clock, memory)
}

#[tokio::test]
async fn no_move_of_the_worker_slides_the_expiry() {
    let (world, clock, memory) = world();
    let id = world.submitted("k").await;
    let expires = async || {
        let stood = memory.read(&world.store.key("pushonce-idempotency")).await.unwrap().unwrap();
        let data: Value = serde_json::from_slice(&stood.record.data).unwrap();
        data["expires_at"].clone()
    };
    let (tasks, told) = (world.submitter.tasks(), expires().await);
    for end in [None, Some(End::DeadLettered), None, Some(End::Lost), None, Some(End::Completed)] {
        clock.advance(3 * HOUR);
        match end {
            Some(end) => tasks.ended(&id.to_string(), end).await.unwrap(),
            None => tasks.redriven(&id.to_string()).await.unwrap(),
        }
        assert_eq!(expires().await, told);
    }
    clock.advance(6 * HOUR - Duration::from_millis(1));
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
    clock.advance(Duration::from_millis(1));
    assert_ne!(world.submitted("k").await, id);
}

#[tokio::test]
async fn a_ttl_of_its_own_counts_for_its_key_alone() {
    let (world, clock, _) = world();
    let month = 30 * 24 * HOUR;
    let id = world.charge("k").idempotency_ttl(month).send().await.unwrap().task.task_id;
    let short = world.submitted("short").await;
    world.submitter.tasks().ended(&id.to_string(), End::Completed).await.unwrap();
    clock.advance(24 * HOUR);
    assert_ne!(world.submitted("short").await, short);
    // The record counts, whatever later submissions ask for; and its task is kept as long as the key names it.
    clock.advance(29 * 24 * HOUR - Duration::from_millis(1));
    let again = world.charge("k").idempotency_ttl(HOUR).send().await;
    assert_eq!(replayed(&again), Some(id));
    assert!(world.submitter.tasks().get(id).await.unwrap().is_some());
    clock.advance(Duration::from_millis(1));
    assert_ne!(world.submitted("k").await, id);
}

#[tokio::test]
async fn an_expired_record_is_overwritten_by_one_of_many() {
    let (world, clock, memory) = world();
    let first = world.submitted("k").await;
    let fence =
        async || memory.read(&world.store.key("pushonce-idempotency")).await.unwrap().unwrap().record.fence;
    let stood = fence().await;
    clock.advance(24 * HOUR);
    let answers = join_all((0..64).map(|_| world.charge("k").send())).await;
    let made: Vec<_> = answers.iter().flatten().collect();
    assert_eq!((made.len(), made[0].duplicate), (1, false), "{answers:?}");
    let id = made[0].task.task_id;
    assert_eq!(answers.iter().filter(|answer| in_progress(answer) == Some(id)).count(), 63);
    assert_eq!(world.publisher.tasks(), [first, id]);
    assert!(fence().await > stood, "it is the same record, overwritten");
}

/// A publisher in whose time the wall clock of its process is set forward.
#[derive(Debug)]
struct Jump(ManualClock);

impl Publisher for Jump {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        self.0.ahead(48 * HOUR);
        Box::pin(async { Ok("1".into()) })
    }
}

#[tokio::test]
async fn a_wall_clock_that_is_set_forward_during_a_submission_ends_no_window() {
    let clock = ManualClock::new();
    let (store, publisher) = (Arc::new(Memory::new()), Arc::new(Jump(clock.clone())));
    let submitter = Submitter::new(store, publisher, "tasks").clock(Arc::new(clock));
    let submit = || submitter.submit("charge", &json!(1)).idempotency_key("k").send();
    let id = submit().await.unwrap().task.task_id;
    assert_eq!(in_progress(&submit().await), Some(id));
}

/// A store whose record is collected just after a create has met it.
#[derive(Debug)]
struct Vanishing {
    memory: Memory,
    /// Whether it says what stood, or has to be read.
    tells: bool,
}

impl Store for Vanishing {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.memory.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let answer = self.memory.swap(key, seen, next).await?;
            if key.consumer().as_str() != "pushonce-idempotency" || matches!(answer, Swap::Written(_)) {
                return Ok(answer);
            }
            self.memory.forget(key);
            Ok(if self.tells { answer } else { Swap::Lost(Standing::Unknown) })
        })
    }
}

#[tokio::test]
async fn a_record_that_vanishes_between_two_steps_is_claimed_anew() {
    for tells in [false, true] {
        let clock = ManualClock::new();
        let memory = Memory::with_clock(Arc::new(clock.clone()));
        let world = World::on(Arc::new(Vanishing { memory, tells }));
        let first = world.submitted("k").await;
        // Where it is told what stood, that is over; the write upon it finds nothing.
        clock.advance(24 * HOUR);
        let fresh = world.submitted("k").await;
        assert_ne!(first, fresh);
        assert_eq!(world.publisher.tasks(), [first, fresh]);
    }
}
