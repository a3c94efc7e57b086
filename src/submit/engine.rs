//! The way of a submission: its key, its task, its message, and the move to processing.

use std::time::Duration;

use super::key_record::{self, Ask, KeyRecord, Met, age};
use super::message::publish;
use super::submission::{Submission, Submitted};
use super::{SubmitError, Task, TaskId, TaskState, task_record};
use crate::chain::chain_about;
use crate::key::{Key, KeyInLogs};
use crate::lease::{Amend, First, Place};
use crate::random;
use crate::store::record::{Record, State};
use crate::store::{StoreError, Stored};
use crate::time::{Stopwatch, micros};

/// What a caller is told to wait that meets a task in progress.
const PROCESSING_RETRY: Duration = Duration::from_secs(5);
/// How often the key of a published task is tried to be moved on: for longer than the second in which Google
/// Cloud Storage takes no other write of an object.
const MOVES: u32 = 4;

pub(super) async fn send(submission: Submission) -> Result<Submitted, SubmitError> {
    let hook = submission.submitter.0.backpressure.as_ref();
    let overload = hook.and_then(|hook| hook(submission.queue.as_deref())).map(SubmitError::Overloaded);
    let task = task(&submission);
    match (&task.idempotency_key, overload) {
        (Some(_), None) => Keyed::of(&submission, task)?.send().await,
        (Some(_), Some(overload)) => Keyed::of(&submission, task)?.replay().await?.ok_or(overload),
        (None, Some(overload)) => Err(overload),
        (None, None) => Ok(Submitted { task: make(&submission, &task).await?, duplicate: false }),
    }
}

/// The task as it would be new. Its record says processing from the start: what its key's record says
/// of its creation costs no third write of its own.
fn task(submission: &Submission) -> Task {
    let clock = &submission.submitter.0.clock;
    let now = task_record::time(micros(clock.wall()));
    let scope = || submission.scope.text(&submission.task_type, submission.tenant.as_deref());
    Task {
        task_id: TaskId::new(&**clock),
        task_type: submission.task_type.clone(),
        state: TaskState::Processing,
        why: None,
        queue: submission.queue.clone(),
        tenant: submission.tenant.clone(),
        scope: submission.key.as_ref().map(|_| scope()),
        idempotency_key: submission.key.clone(),
        created_at: now,
        updated_at: now,
        run_before: submission.run_within.map(|limit| now + limit),
    }
}

/// Records the task, and publishes its message. A task that is over was taken over from a submission
/// that crashed, whose message came through.
async fn make(submission: &Submission, task: &Task) -> Result<Task, SubmitError> {
    let settings = &submission.submitter.0;
    // Not before the key that names it, nor before its own time to begin.
    let keyed = submission.ttl.saturating_add(settings.creating_lease);
    let late = submission.run_within.map_or(Duration::ZERO, |limit| limit.saturating_add(settings.task_ttl));
    let ttl = settings.task_ttl.max(keyed).max(late);
    let place = task_record::place(&settings.store, &settings.clock, task.task_id)?;
    let made = place.amend(First::Nothing, |standing, stamp| task_record::create(task, ttl, standing, stamp));
    let task = made.await?.value;
    if !task.state.is_terminal() {
        publish(submission, &task).await?;
    }
    Ok(task)
}

/// A submission with a key.
struct Keyed<'a> {
    submission: &'a Submission,
    place: Place,
    task: Task,
    ask: Ask,
}

impl<'a> Keyed<'a> {
    fn of(submission: &'a Submission, task: Task) -> Result<Self, SubmitError> {
        let settings = &submission.submitter.0;
        let new = KeyRecord::new(&task, submission.input_hash.clone()?, submission.ttl);
        let place = key_record::place(&settings.store, &settings.clock, &new.scope, &new.key)?;
        let (creating_lease, ttl) = (settings.creating_lease, submission.ttl);
        let ask = Ask { new, me: random::id(), creating_lease, ttl, gone: None };
        Ok(Self { submission, place, task, ask })
    }

    async fn send(mut self) -> Result<Submitted, SubmitError> {
        let mut first = First::Nothing;
        // A task that is gone makes its key free once, not again and again.
        loop {
            let met = self.place.amend(first, |standing, stamp| self.ask.decide(standing, stamp)).await?;
            let since = Stopwatch::start(&self.place.clock);
            let stands = met.stands.ok_or_else(vanished)?;
            let found = match met.value {
                Met::Mine(found) => return self.create(found, stands, since).await,
                Met::Submitted(found) => found,
                Met::Refused(refused) => return Err(refused),
            };
            // Where the store had to be read the two trips of a replay are spent, and the key's record
            // says all. One that is not over would keep its callers out, so its task is looked for always.
            if met.read && found.state.is_terminal() {
                return Ok(Submitted { task: found.task(), duplicate: true });
            }
            if let Some(answer) = self.settled(&found).await? {
                return answer;
            }
            if self.ask.gone.replace(found.task_id).is_some() {
                return Err(vanished().into());
            }
            first = First::Is(stands);
        }
    }

    /// What stands, if it is an answer; nothing is written.
    async fn replay(self) -> Result<Option<Submitted>, SubmitError> {
        let looked = self.place.amend(First::Unread, |standing, stamp| {
            Ok(Amend::Leave(match self.ask.decide(standing, stamp)? {
                Amend::Leave(met) => Some(met),
                Amend::Write(..) => None,
            }))
        });
        match looked.await?.value {
            Some(Met::Submitted(found)) => self.settled(&found).await?.transpose(),
            Some(Met::Refused(refused)) => Err(refused),
            Some(Met::Mine(_)) | None => Ok(None),
        }
    }

    /// The answer that the task of a submitted key gives; `None` where its record is gone.
    async fn settled(
        &self,
        found: &KeyRecord,
    ) -> Result<Option<Result<Submitted, SubmitError>>, SubmitError> {
        let task = self.submission.submitter.tasks().get(found.task_id).await?;
        Ok(task.map(|task| {
            if task.state.is_terminal() {
                Ok(Submitted { task, duplicate: true })
            } else {
                Err(SubmitError::InProgress { task_id: task.task_id, retry_after: PROCESSING_RETRY })
            }
        }))
    }

    /// Makes the task that the key names.
    async fn create(
        self,
        found: KeyRecord,
        stands: Stored,
        since: Stopwatch,
    ) -> Result<Submitted, SubmitError> {
        let task = Task { task_id: found.task_id, created_at: found.created_at, ..self.task.clone() };
        let made = make(self.submission, &task).await;
        // Steadily counted: a wall clock that was set forward must not end the key's window.
        let stands = Stored { age: stands.age.saturating_add(since.steady()), ..stands };
        match made {
            Ok(task) => Ok(self.made(task, stands).await),
            Err(error) => {
                self.give_back(stands).await;
                Err(error)
            }
        }
    }

    /// Moves the key on from its creation, unless somebody has: the task's worker, or a submission that
    /// has taken over meanwhile.
    async fn made(&self, task: Task, stands: Stored) -> Submitted {
        let decide = |standing: Option<&Stored>, stamp| {
            let Some(stored) = standing else { return Ok(Amend::Leave(task.clone())) };
            let stood = KeyRecord::of(&stored.record)?;
            if stood.task_id != task.task_id {
                return Ok(Amend::Leave(task.clone()));
            }
            if stood.state != TaskState::Creating {
                return Ok(Amend::Leave(Task { state: stood.state, why: stood.why, ..task.clone() }));
            }
            Ok(Amend::Write(Box::new(KeyRecord::moved(stored, task.state, task.why, stamp)?), task.clone()))
        };
        let mut moved = self.place.amend(First::Is(stands), decide).await;
        for _ in 1..MOVES {
            if !moved.as_ref().is_err_and(StoreError::is_transient) {
                break;
            }
            moved = self.place.amend(First::Unread, decide).await;
        }
        let duplicate = task.state.is_terminal();
        match moved {
            Ok(moved) => Submitted { task: moved.value, duplicate },
            // It is published, and that is the answer. A retry takes the key over, with the same task.
            Err(error) => {
                let (task_id, error) = (task.task_id, chain_about(&self.quiet(), &error));
                tracing::warn!(%task_id, error, "the key of a submitted task is not moved on from its creation");
                Submitted { task, duplicate }
            }
        }
    }

    /// The key, for a log: its text is the caller's.
    fn quiet(&self) -> Key {
        self.place.key.clone().in_logs(KeyInLogs::Hashed)
    }

    /// Lets the next submission of the key take over at once.
    async fn give_back(&self, stands: Stored) {
        let given = self.place.amend(First::Is(stands), |standing, stamp| {
            let mine = |stored: &&Stored| {
                stored.record.holder == Some(self.ask.me) && stored.record.state == State::Claimed
            };
            let Some(stored) = standing.filter(mine) else { return Ok(Amend::Leave(())) };
            let next = Record { state: State::Released, aged: age(stored), ..stored.record.clone() };
            Ok(Amend::Write(Box::new(next.stamped(stamp)), ()))
        });
        if let Err(error) = given.await {
            let error = chain_about(&self.quiet(), &error);
            tracing::warn!(
                error,
                "the key of a task that is not known to be published is held for its creating-lease"
            );
        }
    }
}

fn vanished() -> StoreError {
    StoreError::unavailable("the record of the key, or of its task, vanished while it was looked at")
}
