//! What a submission costs on every store.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pushonce::idempotent::{End, Follow as _};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::BoxFuture;
use pushonce::submit::{SubmitError, Submitted, Submitter};
use serde_json::json;

use crate::counted::Counted;
use crate::on_servers::on_servers;
use crate::site::Site;

/// What is counted: trips, and messages published.
const CASES: [&str; 6] =
    ["new, with a key", "new, without a key", "replay", "conflict", "in progress", "messages of a new one"];

/// For stores that tell what stands together with their refusal, and for those that have to be asked.
/// The one table: the docs print it.
const TOLD: [usize; 6] = [3, 1, 2, 1, 2, 1];
const ASKED: [usize; 6] = [3, 1, 2, 2, 3, 1];

#[derive(Debug, Default)]
struct Messages(AtomicUsize);

impl Publisher for Messages {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Ok(self.0.fetch_add(1, Ordering::SeqCst).to_string().into()) })
    }
}

async fn count(site: &Site) -> [usize; 6] {
    let counted = Counted::on(site).await;
    let messages = Arc::new(Messages::default());
    let submitter = Submitter::new(counted.store.clone(), messages.clone(), "tasks");
    let mut row = [0; 6];
    // The first round meets a fresh connection.
    for key in ["fresh", "warm"] {
        let charge = |amount: u32| submitter.submit("charge", &json!(amount)).idempotency_key(key).send();
        counted.take();
        let before = messages.0.load(Ordering::SeqCst);
        let made = charge(1).await.unwrap();
        row[0] = counted.take();
        row[5] = messages.0.load(Ordering::SeqCst) - before;
        let in_progress = charge(1).await;
        row[4] = counted.take();
        assert!(matches!(in_progress, Err(SubmitError::InProgress { .. })), "{in_progress:?}");
        let conflict = charge(2).await;
        row[3] = counted.take();
        assert!(matches!(conflict, Err(SubmitError::Conflict)), "{conflict:?}");
        submitter.tasks().ended(&made.task.task_id.to_string(), End::Completed).await.unwrap();
        counted.take();
        let replay = charge(1).await;
        row[2] = counted.take();
        assert!(matches!(replay, Ok(Submitted { duplicate: true, .. })), "{replay:?}");
        submitter.submit("charge", &json!(1)).send().await.unwrap();
        row[1] = counted.take();
    }
    row
}

on_servers! {
    all {
        a_submission_costs_what_the_table_says
    }
}

async fn a_submission_costs_what_the_table_says(site: &Site) {
    let tells = ["memory", "sqlite", "redis", "postgres"].contains(&site.name);
    let row = count(site).await;
    println!("{:<20} {row:?}", site.name);
    assert_eq!(row, if tells { TOLD } else { ASKED });
}

#[test]
fn the_table_keeps_to_its_target() {
    for [keyed, unkeyed, replay, .., messages] in [TOLD, ASKED] {
        assert!((keyed, unkeyed, messages) == (3, 1, 1) && replay <= 2);
    }
}

#[test]
fn the_docs_print_the_submissions_that_were_counted() {
    let mut table = format!("| stores | {} |\n|---|---|---|---|---|---|---|\n", CASES.join(" | "));
    for (stores, row) in [("that tell", TOLD), ("that are asked", ASKED)] {
        writeln!(table, "| {stores} | {} |", row.map(|trips| trips.to_string()).join(" | ")).unwrap();
    }
    let docs = include_str!("../../docs/trips.md");
    assert!(docs.contains(&table), "docs/trips.md does not have this table:\n\n{table}");
}
