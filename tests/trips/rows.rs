//! What a message costs on every store: the row that `make trips` prints, held against its target.

use std::fmt::Write as _;

use axum::body::Body;
use axum::{Router, routing::post};
use pushonce::{Ack, Failure, IdempotentLayer, RunError, Skip, lock};
use tower::ServiceExt as _;

use crate::counted::Counted;
use crate::on_servers::on_servers;
use crate::report;
use crate::site::Site;

/// What was counted on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    store: &'static str,
    first: usize,
    duplicate: usize,
    failure: usize,
    /// What the first message on a fresh connection costs beyond that: greetings, the look at the
    /// table, statements that are prepared. The handshake of TCP or TLS is not in it.
    fresh: usize,
}

const fn row(store: &'static str, [first, duplicate, failure, fresh]: [usize; 4]) -> Row {
    Row { store, first, duplicate, failure, fresh }
}

/// The one table: the docs print it.
const ROWS: [Row; 10] = [
    row("memory", [2, 1, 2, 0]),
    row("sqlite", [2, 1, 2, 0]),
    row("redis", [2, 1, 2, 2]),
    row("postgres", [2, 1, 2, 5]),
    row("mariadb", [2, 2, 2, 5]),
    row("datastore-emulator", [2, 2, 2, 0]),
    row("firestore-emulator", [2, 2, 2, 0]),
    row("s3", [2, 2, 2, 0]),
    row("fake-gcs", [2, 2, 2, 0]),
    row("object-store-memory", [2, 2, 2, 0]),
];

/// A message may cost two trips everywhere, and a duplicate one where the server can tell what stands
/// together with its refusal.
fn target(store: &str) -> (usize, usize) {
    let tells = ["memory", "sqlite", "redis", "postgres"].contains(&store);
    (2, if tells { 1 } else { 2 })
}

async fn count(site: &Site) -> Row {
    // A server of Redis has the script from then on.
    lock(("trips", "another"), &site.store()).run(async { Ok(()) }).await.unwrap();
    let counted = Counted::on(site).await;
    // The first round meets a fresh connection.
    let mut rounds = Vec::new();
    for round in ["fresh", "warm"] {
        let (key, failing) = (("trips", round), ("trips", format!("{round} failing")));
        counted.take();
        lock(key, &counted.store).run(async { Ok(()) }).await.unwrap();
        let first = counted.take();
        let again = lock(key, &counted.store).run(async { Ok(()) }).await;
        assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
        let duplicate = counted.take();
        let failed = lock(failing, &counted.store).run::<(), _>(async { Err("no".into()) }).await;
        assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
        rounds.push([first, duplicate, counted.take()]);
    }
    let [[cold, ..], [first, duplicate, failure]] = rounds[..] else { unreachable!("two rounds") };
    Row { store: site.name, first, duplicate, failure, fresh: cold - first }
}

#[tokio::test]
async fn every_store_keeps_to_its_target() {
    let mut text = format!(
        "\n{:<20} {:>5} {:>9} {:>7} {:>16}\n",
        "store", "first", "duplicate", "failure", "fresh connection"
    );
    let mut above = Vec::new();
    for site in [
        Site::memory().await,
        Site::sqlite().await,
        Site::redis().await,
        Site::postgres().await,
        Site::mariadb().await,
        Site::datastore_emulator().await,
        Site::firestore_emulator().await,
        Site::s3().await,
        Site::fake_gcs().await,
        Site::object_store_memory().await,
    ] {
        let Row { store, first, duplicate, failure, fresh } = count(&site).await;
        writeln!(text, "{store:<20} {first:>5} {duplicate:>9} {failure:>7} {fresh:>+16}").unwrap();
        let (message, again) = target(store);
        if first > message || duplicate > again || failure > message {
            above.push(store);
        } else {
            report::test(store, "every_store_keeps_to_its_target");
        }
    }
    println!("{text}");
    assert!(above.is_empty(), "above the target: {above:?}");
}

on_servers! {
    all {
        the_row_is_that_of_the_table
        a_push_costs_what_its_verb_costs
    }
}

async fn the_row_is_that_of_the_table(site: &Site) {
    let expected = ROWS.iter().find(|row| row.store == site.name).expect("a row for each store");
    assert_eq!(count(site).await, *expected);
}

async fn a_push_costs_what_its_verb_costs(site: &Site) {
    let counted = Counted::on(site).await;
    let layer = IdempotentLayer::new("orders", counted.store.clone());
    let app: Router = Router::new().route("/", post(|| async { Ok::<_, Failure>(Ack) }).layer(layer));
    let expected = ROWS.iter().find(|row| row.store == site.name).expect("a row for each store");
    for (id, status, outcome, trips) in [
        // On a fresh connection, and so that each statement is known.
        ("6", 200, "ran", None),
        ("6", 204, "duplicate", None),
        ("7", 200, "ran", Some(expected.first)),
        ("7", 204, "duplicate", Some(expected.duplicate)),
        ("7", 204, "duplicate", Some(expected.duplicate)),
    ] {
        let body = format!(r#"{{"message":{{"messageId":"{id}","data":"eyJwbyI6MTJ9"}}}}"#);
        let push = http::Request::post("/").body(Body::from(body)).unwrap();
        counted.take();
        let answer = app.clone().oneshot(push).await.unwrap();
        let told = answer.headers()["pushonce-outcome"].to_str().unwrap();
        assert_eq!((answer.status().as_u16(), told), (status, outcome));
        let took = counted.take();
        assert!(trips.is_none_or(|trips| trips == took), "{outcome}: {took} trips");
    }
}

#[test]
fn the_docs_print_the_rows_that_were_counted() {
    let mut table =
        "| store | first message | duplicate | failure | more on a fresh connection |\n|---|---|---|---|---|\n".to_owned();
    for Row { store, first, duplicate, failure, fresh } in ROWS {
        writeln!(table, "| {store} | {first} | {duplicate} | {failure} | {fresh} |").unwrap();
    }
    let docs = include_str!("../../docs/trips.md");
    assert!(docs.contains(&table), "docs/trips.md does not have this table:\n\n{table}");
}
