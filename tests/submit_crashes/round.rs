//! One round: a key whose submission, or whose work, is killed at a point, and what all the others make of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use pushonce::store::record::State;
use pushonce::submit::{SubmitError, Submitted, Task, TaskId, TaskState, Tasks};
use pushonce::{IntoKey as _, Outcome, Store};

use crate::caller::{Caller, Told};
use crate::point::Point;
use crate::program::{self, Role};
use crate::site::Site;
use crate::supplier::Supplier;
use crate::totals::Totals;
use crate::work::{self, CONSUMER, Topic};
use crate::{PATIENCE, client};

/// A key on a store, with a topic and a supplier that nobody else has.
pub(crate) struct Round {
    site: Arc<Site>,
    point: Point,
    store: Arc<dyn Store>,
    supplier: Supplier,
    caller: Caller,
}

/// What came of a round.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) told: Told,
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
        let caller = Caller {
            store: store.clone(),
            publisher,
            topic: work::TOPIC.to_owned(),
            key,
            told: Told::default(),
        };
        Self { site, point, store, supplier, caller }
    }

    /// Plays it to the end of its task.
    pub(crate) async fn play(mut self, totals: &Totals) -> Came {
        let accepted = if self.point.is_of_submission() {
            self.kill_the_submitter(totals).await
        } else {
            self.kill_the_worker(totals).await
        };
        let over = self.caller.accepted(Instant::now()).await;
        assert!(over.duplicate, "what is over is replayed: {over:?}");
        for task in [over.task, self.task(accepted.task.task_id).await] {
            assert_eq!((task.task_id, task.state), (accepted.task.task_id, TaskState::Completed));
        }
        let effects = work::effects(&self.supplier);
        Came {
            told: self.caller.told,
            published: work::pushes(&self.supplier).len(),
            runs: effects.len(),
            effects: effects.into_iter().collect(),
        }
    }

    /// The submission dies; its caller submits again at once, and until it is accepted. Then all that was
    /// published is worked on.
    async fn kill_the_submitter(&mut self, totals: &Totals) -> Submitted {
        let submitter = Role::Submitter { key: &self.caller.key };
        let mut submitter = submitter.start(&self.site, &self.supplier.url("/"), Some(self.point));
        submitter.await_log(PATIENCE, &self.point.announcement()).await;
        totals.reached(self.site.name, self.point);
        submitter.kill_9().await;

        let accepted = self.caller.accepted(work::free(&self.site)).await;
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
        let accepted = self.caller.accepted(Instant::now()).await;
        let push = work::pushes(&self.supplier).remove(0);
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
        match self.caller.submit().await {
            Ok(replayed) if moved => assert!(replayed.duplicate),
            Err(SubmitError::InProgress { .. }) if !moved => self.caller.told.early += 1,
            told => panic!("{told:?}"),
        }
        let worker = work::worker(self.store.clone(), work::address(&self.supplier.url("/")));
        assert_eq!(push.send(&worker).await.outcome, Some(Outcome::Duplicate));
        accepted
    }

    async fn task(&self, id: TaskId) -> Task {
        Tasks::new(self.store.clone()).get(id).await.unwrap().expect("its record")
    }
}
