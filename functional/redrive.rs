//! A dead letter from its policy to its redrive, on the real emulator of Pub/Sub: the task fails, is sent again once, and completes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use pushonce::dead_letter::{DeadLetterEntry, DeadLetterState, DeadLetters, Redriven, Source, receiver};
use pushonce::publish::{CloudPubSub, Publisher};
use pushonce::store::Page;
use pushonce::submit::{Submitter, TaskId, TaskState, Tasks};
use pushonce::{Ack, Failure, IdempotentLayer};
use serde_json::json;
use tokio::net::TcpListener;

use crate::pubsub::Push;
use crate::stage::{SOON, Stage, scenarios};

scenarios! {
    on both: ;
    on one:
        a_task_given_up_by_its_policy_is_redriven_once_and_completes
        a_task_given_up_by_its_handler_is_redriven_once_and_completes
}

/// A worker that fails until it is mended, and the receiver of its dead letters.
struct World<'a> {
    stage: &'a Stage,
    tasks: Tasks,
    letters: DeadLetters,
    publisher: Arc<dyn Publisher>,
    mended: Arc<AtomicBool>,
    runs: Arc<AtomicUsize>,
}

impl<'a> World<'a> {
    async fn of(stage: &'a Stage, failure: fn() -> Failure) -> Self {
        let publisher: Arc<dyn Publisher> = Arc::new(CloudPubSub::from_env().expect("a publisher"));
        for topic in ["tasks", "dead"] {
            stage.pubsub.topic(topic).await;
        }
        let (mended, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (is_mended, counted) = (mended.clone(), runs.clone());
        let charge = move || async move {
            if !is_mended.load(Ordering::SeqCst) {
                return Err(failure());
            }
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(Ack)
        };
        let tasks = Tasks::new(stage.store.clone());
        let layer = IdempotentLayer::new("charge", stage.store.clone())
            .follow(tasks.clone())
            .dead_letters(publisher.clone(), stage.pubsub.resource("topics", "dead"));
        let receiver = receiver(stage.store.clone()).follow(tasks.clone());
        let app = Router::new().route("/charge", post(charge).layer(layer)).nest("/dead", receiver.router());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let policy = Push::new().dead_letter("dead", 5);
        stage.subscribe("charge", "tasks", &format!("{url}/charge"), policy).await;
        stage.subscribe("dead-push", "dead", &format!("{url}/dead"), Push::new()).await;
        let letters = DeadLetters::new(stage.site.operated());
        Self { stage, tasks, letters, publisher, mended, runs }
    }

    fn topic(&self) -> String {
        self.stage.pubsub.resource("topics", "tasks")
    }

    async fn submit(&self) -> TaskId {
        let submitter = Submitter::new(self.stage.store.clone(), self.publisher.clone(), self.topic());
        let submission = submitter.submit("charge", &json!({ "po": "po-1" })).idempotency_key("po-1");
        let task = submission.send().await.expect("it is submitted").task;
        assert_eq!(task.state, TaskState::Processing);
        task.task_id
    }

    async fn await_task(&self, id: TaskId, state: TaskState) {
        let reached = eventually(async || {
            let task = self.tasks.get(id).await.expect("the store answers").expect("it is known");
            (task.state == state).then_some(())
        });
        assert!(reached.await.is_some(), "the task is not {state}");
    }

    /// The one dead letter, once it has come: a handler's task is failed before its letter is delivered.
    async fn only(&self) -> DeadLetterEntry {
        let listed = eventually(async || {
            let listed = self.letters.list(&Page::default()).await.expect("the store answers").found;
            (!listed.is_empty()).then_some(listed)
        });
        let listed = listed.await.expect("no dead letter has come");
        let [Ok(entry)] = &listed[..] else { panic!("expected one dead letter: {listed:?}") };
        entry.clone()
    }

    /// The whole course; gives the dead letter as it was kept.
    async fn plays(&self) -> DeadLetterEntry {
        let id = self.submit().await;
        self.await_task(id, TaskState::Failed).await;
        let entry = self.only().await;
        assert_eq!(entry.state, DeadLetterState::Kept);
        assert_eq!(entry.attributes["task-id"], id.to_string());

        self.mended.store(true, Ordering::SeqCst);
        let redrive = || self.letters.redrive(&entry.id).follow(self.tasks.clone());
        let redriven = redrive().to(&self.publisher, &self.topic()).await.expect("it is redriven");
        let Redriven::Published(republished) = redriven else { panic!("{redriven:?}") };
        self.await_task(id, TaskState::Completed).await;
        let again = redrive().to(&self.publisher, &self.topic()).await.expect("it is told");
        assert_eq!(again, Redriven::Before(republished));
        assert_eq!(self.runs.load(Ordering::SeqCst), 1);
        assert_eq!(self.only().await.state, DeadLetterState::Redriven);
        entry
    }
}

async fn a_task_given_up_by_its_policy_is_redriven_once_and_completes(stage: &Stage) {
    let world = World::of(stage, || Failure::from("not yet")).await;
    let entry = world.plays().await;
    assert_eq!((entry.source, entry.attempts), (Source::Attempts, Some(5)));
}

async fn a_task_given_up_by_its_handler_is_redriven_once_and_completes(stage: &Stage) {
    let world = World::of(stage, || Failure::dead_letter("no such article")).await;
    let entry = world.plays().await;
    assert_eq!((entry.source, entry.reason.as_deref()), (Source::Handler, Some("no such article")));
    assert_eq!(entry.key.as_deref(), Some(&*entry.attributes["task-id"]), "it is the task's");
}

/// What is looked for until it is there, if it comes soon.
async fn eventually<T>(look: impl AsyncFn() -> Option<T>) -> Option<T> {
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, found).await.ok()
}
