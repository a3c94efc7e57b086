//! One fault of a whole server, met by all cells of a column at once: each at its own call.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::faults::Fault;
use super::rows::Row;

/// Far beyond what a step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many cells have come how far.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Of those whose call comes late by itself, for which the others wait before they begin.
    slow: usize,
    at_the_call: usize,
    answered: usize,
}

/// Leads the cells of one column.
#[derive(Debug)]
pub(crate) struct Column {
    fault: Fault,
    count: watch::Sender<Count>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Preparing,
    Begun,
    Struck,
}

impl Column {
    pub(crate) fn of(fault: Fault) -> Arc<Self> {
        Arc::new(Self { fault, count: watch::Sender::default(), stage: watch::Sender::new(Stage::Preparing) })
    }

    /// A place in it.
    pub(crate) fn seat(self: &Arc<Self>, row: Row) -> Seat {
        Seat { column: self.clone(), row }
    }

    /// Whether the step has its answer while the fault lasts. A renewal is tried for as long as the lease
    /// lasts; and what tries six times waits six times where nothing answers.
    fn answers(&self, row: Row) -> bool {
        let outlasts = self.fault == Fault::Stalled && row.is_patient();
        !row.is_slow() && !outlasts
    }

    /// Waits until all cells are at their calls: first the slow ones, then those that begin only now.
    pub(crate) async fn at_the_call(&self) {
        let slow = Row::ALL.iter().filter(|row| row.is_slow()).count();
        self.until(|count| count.slow == slow).await;
        self.stage.send_replace(Stage::Begun);
        self.until(|count| count.at_the_call == Row::ALL.len()).await;
    }

    /// The fault is there: the calls go into it.
    pub(crate) fn strike(&self) {
        self.stage.send_replace(Stage::Struck);
    }

    /// Waits until the cells have their answers that have one while the fault lasts.
    pub(crate) async fn answered(&self) {
        let all = Row::ALL.iter().filter(|row| self.answers(**row)).count();
        self.until(|count| count.answered == all).await;
    }

    async fn until(&self, all: impl FnMut(&Count) -> bool) {
        let mut count = self.count.subscribe();
        // A cell that has failed never comes. It tells so itself; the others get on.
        let _ = tokio::time::timeout(PATIENCE, count.wait_for(all)).await;
    }

    async fn reach(&self, stage: Stage) {
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }
}

/// One cell's place in its column.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    column: Arc<Column>,
    row: Row,
}

impl Seat {
    /// Waits until the step may begin whose call is to meet the fault.
    pub(crate) async fn ready(&self) {
        if !self.row.is_slow() {
            self.column.reach(Stage::Begun).await;
        }
    }

    /// At the call: waits until the fault is there.
    pub(crate) async fn strike(&self) {
        self.column.count.send_modify(|count| {
            count.slow += usize::from(self.row.is_slow());
            count.at_the_call += 1;
        });
        self.column.reach(Stage::Struck).await;
    }

    /// The step has its answer.
    pub(crate) fn answered(&self) {
        if self.column.answers(self.row) {
            self.column.count.send_modify(|count| count.answered += 1);
        }
    }
}
