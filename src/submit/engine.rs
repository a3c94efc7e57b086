//! The way of a submission: its key, its task, its message, and the move to processing.

use std::pin::pin;
use std::time::Duration;

use super::key_record::{self, Ask, KeyRecord, Met, age};
use super::submission::{Submission, Submitted};
use super::submitter::Settings;
use super::{InvalidSubmission, SubmitError, Task, TaskId, TaskState, task_record};
use crate::key::spaces;
use crate::lease::{Amend, First, Place};
use crate::publish::{Message, PublishError};
use crate::random;
use crate::store::record::{Record, State};
use crate::store::{StoreError, Stored};
use crate::time::{Stopwatch, micros, within};

/// What a caller is told to wait that meets a task in progress.
const PROCESSING_RETRY: Duration = Duration::from_secs(5);

pub(super) async fn send(submission: Submission) -> Result<Submitted, SubmitError> {
    let settings = submission.submitter.0.clone();
    let overload = settings.backpressure.as_ref().and_then(|hook| hook(submission.queue.as_deref()));
    let task = task(&submission, &settings);
    match (&task.idempotency_key, overload) {
        (Some(_), None) => Keyed::of(&submission, &settings, task)?.send().await,
        (Some(_), Some(overload)) => {
            Keyed::of(&submission, &settings, task)?.replay().await?.ok_or(SubmitError::Overloaded(overload))
        }
        (None, Some(overload)) => Err(SubmitError::Overloaded(overload)),
        (None, None) => {
            let task = Task { state: TaskState::Processing, ..task };
            record(&submission, &settings, &task).await?;
            publish(&submission, &settings, &task).await?;
            Ok(Submitted { task, duplicate: false })
        }
    }
}

/// The task as it would be new.
fn task(submission: &Submission, settings: &Settings) -> Task {
    let now = task_record::time(micros(settings.clock.wall()));
    let scope = || submission.scope.text(&submission.task_type, submission.tenant.as_deref());
    Task {
        task_id: TaskId::new(&*settings.clock),
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

/// A submission with a key.
struct Keyed<'a> {
    submission: &'a Submission,
    settings: &'a Settings,
    place: Place,
    task: Task,
    ask: Ask,
}

impl<'a> Keyed<'a> {
    fn of(submission: &'a Submission, settings: &'a Settings, task: Task) -> Result<Self, SubmitError> {
        let (scope, key) =
            (task.scope.clone().unwrap_or_default(), task.idempotency_key.clone().unwrap_or_default());
        let named = key_record::place_of(&scope, &key);
        let stored = named.map_err(|_| InvalidSubmission::Key { problem: "is blank" })?;
        let place = Place { store: settings.store.clone(), key: stored, clock: settings.clock.clone() };
        let new = KeyRecord {
            key_hash: KeyRecord::hash(&scope, &key),
            key,
            scope,
            task_id: task.task_id,
            task_key: spaces::task(&task.task_id.to_string()),
            task_type: task.task_type.clone(),
            input_hash: submission.input_hash.clone()?,
            state: TaskState::Creating,
            why: None,
            queue: task.queue.clone(),
            tenant: task.tenant.clone(),
            created_at: task.created_at,
            updated_at: task.updated_at,
            expires_at: task.created_at + submission.ttl,
        };
        let (creating_lease, ttl) = (settings.creating_lease, submission.ttl);
        let ask = Ask { new, me: random::id(), creating_lease, ttl, gone: None };
        Ok(Self { submission, settings, place, task, ask })
    }

    async fn send(mut self) -> Result<Submitted, SubmitError> {
        let mut first = First::Nothing;
        // A task that is gone makes its key free once, not again and again.
        loop {
            let since = Stopwatch::start(&self.settings.clock);
            let met = self.place.amend(first, |standing, stamp| self.ask.decide(standing, stamp)).await?;
            let (found, read, stands) = match (met.value, met.stands) {
                (Met::Mine(found), Some(stands)) => return self.create(found, stands, since).await,
                (Met::Submitted(found), Some(stands)) => (found, met.read, stands),
                (Met::Creating { task_id, left }, _) => {
                    return Err(SubmitError::InProgress { task_id, retry_after: left });
                }
                (Met::Conflict, _) => return Err(SubmitError::Conflict),
                (Met::Mine(_) | Met::Submitted(_), None) => return Err(vanished().into()),
            };
            // Where the store had to be read the two trips of a replay are spent, and the key's record
            // says all. One that is not over would keep its callers out, so its task is looked for always.
            if read && found.state.is_terminal() {
                return Ok(replayed(found.task()));
            }
            match self.settled(&found).await? {
                Some(answer) => return answer,
                None if self.ask.gone.is_none() => {
                    self.ask.gone = Some(found.task_id);
                    first = First::Is(stands);
                }
                None => return Err(vanished().into()),
            }
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
            Some(Met::Creating { task_id, left }) => {
                Err(SubmitError::InProgress { task_id, retry_after: left })
            }
            Some(Met::Conflict) => Err(SubmitError::Conflict),
            Some(Met::Mine(_)) | None => Ok(None),
        }
    }

    /// The answer that the task of a submitted key gives; `None` where its record is gone.
    async fn settled(
        &self,
        found: &KeyRecord,
    ) -> Result<Option<Result<Submitted, SubmitError>>, SubmitError> {
        let task = self.settings.tasks().get(found.task_id).await?;
        Ok(task.map(|task| {
            if task.state.is_terminal() {
                Ok(replayed(task))
            } else {
                Err(SubmitError::InProgress { task_id: task.task_id, retry_after: PROCESSING_RETRY })
            }
        }))
    }

    /// Makes the task that the key names.
    async fn create(
        mut self,
        found: KeyRecord,
        stands: Stored,
        since: Stopwatch,
    ) -> Result<Submitted, SubmitError> {
        self.task = Task { task_id: found.task_id, created_at: found.created_at, ..self.task };
        let task = record(self.submission, self.settings, &self.task).await?;
        // Taken over from a submission that crashed, whose message came through and was worked on.
        let over = task.state.is_terminal();
        if !over && let Err(error) = publish(self.submission, self.settings, &task).await {
            self.give_back(stands).await;
            return Err(error);
        }
        let aged = Stored { age: since.elapsed(), ..stands };
        let to = if over { task.state } else { TaskState::Processing };
        let moved = self.place.amend(First::Is(aged), |standing, stamp| {
            let Some(stored) = standing else { return Ok(Amend::Leave(to)) };
            let stood = KeyRecord::of(&stored.record)?;
            // The worker may have been faster, or another submission has taken over.
            if stood.task_id != task.task_id || stood.state != TaskState::Creating {
                return Ok(Amend::Leave(stood.state));
            }
            Ok(Amend::Write(Box::new(KeyRecord::moved(stored, to, task.why, stamp)?), to))
        });
        let state = match moved.await {
            Ok(moved) => moved.value,
            // It is published, and that is the answer. A retry takes the key over, with the same task.
            Err(error) => {
                tracing::warn!(task_id = %task.task_id, error = crate::chain::chain(&error), "a submitted task's key is not moved to processing");
                to
            }
        };
        if over {
            return Ok(replayed(task));
        }
        Ok(Submitted { task: Task { state, ..task }, duplicate: false })
    }

    /// Lets the next submission of the key take over at once.
    async fn give_back(&self, stands: Stored) {
        let me = self.ask.me;
        let given = self.place.amend(First::Is(stands), |standing, stamp| {
            let Some(stored) = standing else { return Ok(Amend::Leave(())) };
            if stored.record.holder != Some(me) || stored.record.state != State::Claimed {
                return Ok(Amend::Leave(()));
            }
            let aged = age(stored);
            let record = Record { state: State::Released, aged, ..stored.record.clone() };
            Ok(Amend::Write(Box::new(record.stamped(stamp)), ()))
        });
        if let Err(error) = given.await {
            tracing::warn!(
                error = crate::chain::chain(&error),
                "the key of a task that was not published is not given back: it is taken over after its creating-lease"
            );
        }
    }
}

fn replayed(task: Task) -> Submitted {
    Submitted { task, duplicate: true }
}

fn vanished() -> StoreError {
    StoreError::unavailable("the record of the key, or of its task, vanished while it was looked at")
}

/// Writes the task's record, unless it stands.
async fn record(submission: &Submission, settings: &Settings, task: &Task) -> Result<Task, SubmitError> {
    let least = submission.ttl.saturating_add(settings.creating_lease);
    let late = submission.run_within.map_or(Duration::ZERO, |limit| limit.saturating_add(settings.task_ttl));
    let ttl = settings.task_ttl.max(least).max(late);
    let place = task_record::place(&settings.store, &settings.clock, task.task_id)
        .map_err(|error| StoreError::Refused { what: error.to_string(), source: None })?;
    let made = place.amend(First::Nothing, |standing, stamp| task_record::create(task, ttl, standing, stamp));
    Ok(made.await?.value)
}

async fn publish(submission: &Submission, settings: &Settings, task: &Task) -> Result<(), SubmitError> {
    let topic = task.queue.as_ref().and_then(|queue| settings.queues.get(queue)).unwrap_or(&settings.topic);
    let mut message = Message {
        data: submission.payload.clone(),
        attributes: submission.attributes.clone(),
        ordering_key: submission.ordering_key.clone(),
    };
    let ours = [
        ("task-id", Some(task.task_id.to_string())),
        ("task-type", Some(task.task_type.clone())),
        ("task-scope", task.scope.clone()),
        ("idempotency-key", task.idempotency_key.clone()),
        ("googclient_traceparent", submission.traceparent.clone()),
    ];
    let ours = ours.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    message.attributes.extend(ours);
    let limit = settings.publish_timeout;
    let published = within(limit, pin!(settings.publisher.publish(topic, &message))).await;
    let failed = match published {
        Some(Ok(_)) => return Ok(()),
        Some(Err(error)) => error,
        None => PublishError::Unanswered { what: format!("no answer within {limit:?}"), source: None },
    };
    Err(SubmitError::Publish { task_id: task.task_id, keyed: task.idempotency_key.is_some(), source: failed })
}
