//! One round: a key whose submission, or whose work, is killed at a point, and what all the others make of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pushonce::publish::Publisher;
use pushonce::store::record::State;
use pushonce::submit::{SubmitError, Submitted, TaskId, TaskState, Tasks};
use pushonce::testing::Push;
use pushonce::{IntoKey as _, Outcome, Store};

use crate::point::Point;
use crate::program::{self, Role};
use crate::site::Site;
use crate::supplier::Supplier;
use crate::totals::Totals;
use crate::work::{self, CONSUMER, CREATING_LEASE, Topic};
use crate::{PATIENCE, client, pause};

/// A key on a store, with a topic and a supplier that nobody else has.
pub(crate) struct Round {
    site: Arc<Site>,
    point: Point,
    key: String,
    store: Arc<dyn Store>,
    supplier: Supplier,
    publisher: Arc<dyn Publisher>,
    came: Came,
}

/// What came of a round.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// The tasks that callers were told of.
    pub(crate) ids: BTreeSet<TaskId>,
    /// Answers "in progress" while the key was held.
    pub(crate) kept_out: usize,
    /// The same when it was not to be held any more.
    pub(crate) late: usize,
    pub(crate) published: usize,
    /// How often the work was done.
    pub(crate) runs: usize,
    /// The effects of it, for a supplier that knows repeats by their ids.
    pub(crate) effects: BTreeSet<String>,
}

impl Round {
    pub(crate) async fn new(site: Arc<Site>, point: Point, key: String) -> Self {
        let (store, supplier) = (site.store(), Supplier::start().await);
        let publisher = Arc::new(Topic(work::address(&supplier.url("/"))));
        Self { site, point, key, store, supplier, publisher, came: Came::default() }
    }

    /// Plays it to the end of its task.
    pub(crate) async fn play(mut self, totals: &Totals) -> Came {
        let point = self.point;
        let accepted = if point.is_of_submission() {
            self.kill_the_submitter(totals).await
        } else {
            self.kill_the_worker(totals).await
        };
        let over = self.accepted(Instant::now()).await;
        assert!(over.duplicate, "what is over is replayed: {over:?}");
        for task in [over.task, self.task(accepted.task.task_id).await] {
            assert_eq!((task.task_id, task.state), (accepted.task.task_id, TaskState::Completed));
        }
        let effects = work::effects(&self.supplier);
        self.came.published = work::pushes(&self.supplier).len();
        self.came.runs = effects.len();
        self.came.effects = effects.into_iter().collect();
        self.came
    }

    /// The submission dies; its caller submits again at once, and until it is accepted. Then all that was
    /// published is worked on.
    async fn kill_the_submitter(&mut self, totals: &Totals) -> Submitted {
        let submitter = Role::Submitter { key: &self.key };
        let mut submitter = submitter.start(&self.site, &self.supplier.url("/"), Some(self.point));
        submitter.await_log(PATIENCE, &self.point.announcement()).await;
        totals.reached(self.site.name, self.point);
        submitter.kill_9().await;

        let accepted = self.accepted(Instant::now() + CREATING_LEASE + self.coarse()).await;
        assert!(!accepted.duplicate, "nobody has worked on it yet: {accepted:?}");
        let worker = work::worker(self.store.clone(), work::address(&self.supplier.url("/")));
        let pushes = work::pushes(&self.supplier);
        assert_eq!(pushes.len(), if self.point == Point::AfterPublish { 2 } else { 1 });
        for (number, push) in pushes.iter().enumerate() {
            let outcome = push.send(&worker).await.outcome;
            assert_eq!(outcome, Some(if number == 0 { Outcome::Ran } else { Outcome::Duplicate }));
        }
        accepted
    }

    /// The worker dies; the message is delivered again to another.
    async fn kill_the_worker(&mut self, totals: &Totals) -> Submitted {
        let accepted = self.accepted(Instant::now()).await;
        let push: Push = work::pushes(&self.supplier).remove(0);
        let mut worker = Role::Worker.start(&self.site, &self.supplier.url("/"), Some(self.point));
        let to = client::local(program::port(&worker).await);
        let delivery = client::send_in_background(to, push.request());
        worker.await_log(PATIENCE, &self.point.announcement()).await;
        totals.reached(self.site.name, self.point);
        worker.kill_9().await;
        assert!(delivery.answer().await.is_err(), "the worker is dead");

        let id = accepted.task.task_id;
        let work = (CONSUMER, id.to_string()).into_key().unwrap();
        assert_eq!(self.store.read(&work).await.unwrap().unwrap().record.state, State::Done);
        let moved = self.point == Point::BetweenMoves;
        let state = if moved { TaskState::Completed } else { TaskState::Processing };
        assert_eq!(self.task(id).await.state, state);
        match self.submit().await {
            Ok(replayed) if moved => assert!(replayed.duplicate),
            Err(SubmitError::InProgress { .. }) if !moved => self.came.kept_out += 1,
            told => panic!("{told:?}"),
        }
        let worker = work::worker(self.store.clone(), work::address(&self.supplier.url("/")));
        assert_eq!(push.send(&worker).await.outcome, Some(Outcome::Duplicate));
        accepted
    }

    /// Submits until it is accepted. From then on nobody is to be kept out.
    async fn accepted(&mut self, free: Instant) -> Submitted {
        let accepted = async {
            loop {
                let begun = Instant::now();
                match self.submit().await {
                    Ok(submitted) => return submitted,
                    Err(SubmitError::InProgress { .. }) if begun >= free => self.came.late += 1,
                    Err(SubmitError::InProgress { .. }) => self.came.kept_out += 1,
                    Err(error) => panic!("{error:?}"),
                }
                pause().await;
            }
        };
        tokio::time::timeout(PATIENCE, accepted).await.expect("a key whose submitter is dead is free again")
    }

    async fn submit(&mut self) -> Result<Submitted, SubmitError> {
        let told = work::submit(self.store.clone(), self.publisher.clone(), "", &self.key).await;
        self.came.ids.extend(match &told {
            Ok(submitted) => Some(submitted.task.task_id),
            Err(SubmitError::InProgress { task_id, .. }) => Some(*task_id),
            Err(_) => None,
        });
        told
    }

    async fn task(&self, id: TaskId) -> pushonce::submit::Task {
        Tasks::new(self.store.clone()).get(id).await.unwrap().expect("its record")
    }

    /// By how much an age may be told shorter than it is: the time of an object is in whole seconds.
    fn coarse(&self) -> Duration {
        Duration::from_secs(if matches!(self.site.name, "s3" | "fake-gcs") { 2 } else { 0 })
    }
}
