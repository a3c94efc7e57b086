//! Many submissions of one key at once, on every store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pushonce::submit::Submitter;
use serde_json::json;

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{Counted, World, eventually, in_progress, is_conflict};

const AT_ONCE: usize = 64;
/// Each with connections of its own, as instances have.
const STORES: usize = 4;

on_servers! {
    all {
        of_64_submissions_of_one_key_one_makes_the_task_and_publishes_it
        of_64_submissions_of_one_key_with_64_inputs_63_are_conflicts
        of_two_that_race_for_a_take_over_both_have_the_same_task
    }
}

/// Submitters of stores of their own and one publisher.
fn submitters(site: &Site, publisher: &Arc<Counted>) -> Vec<Submitter> {
    (0..STORES).map(|_| Submitter::new(site.store(), publisher.clone(), "tasks")).collect()
}

async fn of_64_submissions_of_one_key_one_makes_the_task_and_publishes_it(site: &Site) {
    let publisher = Arc::new(Counted::default());
    let submitters = submitters(site, &publisher);
    let submit = |at: usize| submitters[at % STORES].submit("charge", &json!(1)).idempotency_key("k").send();
    let answers = join_all((0..AT_ONCE).map(submit)).await;
    let [made] = answers.iter().flatten().collect::<Vec<_>>()[..] else { panic!("not one: {answers:?}") };
    assert!(!made.duplicate);
    let id = made.task.task_id;
    assert_eq!(answers.iter().filter(|answer| in_progress(answer) == Some(id)).count(), 63, "{answers:?}");
    assert_eq!(publisher.tasks(), [id]);
}

async fn of_64_submissions_of_one_key_with_64_inputs_63_are_conflicts(site: &Site) {
    let publisher = Arc::new(Counted::default());
    let submitters = submitters(site, &publisher);
    let submit = |at: usize| submitters[at % STORES].submit("charge", &json!(at)).idempotency_key("k").send();
    let answers = join_all((0..AT_ONCE).map(submit)).await;
    let [made] = answers.iter().flatten().collect::<Vec<_>>()[..] else { panic!("not one: {answers:?}") };
    assert_eq!(answers.iter().filter(|answer| is_conflict(answer)).count(), 63, "{answers:?}");
    assert_eq!(publisher.tasks(), [made.task.task_id]);
}

async fn of_two_that_race_for_a_take_over_both_have_the_same_task(site: &Site) {
    let crashed = World::on(site.store()).with(|submitter| submitter.creating_lease(Duration::from_secs(1)));
    *crashed.store.left.lock().unwrap() = Some(1);
    let creating = tokio::spawn(crashed.charge("k").send());
    crashed.store.held.notified().await;
    let publisher = Arc::new(Counted::default());
    let submitters = submitters(site, &publisher);
    let race = async || {
        let submit = |at: &Submitter| {
            at.submit("charge", &json!({ "order": 1, "amount": 12 })).idempotency_key("k").send()
        };
        let answers = join_all(submitters.iter().map(submit)).await;
        let ids: BTreeSet<_> = answers
            .iter()
            .map(|answer| in_progress(answer).or(answer.as_ref().ok().map(|made| made.task.task_id)))
            .collect();
        assert!(ids.len() == 1 && !ids.contains(&None), "{answers:?}");
        let made = answers.iter().flatten().count();
        assert!(made <= 1, "{answers:?}");
        (made == 1).then(|| ids.into_iter().next().flatten().unwrap())
    };
    let id = eventually("one takes over", race).await;
    creating.abort();
    assert_eq!(publisher.tasks(), [id]);
}
