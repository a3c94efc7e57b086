//! Whoever follows a message is told of what its own transaction committed, and a dead letter never goes beside one.

use std::sync::{Arc, Mutex};

use axum::Router;
use pushonce::idempotent::{End, Follow, Wanted};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::record::{Progress, State};
use pushonce::store::{BoxError, BoxFuture};
use pushonce::testing::Push;
use pushonce::{DeadLetter, Lease};

use crate::fake::{FakeSql, Fault};
use crate::world::*;

/// Somebody who follows messages, and a dead-letter topic: what was told, and how much was published.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<(Vec<End>, usize)>>);

impl Told {
    fn ends(&self) -> Vec<End> {
        self.0.lock().unwrap().0.clone()
    }

    fn published(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Follow for Told {
    fn attribute(&self) -> &str {
        "task-id"
    }
    fn wanted<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Wanted, BoxError>> {
        Box::pin(async { Ok(Wanted::Yes) })
    }
    fn ended<'a>(&'a self, id: &'a str, end: End) -> BoxFuture<'a, Result<(), BoxError>> {
        assert_eq!(id, "m");
        self.0.lock().unwrap().0.push(end);
        Box::pin(async { Ok(()) })
    }
    fn redriven<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Publisher for Told {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        self.0.lock().unwrap().1 += 1;
        Box::pin(async { Ok("1".into()) })
    }
}

/// A route whose layer is followed, and has a topic for dead letters.
fn app<F, W>(world: &World, told: &Told, work: F) -> Router
where
    F: Fn(Arc<FakeSql>, Lease) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let layer = world.layer().follow(told.clone());
    world.app(layer.dead_letters(Arc::new(told.clone()), "projects/p/topics/dead"), work)
}

/// Sends the message of the task `m`.
async fn push(app: &Router) -> (u16, &'static str) {
    let answer = Push::empty().id("1").attribute("task-id", "m").send(app).await;
    (answer.status.as_u16(), answer.outcome.unwrap().name())
}

fn rejected() -> Result<(), BoxError> {
    Err(DeadLetter { reason: "no such order".into() }.into())
}

#[tokio::test(start_paused = true)]
async fn what_is_committed_is_told_and_what_is_rolled_back_is_not() {
    let (world, told) = (World::new(), Told::default());
    let app = app(&world, &told, effect);
    world.sql.next_commit(Fault::Refused);
    assert_eq!(push(&app).await, (500, "failed"));
    assert_eq!(told.ends(), []);
    // The answer to this commit is lost, and the record tells.
    world.sql.next_commit(Fault::LostAfter);
    assert_eq!(push(&app).await, (200, "ran"));
    assert_eq!(told.ends(), [End::Completed]);
    assert_eq!(push(&app).await, (204, "duplicate"));
    assert_eq!(told.ends(), [End::Completed; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_after_its_commit_is_completed_and_published_nowhere() {
    let (world, told) = (World::new(), Told::default());
    let app = app(&world, &told, async |sql, lease| {
        effect(sql, lease).await?;
        rejected()
    });
    assert_eq!(push(&app).await, (200, "ran"));
    assert_eq!((told.ends(), told.published()), (vec![End::Completed], 0));
    assert_eq!(world.sql.effects(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_before_its_commit_is_published_and_no_late_commit_lands() {
    let (world, told) = (World::new(), Told::default());
    let open = Arc::new(Mutex::new(None));
    let kept = open.clone();
    let app = app(&world, &told, move |sql, lease| {
        let kept = kept.clone();
        async move {
            // Taken, and not run: the handler finds out first that there is nothing to be done.
            *kept.lock().unwrap() = Some(lease.completion(&sql).await?);
            rejected()
        }
    });
    assert_eq!(push(&app).await, (200, "dead-lettered"));
    assert_eq!((told.ends(), told.published()), (vec![End::DeadLettered], 1));
    let record = world.sql.record(("orders", "m")).unwrap();
    assert_eq!(record.receipt.unwrap().progress, Progress::Rejected);
    let completion = open.lock().unwrap().take().unwrap();
    let mut tx = world.sql.begin();
    tx.insert("m");
    assert!(completion.execute(&mut tx).await.is_err());
    assert_eq!((push(&app).await, told.published()), ((204, "duplicate"), 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_and_was_committed_after_all_is_published_nowhere() {
    for fault in [Fault::LostAfter, Fault::Mistaken] {
        let (world, told) = (World::new(), Told::default());
        let app = app(&world, &told, async |sql, lease| {
            let _ = effect(sql, lease).await;
            rejected()
        });
        world.sql.next_commit(fault);
        assert_eq!(push(&app).await, (500, "dead-lettered"), "{fault:?}");
        assert_eq!((told.ends(), told.published()), (vec![], 0), "{fault:?}");
        // Its redelivery is a duplicate, and tells it.
        assert_eq!(push(&app).await, (204, "duplicate"), "{fault:?}");
        assert_eq!(told.ends(), [End::Completed], "{fault:?}");
        assert_eq!(world.stands("m").map(|stands| stands.0), Some(State::Done));
    }
}
