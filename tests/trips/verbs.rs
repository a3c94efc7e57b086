//! What one run of each verb costs, whatever stands under its key.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pushonce::store::BoxError;
use pushonce::store::record::State;
use pushonce::{IntoKey, Key, RunError, Store, at_most_once, lock, mutex};
use tokio::sync::oneshot;

use crate::counted::Counted;
use crate::on_servers::on_servers;
use crate::site::Site;

/// What the table of `docs/trips.md` counts, from before the claim to after the key is settled.
const CASES: [&str; 5] = ["first", "duplicate", "contended", "reclaim", "after release"];

/// A verb, and for each case the trips to a store that tells in the same trip what stands, and to one
/// that has to be asked. The one table: the docs print it.
const TABLE: [(Verb, [(usize, usize); 5]); 3] = [
    (Verb::Lock, [(2, 2), (1, 2), (1, 2), (3, 4), (3, 4)]),
    (Verb::Mutex, [(3, 3), (3, 3), (1, 1), (3, 3), (3, 3)]),
    (Verb::AtMostOnce, [(2, 2), (1, 2), (1, 2), (3, 4), (3, 4)]),
];

/// Long enough that a third of it is time for a claim on a busy machine.
const LEASE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Lock,
    Mutex,
    AtMostOnce,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::AtMostOnce => "at_most_once",
        }
    }

    /// Runs the work under the key: whether it ran and succeeded.
    async fn run<W>(self, key: &Key, store: &Arc<dyn Store>, work: W) -> bool
    where
        W: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let ran = match self {
            Self::Lock => lock(key, store).lease(LEASE).run(work).await,
            Self::Mutex => mutex(key, store).lease(LEASE).wait(Duration::ZERO).run(work).await,
            Self::AtMostOnce => {
                let marked = at_most_once(key, store).lease(LEASE).ttl(LEASE).run(work).await;
                return matches!(marked, Ok(Some(())));
            }
        };
        match ran {
            Ok(()) => true,
            Err(RunError::Skipped(_) | RunError::Work(_)) => false,
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Leaves a claim behind that nobody will settle, as a crash does.
    async fn crash(self, key: &Key, store: &Arc<dyn Store>) {
        let (limit, work) = (Duration::from_millis(1), std::future::pending());
        let ended = match self {
            Self::Lock => lock(key, store).lease(LEASE).work_timeout(limit).run::<(), _>(work).await,
            Self::Mutex => mutex(key, store).lease(LEASE).work_timeout(limit).run::<(), _>(work).await,
            // A mark is never taken over within its ttl; what lapses is the ttl.
            Self::AtMostOnce => return assert!(self.run(key, store, async { Ok(()) }).await),
        };
        assert!(matches!(ended, Err(RunError::Work(_))), "{ended:?}");
    }
}

fn key(verb: Verb, case: &str) -> Key {
    ("trips", format!("{} {case}", verb.name())).into_key().unwrap()
}

/// Counts one column.
async fn counted(on: &Counted) -> Vec<(Verb, Vec<usize>)> {
    let store = &on.store;
    let verbs = TABLE.map(|(verb, _)| verb);
    // Statements are prepared and scripts are loaded once for each connection.
    for verb in verbs {
        let warm = key(verb, "warm");
        assert!(!Verb::Lock.run(&warm, store, async { Err("no".into()) }).await);
        assert!(verb.run(&warm, store, async { Ok(()) }).await);
    }
    // Those that are to lapse first, so that all lapse while the others are counted.
    for verb in verbs {
        verb.crash(&key(verb, "reclaim"), store).await;
    }
    let mut column = Vec::new();
    for verb in verbs {
        let mut row = Vec::new();
        for case in CASES {
            let key = key(verb, case);
            let holder = prepared(verb, case, &key, store).await;
            on.take();
            let ran = verb.run(&key, store, async { Ok(()) }).await;
            row.push(on.take());
            let runs =
                verb == Verb::Mutex && case != "contended" || !["duplicate", "contended"].contains(&case);
            assert_eq!(ran, runs, "{verb:?} {case}");
            if let Some((release, held)) = holder {
                release.send(()).unwrap();
                assert!(held.await.unwrap());
            }
        }
        column.push((verb, row));
    }
    column
}

type Holder = Option<(oneshot::Sender<()>, tokio::task::JoinHandle<bool>)>;

/// What stands under the key before the run that is counted.
async fn prepared(verb: Verb, case: &str, key: &Key, store: &Arc<dyn Store>) -> Holder {
    match case {
        "duplicate" => assert!(verb.run(key, store, async { Ok(()) }).await),
        "contended" => {
            let (begun, begins) = oneshot::channel();
            let (release, released) = oneshot::channel();
            let (key, store) = (key.clone(), store.clone());
            let held = tokio::spawn(async move {
                let work = async move {
                    begun.send(()).map_err(|()| "nobody waits")?;
                    Ok(released.await?)
                };
                verb.run(&key, &store, work).await
            });
            begins.await.unwrap();
            return Some((release, held));
        }
        "reclaim" => {
            let lapses = async {
                while store.read(key).await.unwrap().expect("a record stands").age <= LEASE {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            tokio::time::timeout(10 * LEASE, lapses).await.expect("a lease lapses");
        }
        "after release" => {
            // A mark is not released by a failure, so it is a lock's release that it meets.
            let failing = if verb == Verb::AtMostOnce { Verb::Lock } else { verb };
            assert!(!failing.run(key, store, async { Err("no".into()) }).await);
            assert_eq!(store.read(key).await.unwrap().unwrap().record.state, State::Released);
        }
        _ => {}
    }
    None
}

fn expected(column: impl Fn(&(usize, usize)) -> usize) -> Vec<(Verb, Vec<usize>)> {
    TABLE.iter().map(|(verb, row)| (*verb, row.iter().map(&column).collect())).collect()
}

on_servers! {
    all {
        the_trips_are_those_of_the_table
    }
}

async fn the_trips_are_those_of_the_table(site: &Site) {
    let tells = ["memory", "sqlite", "redis", "postgres"].contains(&site.name);
    let counts = counted(&Counted::on(site).await).await;
    assert_eq!(counts, expected(|(told, asked)| if tells { *told } else { *asked }));
}

#[test]
fn the_docs_print_the_table_that_was_counted() {
    let mut table = format!("| stores | verb | {} |\n|---|---|---|---|---|---|---|\n", CASES.join(" | "));
    for (stores, column) in [("that tell", 0), ("that are asked", 1)] {
        for (verb, row) in TABLE {
            let trips = row.map(|(told, asked)| [told, asked][column].to_string());
            writeln!(table, "| {stores} | `{}` | {} |", verb.name(), trips.join(" | ")).unwrap();
        }
    }
    let docs = include_str!("../../docs/trips.md");
    assert!(docs.contains(&table), "docs/trips.md does not have this table:\n\n{table}");
}
