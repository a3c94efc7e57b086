//! Writes and answers that are lost at each step of a submission: one key, one task, whatever is retried.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pushonce::idempotent::{End, Follow as _};
use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::submit::SubmitError;
use pushonce::testing::TokioClock;

use crate::world::{Answer, Fault as Publishing, World, in_progress, replayed};

/// A world on paused time, and its faults.
fn world() -> (World, Arc<Chaos>) {
    chaotic(0, 0.0)
}

fn chaotic(seed: u64, share: f64) -> (World, Arc<Chaos>) {
    let clock = Arc::new(TokioClock::new());
    let chaos = Chaos::random(Arc::new(Memory::with_clock(clock.clone())), seed, share);
    let world = World::on(chaos.clone()).with(|submitter| submitter.clock(clock.clone()));
    (world, chaos)
}

/// A step of a submission, as the store sees it.
#[derive(Debug, Clone, Copy)]
enum Step {
    Key,
    Task,
    Move,
}

impl Step {
    fn fail(self, chaos: &Chaos, fault: Fault, times: usize) {
        if matches!(self, Self::Move) {
            // The task's record is the first that is done: it is let through.
            chaos.next(On::Complete, Fault::Stall(Duration::ZERO));
        }
        for _ in 0..times {
            chaos.next(if matches!(self, Self::Key) { On::Claim } else { On::Complete }, fault);
        }
    }
}

const STEPS: [Step; 3] = [Step::Key, Step::Task, Step::Move];
const LATE: Duration = Duration::from_secs(2);
const FAULTS: [Fault; 5] = [
    Fault::LoseBefore,
    Fault::LoseAnswer,
    Fault::Late(LATE),
    Fault::Fail,
    // Longer than a call may take.
    Fault::Stall(Duration::from_secs(8)),
];

#[tokio::test(start_paused = true)]
async fn a_fault_at_any_step_is_retried_and_there_is_one_task_and_one_message() {
    for step in STEPS {
        for fault in FAULTS {
            for times in [1, 3] {
                let (world, chaos) = world();
                step.fail(&chaos, fault, times);
                let made = world.charge("k").send().await.unwrap();
                assert!(!made.duplicate && (times > 1 || !chaos.has_next()), "{step:?} {fault:?}");
                chaos.heal();
                let id = made.task.task_id;
                // What is late has landed.
                tokio::time::sleep(2 * LATE).await;
                assert_eq!(in_progress(&world.charge("k").send().await), Some(id), "{step:?} {fault:?}");
                world.submitter.tasks().ended(&id.to_string(), End::Completed).await.unwrap();
                assert_eq!(replayed(&world.charge("k").send().await), Some(id), "{step:?} {fault:?}");
                assert_eq!(world.publisher.tasks(), [id], "{step:?} {fault:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_before_the_publish_publishes_nothing_and_a_retry_submits_at_once() {
    for step in [Step::Key, Step::Task] {
        for fault in [Fault::LoseBefore, Fault::Fail, Fault::Refuse] {
            let (world, chaos) = world();
            chaos.always(if matches!(step, Step::Key) { On::Claim } else { On::Complete }, fault);
            let failed = world.charge("k").send().await;
            assert!(matches!(failed, Err(SubmitError::Store(_))), "{step:?} {fault:?}: {failed:?}");
            assert_eq!(world.publisher.tasks(), []);
            chaos.heal();
            let id = world.submitted("k").await;
            assert_eq!(world.publisher.tasks(), [id], "{step:?} {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_says_that_a_write_may_have_landed_also_where_later_tries_failed_for_certain() {
    for (first, expected) in [(Fault::LoseBefore, true), (Fault::Late(LATE), true), (Fault::Fail, false)] {
        let (world, chaos) = world();
        chaos.next(On::Claim, first);
        chaos.always(On::Claim, Fault::Fail);
        // Nothing else is late enough to be found by a read.
        chaos.always(On::Read, Fault::Fail);
        let Err(SubmitError::Store(error)) = world.charge("k").send().await else { panic!("{first:?}") };
        assert_eq!(
            (error.is_transient(), error.may_have_written()),
            (true, expected),
            "{first:?}: {error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_after_the_publish_is_a_success_and_the_key_is_taken_over_with_the_same_task() {
    for fault in [Fault::LoseBefore, Fault::Fail, Fault::Refuse] {
        let (world, chaos) = world();
        // For as long as the move is tried.
        Step::Move.fail(&chaos, fault, 24);
        let id = world.submitted("k").await;
        chaos.heal();
        assert_eq!(in_progress(&world.charge("k").send().await), Some(id), "{fault:?}");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(world.submitted("k").await, id, "{fault:?}");
        // The worker drops the copy by the task's id.
        assert_eq!(world.publisher.tasks(), [id, id], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_given_back_is_free_after_its_creating_lease() {
    let (world, chaos) = world();
    chaos.always(On::Release, Fault::Fail);
    world.publisher.next(Publishing::Unavailable);
    let Err(SubmitError::Publish { task_id, .. }) = world.charge("k").send().await else { panic!() };
    chaos.heal();
    assert_eq!(in_progress(&world.charge("k").send().await), Some(task_id));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.submitted("k").await, task_id);
}

/// The task that an answer names, if it names one.
fn named(answer: &Answer) -> Option<String> {
    match answer {
        Ok(submitted) => Some(submitted.task.task_id),
        Err(SubmitError::InProgress { task_id, .. } | SubmitError::Publish { task_id, .. }) => Some(*task_id),
        Err(SubmitError::Store(error)) if error.is_transient() => None,
        Err(error) => panic!("{error:?}"),
    }
    .map(|id| id.to_string())
}

#[tokio::test(start_paused = true)]
async fn whatever_is_drawn_a_key_has_one_task() {
    let (mut failed, mut taken_over) = (0, 0);
    for seed in 0..300 {
        let (world, chaos) = chaotic(seed, 0.6);
        let mut ids = BTreeSet::new();
        for round in 0..4 {
            if round == 0 && seed % 2 == 0 {
                world.publisher.next(Publishing::Unanswered);
            }
            let answers = join_all((0..3).map(|_| world.charge("k").send())).await;
            failed += answers.iter().filter(|answer| matches!(answer, Err(SubmitError::Store(_)))).count();
            ids.extend(answers.iter().filter_map(named));
            tokio::time::sleep(Duration::from_secs(11)).await;
        }
        ids.extend(world.publisher.tasks().iter().map(ToString::to_string));
        assert!(ids.len() <= 1, "seed {seed}: {ids:?}");
        taken_over += usize::from(world.publisher.tasks().len() > 1);
        chaos.heal();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let last = world.charge("k").send().await;
        ids.extend(named(&last));
        assert_eq!(ids.len(), 1, "seed {seed}: {ids:?} {last:?}");
        let id = ids.pop_first().unwrap();
        assert!(!world.publisher.tasks().is_empty(), "seed {seed}");
        world.submitter.tasks().ended(&id, End::Completed).await.unwrap();
        assert_eq!(
            replayed(&world.charge("k").send().await).map(|id| id.to_string()),
            Some(id),
            "seed {seed}"
        );
    }
    assert!(failed > 0 && taken_over > 0, "nothing went wrong: {failed} {taken_over}");
}
