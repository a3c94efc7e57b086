//! The worker's moves: in any order with the producer's, only of what is there, and healed after a crash between two records.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pushonce::idempotent::{End, Follow as _, Wanted};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::store::{BoxFuture, Memory, Record, StoreError, Stored, Swap, Version};
use pushonce::submit::{Cancelled, Submitter, TaskState, Tasks, Why};
use pushonce::{Key, Store};
use serde_json::{Value, json};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{Watched, World, in_progress, replayed};

on_servers! {
    all {
        a_worker_that_is_faster_than_the_producers_move_has_the_last_word
    }
}

/// A publisher whose message has been worked on, or cancelled, before it answers.
#[derive(Debug, Default)]
struct Fast {
    tasks: OnceLock<Tasks>,
    cancels: bool,
}

impl Publisher for Fast {
    fn publish<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async move {
            let (tasks, id) = (self.tasks.get().unwrap(), &message.attributes["task-id"]);
            if self.cancels {
                let _ = tasks.cancel(id.parse().unwrap()).await.unwrap();
            } else {
                tasks.ended(id, End::Completed).await.unwrap();
            }
            Ok("1".into())
        })
    }
}

async fn a_worker_that_is_faster_than_the_producers_move_has_the_last_word(site: &Site) {
    for (cancels, state, why) in
        [(false, TaskState::Completed, None), (true, TaskState::Failed, Some(Why::Cancelled))]
    {
        let publisher = Arc::new(Fast { cancels, ..Fast::default() });
        publisher.tasks.set(Tasks::new(site.store())).unwrap();
        let submitter = Submitter::new(site.store(), publisher, "tasks");
        let submit = || submitter.submit("charge", &json!(1)).idempotency_key(state.to_string()).send();
        let made = submit().await.unwrap();
        assert_eq!((made.duplicate, made.task.state, made.task.why), (false, state, why));
        let again = submit().await.unwrap();
        assert_eq!((again.duplicate, again.task.task_id, again.task.state), (true, made.task.task_id, state));
    }
}

/// What the key's record says of its task.
async fn key_state(store: &Watched) -> (String, Option<String>) {
    let stood = store.read(&store.key("pushonce-idempotency")).await.unwrap().unwrap();
    let data: Value = serde_json::from_slice(&stood.record.data).unwrap();
    (data["state"].as_str().unwrap().to_owned(), data["why"].as_str().map(ToOwned::to_owned))
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_tasks_record_and_the_keys_heals_when_it_is_told_again() {
    for (end, state, why) in [
        (Some(End::Completed), "completed", None),
        (Some(End::DeadLettered), "failed", Some("dead-lettered")),
        (Some(End::Lost), "failed", Some("lost")),
        (None, "failed", Some("cancelled")),
    ] {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let world = World::on(chaos.clone());
        let id = world.submitted("k").await;
        let tasks = world.submitter.tasks();
        let told = async || match end {
            Some(end) => tasks.ended(&id.to_string(), end).await.is_ok(),
            None => tasks.cancel(id).await.is_ok(),
        };
        // The task's record is moved, and the key's is not.
        chaos.next(On::Complete, Fault::Stall(Duration::ZERO));
        chaos.next(On::Complete, Fault::Refuse);
        assert!(!told().await);
        assert_eq!(key_state(&world.store).await.0, "processing");
        // It is the task that counts.
        assert_eq!(replayed(&world.charge("k").send().await), Some(id));
        if end.is_none() {
            assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), Wanted::No { why: "cancelled" });
            tasks.ended(&id.to_string(), End::Skipped).await.unwrap();
        } else {
            assert!(told().await);
        }
        assert_eq!(key_state(&world.store).await, (state.to_owned(), why.map(ToOwned::to_owned)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_records_of_an_expired_task_heals_with_its_next_delivery() {
    let clock = Arc::new(pushonce::testing::TokioClock::new());
    let chaos = Chaos::new(Arc::new(Memory::with_clock(clock.clone())));
    let world = World::on(chaos.clone()).with(|submitter| submitter.clock(clock.clone()));
    let id = world.charge("k").run_within(Duration::from_secs(9)).send().await.unwrap().task.task_id;
    let tasks = world.submitter.tasks();
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), Wanted::Yes);
    tokio::time::sleep(Duration::from_secs(1)).await;
    chaos.next(On::Complete, Fault::Stall(Duration::ZERO));
    chaos.next(On::Complete, Fault::Refuse);
    assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), Wanted::Late { why: "expired" });
    assert!(tasks.ended(&id.to_string(), End::Skipped).await.is_err());
    assert_eq!(key_state(&world.store).await.0, "processing");
    assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), Wanted::No { why: "expired" });
    tasks.ended(&id.to_string(), End::Skipped).await.unwrap();
    assert_eq!(key_state(&world.store).await, ("failed".to_owned(), Some("expired".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_retry_has_its_time_to_begin_anew() {
    let clock = Arc::new(pushonce::testing::TokioClock::new());
    let world = World::on(Arc::new(Memory::with_clock(clock.clone())))
        .with(|submitter| submitter.clock(clock.clone()));
    let submit = || world.charge("k").run_within(Duration::from_secs(60)).send();
    world.publisher.next(crate::world::Fault::Unavailable);
    assert!(submit().await.is_err());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let task = submit().await.unwrap().task;
    let tasks = world.submitter.tasks();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(tasks.wanted(&task.task_id.to_string()).await.unwrap(), Wanted::Yes);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(tasks.wanted(&task.task_id.to_string()).await.unwrap(), Wanted::Late { why: "expired" });
}

/// A store under which a task's worker completes it, just before somebody else writes the task's key.
#[derive(Debug)]
struct Overtaken {
    inner: Arc<dyn Store>,
    task: Mutex<Option<String>>,
}

impl Store for Overtaken {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.inner.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let is_key = key.consumer().as_str() == "pushonce-idempotency";
            let task = if is_key { self.task.lock().unwrap().take() } else { None };
            if let Some(task) = task {
                Tasks::new(self.inner.clone()).ended(&task, End::Completed).await.unwrap();
            }
            self.inner.swap(key, seen, next).await
        })
    }
}

#[tokio::test]
async fn a_cancellation_that_the_worker_overtakes_leaves_the_key_completed() {
    let inner = Arc::new(Memory::new());
    let store = Arc::new(Overtaken { inner: inner.clone(), task: Mutex::new(None) });
    let world = World::on(store.clone());
    let id = world.submitted("k").await;
    *store.task.lock().unwrap() = Some(id.to_string());
    // It has written the task's record, and then comes late with the key's.
    let cancelled = world.submitter.tasks().cancel(id).await.unwrap();
    assert!(matches!(cancelled, Cancelled::Cancelled(_)), "{cancelled:?}");
    assert_eq!(*store.task.lock().unwrap(), None, "it was overtaken");
    assert_eq!(world.submitter.tasks().get(id).await.unwrap().unwrap().state, TaskState::Completed);
    assert_eq!(key_state(&world.store).await, ("completed".to_owned(), None));
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
}

#[tokio::test]
async fn a_redrive_leaves_a_cancelled_task_cancelled_and_no_other_failed_one() {
    for why in [Why::Cancelled, Why::DeadLettered, Why::Lost] {
        let world = World::on(Arc::new(Memory::new()));
        let (id, tasks) = (world.submitted("k").await, world.submitter.tasks());
        match why {
            Why::Cancelled => assert!(matches!(tasks.cancel(id).await.unwrap(), Cancelled::Cancelled(_))),
            Why::Lost => tasks.ended(&id.to_string(), End::Lost).await.unwrap(),
            _ => tasks.ended(&id.to_string(), End::DeadLettered).await.unwrap(),
        }
        tasks.redriven(&id.to_string()).await.unwrap();
        let task = tasks.get(id).await.unwrap().unwrap();
        let (state, wanted, key) = if why == Why::Cancelled {
            ((TaskState::Failed, Some(why)), Wanted::No { why: "cancelled" }, "failed")
        } else {
            ((TaskState::Processing, None), Wanted::Yes, "processing")
        };
        assert_eq!((task.state, task.why), state);
        assert_eq!(tasks.wanted(&id.to_string()).await.unwrap(), wanted, "{why:?}");
        assert_eq!(key_state(&world.store).await.0, key, "{why:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_over_late_in_the_life_of_a_task_has_it_live_as_long_as_its_key() {
    const KEY: Duration = Duration::from_secs(1000);
    let clock = Arc::new(pushonce::testing::TokioClock::new());
    let world = World::on(Arc::new(Memory::with_clock(clock.clone())))
        .with(|submitter| submitter.clock(clock.clone()).idempotency_ttl(KEY).task_ttl(KEY));
    // Its task is recorded, and its message is not published.
    world.publisher.next(crate::world::Fault::Unavailable);
    assert!(world.charge("k").send().await.is_err());
    tokio::time::sleep(KEY * 3 / 4).await;
    let id = world.submitted("k").await;
    let tasks = world.submitter.tasks();
    // The last that the key is known for.
    tokio::time::sleep(KEY - Duration::from_secs(1)).await;
    assert_eq!(in_progress(&world.charge("k").send().await), Some(id));
    assert!(tasks.get(id).await.unwrap().is_some());
    assert_eq!(world.publisher.tasks(), [id]);
    tasks.ended(&id.to_string(), End::Completed).await.unwrap();
    assert_eq!(replayed(&world.charge("k").send().await), Some(id));
}

#[tokio::test]
async fn only_an_id_of_a_task_is_followed() {
    let world = World::on(Arc::new(Memory::new()));
    let (id, tasks) = (world.submitted("k").await.to_string(), world.submitter.tasks());
    assert!(tasks.is_id(&id));
    for other in ["", " ", "t", "somebody else's", "01890a5d-ac96-774b-bcce", &format!("{id} ")] {
        assert!(!tasks.is_id(other), "{other:?}");
    }
}

#[tokio::test]
async fn a_move_makes_no_record_that_is_not_there() {
    let memory = Arc::new(Memory::new());
    let world = World::on(memory.clone());
    let tasks = world.submitter.tasks();
    for id in ["01890a5d-ac96-774b-bcce-b302099a8057", "no id of a task"] {
        for end in [End::Completed, End::DeadLettered, End::Lost] {
            tasks.ended(id, end).await.unwrap();
        }
        tasks.redriven(id).await.unwrap();
        assert_eq!(tasks.wanted(id).await.unwrap(), Wanted::Yes);
    }
    assert_eq!(memory.len(), 0);
    // A key whose record is gone stays gone.
    let id = world.submitted("k").await;
    memory.forget(&world.store.key("pushonce-idempotency"));
    tasks.ended(&id.to_string(), End::Completed).await.unwrap();
    assert_eq!(memory.len(), 1);
    assert_eq!(tasks.get(id).await.unwrap().unwrap().state, TaskState::Completed);
}
