//! Servers and processes that are killed: what was acknowledged is still there, and what was cut off heals.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pushonce::store::{self, Maintain as _, Sql, Swap};
use pushonce::{IntoKey as _, RunError, Skip, Store, lock};
use rustix::process::{Signal, getpid, kill_process};
use sqlx::{MySql, Postgres, Sqlite};

use crate::private::Private;
use crate::report;
use crate::server::{Place, Server, key, record, written};

/// Set in a process of a test's own: where its file is.
const CHILD: &str = "PUSHONCE_TEST_SQL_CHILD";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_may_crash_between_claim_and_complete() {
    a_server_that_crashes_between_claim_and_complete::<Postgres>(Private::postgres()).await;
    report::test("postgres", "crashes::postgres_may_crash_between_claim_and_complete");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_may_crash_between_claim_and_complete() {
    a_server_that_crashes_between_claim_and_complete::<MySql>(Private::mariadb()).await;
    report::test("mariadb", "crashes::mariadb_may_crash_between_claim_and_complete");
}

async fn a_server_that_crashes_between_claim_and_complete<DB: Server>(server: Private) {
    let place = Place::<DB>::of(&server.url(), "pushonce");
    let store = store::connect(&place.url).unwrap();
    let table = place.store();
    // Listening is not yet ready.
    while let Err(error) = table.create_table().await {
        assert!(error.is_transient(), "{error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let held = written(store.swap(&key(), None, &record(1)).await.unwrap());
    let server = Arc::new(Mutex::new(server));
    for round in 0..3 {
        let name = ("orders", format!("round-{round}"));
        let crashing = server.clone();
        let ran = lock(name.clone(), &store).run(async move {
            tokio::task::spawn_blocking(move || crashing.lock().unwrap().restart()).await?;
            Ok(())
        });
        ran.await.unwrap();
        // Recorded before its answer or after it, but recorded.
        let again = async {
            loop {
                match lock(name.clone(), &store).run(async { Ok(()) }).await {
                    Err(RunError::Skipped(Skip::Duplicate { .. })) => return,
                    Ok(()) => panic!("it ran twice"),
                    // Over, or the server is not back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), again).await.expect("it is recorded");
        let stands = store.read(&key()).await.unwrap().unwrap();
        assert_eq!(stands.version, held, "what was acknowledged before the crash is there");
    }
}

/// This test again, in a process of its own.
fn child(name: &str, file: &Place<Sqlite>) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(CHILD, &file.url);
    child.env_remove("PUSHONCE_TEST_REPORT").stdout(Stdio::piped()).stderr(Stdio::piped());
    child
}

// What is checked is the promise itself: a done that was acknowledged is a done for whoever comes after.
#[tokio::test]
async fn a_process_that_is_killed_right_after_a_done_forgets_nothing() {
    const NAME: &str = "crashes::a_process_that_is_killed_right_after_a_done_forgets_nothing";
    const KEYS: usize = 20;
    let name = |round, at| ("orders", format!("{round}-{at}"));
    if let Ok(told) = std::env::var(CHILD) {
        let (url, round) = told.split_once('#').unwrap();
        let store = store::connect(url).unwrap();
        for at in 0..KEYS {
            lock(name(round.to_owned(), at), &store).run(async { Ok(()) }).await.unwrap();
        }
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    let place = Place::<Sqlite>::new();
    for round in 0..10 {
        let mut child = child(NAME, &place);
        let output = child.env(CHILD, format!("{}#{round}", place.url)).output().unwrap();
        assert_eq!(output.status.code(), None, "{}", String::from_utf8_lossy(&output.stderr));
        // By who comes after, on the same file.
        let store = store::connect(&place.url).unwrap();
        for (round, at) in (0..=round).flat_map(|round| (0..KEYS).map(move |at| (round, at))) {
            let ran = lock(name(round.to_string(), at), &store).run(async { Ok(()) }).await;
            assert!(matches!(ran, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{round}-{at}: {ran:?}");
        }
    }
    report::test("sqlite", NAME);
}

#[tokio::test]
async fn processes_that_are_killed_while_others_write_break_nothing() {
    const NAME: &str = "crashes::processes_that_are_killed_while_others_write_break_nothing";
    if let Ok(told) = std::env::var(CHILD) {
        let (url, name) = told.split_once('#').unwrap();
        let store = store::connect(url).unwrap();
        let mut out = std::io::stdout();
        for at in 0.. {
            lock(("orders", format!("{name}-{at}")), &store).run(async { Ok(()) }).await.unwrap();
            // One write for each line, so that none is cut.
            out.write_all(format!("done:{name}-{at}\n").as_bytes()).unwrap();
            out.flush().unwrap();
        }
    }
    let place = Place::<Sqlite>::new();
    let mut done = Vec::new();
    for round in 0..3 {
        let mut children: Vec<_> = (0..3)
            .map(|at| child(NAME, &place).env(CHILD, format!("{}#{round}-{at}", place.url)).spawn().unwrap())
            .collect();
        let lines: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let out = std::io::BufReader::new(child.stdout.take().unwrap());
                std::thread::spawn(move || {
                    std::io::BufRead::lines(out).map_while(Result::ok).collect::<Vec<_>>()
                })
            })
            .collect();
        // Each is killed wherever it is by then, while the others write.
        for (at, child) in children.iter_mut().enumerate() {
            let enough = std::time::Instant::now() + Duration::from_millis(300 + 97 * at as u64);
            while std::time::Instant::now() < enough {
                assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let said = lines.into_iter().flat_map(|lines| lines.join().unwrap());
        done.extend(said.filter_map(|line| line.split_once("done:").map(|(_, name)| name.to_owned())));
    }
    assert!(done.len() > 9, "only {} were done before the kills", done.len());
    let store = store::connect(&place.url).unwrap();
    for name in &done {
        let ran = lock(("orders", name), &store).run(async { Ok(()) }).await;
        assert!(matches!(ran, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{name}: {ran:?}");
    }
    let sound = sqlx::query_scalar::<_, String>("PRAGMA integrity_check").fetch_one(&place.pool(1)).await;
    assert_eq!(sound.unwrap(), "ok");
    report::test("sqlite", NAME);
}

// A drain waits for what writes, and a purge can be done another day.
#[tokio::test]
async fn a_store_that_purges_does_not_hold_up_a_shutdown() {
    const NAME: &str = "crashes::a_store_that_purges_does_not_hold_up_a_shutdown";
    if let Ok(url) = std::env::var(CHILD) {
        let place = Place::<Sqlite>::of(&url, "pushonce");
        let store = Sql::builder(place.pool(1)).purge_every(Duration::from_secs(3600)).build().unwrap();
        store.create_table().await.unwrap();
        assert!(matches!(store.swap(&key(), None, &record(1)).await.unwrap(), Swap::Written(_)));
        let drained = pushonce::drain(Duration::from_secs(20)).await;
        assert!(!drained.cancelled && drained.left == 0, "{drained:?}");
        assert_eq!(store.purge_expired(1).await.unwrap(), 0, "the store itself goes on");
        return;
    }
    let place = Place::<Sqlite>::ready().await;
    let output = child(NAME, &place).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    report::test("sqlite", NAME);
}

#[tokio::test]
async fn a_crash_of_the_holder_heals_when_its_lease_lapses() {
    let place = Place::<Sqlite>::new();
    let store: Arc<dyn Store> = store::connect(&place.url).unwrap();
    let claimed = pushonce::store::Record { lease: Duration::from_millis(100), ..record(1) };
    let held = ("orders", "po-1").into_key().unwrap();
    let _ = written(store.swap(&held, None, &claimed).await.unwrap());
    let ran = async {
        while lock(&held, &store).run(async { Ok(()) }).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ran).await.expect("the lease lapses");
    report::test("sqlite", "crashes::a_crash_of_the_holder_heals_when_its_lease_lapses");
}
