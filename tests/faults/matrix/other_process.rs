//! Other processes, which is what can go wrong beside a store that has no server: one that is killed with
//! all steps of a column at their calls, and one that holds the lock of the file.
//!
//! Each is this test program, run again with a variable that says what it is to do.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pushonce::store::chaos::Chaos;
use pushonce::store::record::Verb;
use pushonce::{RunError, Skip, at_most_once};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Executor as _};

use super::cell::{Cell, Leases};
use super::column::Column;
use super::faults::Fault;
use super::ground::{Cells, Made, Way, cell, file};
use super::rows::Row;
use super::{operator, steps};
use crate::site::Site;
use crate::world::eventually;

/// What this process is: `killed` or `locks`, and where.
const PART: &str = "PUSHONCE_TEST_FAULTS_PART";
const READY: &str = "at the call";
/// Short, since whoever comes after a killed process waits for their end; but a renewal, which has a third of its
/// lease, is not to be given up while it waits for the others to come to their calls.
const LEASES: Leases = Leases { plain: Duration::from_secs(12), renewed: Duration::from_secs(27) };

/// Plays its part, if this is another process; it is killed then.
pub(crate) async fn play() {
    let Ok(part) = std::env::var(PART) else { return };
    let site = match part.split_once(' ') {
        Some(("killed", "")) => Site::memory().await,
        Some(("killed", path)) => Site::file(path.into()),
        Some(("locks", path)) => return lock(path).await,
        _ => unreachable!("{part} is no part"),
    };
    let (column, mut made) = (Column::of(Fault::Restarted), Made::default());
    for row in Row::ALL {
        let way = Way::Within(Chaos::new(site.store()));
        let seat = column.seat(row);
        let cell = cell(&site, (row, Fault::Restarted), "", Some(seat), &way, LEASES);
        made.make(&cell, steps::make(cell.clone()));
    }
    column.at_the_call().await;
    println!("\n{READY}");
    std::future::pending::<()>().await;
}

async fn lock(path: &str) {
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("the file");
    connection.execute("BEGIN IMMEDIATE").await.expect("its lock");
    println!("\n{READY}");
    std::future::pending::<()>().await;
}

/// A process that plays a part. Killed when dropped.
pub(crate) struct Other(Child);

impl Other {
    /// Starts it, and waits until it is where it is to be.
    async fn start(test: &str, part: String) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", test, "--nocapture"]).env(PART, part).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program runs again");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let ready =
            tokio::task::spawn_blocking(|| said.lines().any(|line| line.is_ok_and(|line| line == READY)));
        assert!(ready.await.expect("it is read"), "another process ended before it was at the call");
        Self(child)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Holds the lock of SQLite's file.
pub(crate) async fn locks(test: &str, site: &Site) -> Other {
    Other::start(test, format!("locks {}", file(site).display())).await
}

/// A process makes all steps, and is killed when each is at its call; then others find what it has left.
pub(crate) async fn killed(test: &str, name: &str, site: &Site) -> Cells {
    // A process that ends takes its memory with it.
    let place = if name == "memory" { String::new() } else { file(site).display().to_string() };
    drop(Other::start(test, format!("killed {place}")).await);
    let mut made = Made::default();
    for row in Row::ALL {
        let way = Way::Within(Chaos::new(site.store()));
        let cell = cell(site, (row, Fault::Restarted), "", None, &way, LEASES);
        made.make(&cell, found(cell.clone()));
    }
    made.cells().await
}

/// What whoever comes next finds of a key.
pub(crate) async fn found(cell: Arc<Cell>) -> &'static str {
    match cell.row {
        Row::MarkCreate => {
            let attempt = async || at_most_once(&cell.key, &cell.past()).run(async { Ok(()) }).await.ok();
            match eventually("the store answers", attempt).await {
                Some(()) => "killed, then won",
                None => "killed, then lost",
            }
        }
        row if row.is_operators() => operator::find(row, &cell).await,
        _ => {
            let (past, verb) =
                (cell.past(), if cell.row == Row::ReclaimRead { Verb::Mutex } else { Verb::Lock });
            let attempt = async || match cell.claim(verb, &past, |_| async { Ok(()) }).await {
                Ok(()) => Some("killed, then won"),
                Err(RunError::Skipped(Skip::Duplicate { .. })) => Some("killed, then a duplicate"),
                Err(RunError::Skipped(Skip::InProgress { .. })) => None,
                Err(RunError::Store(error)) if error.is_transient() => None,
                Err(error) => panic!("the next one is told {error:?}"),
            };
            let said = eventually("the next one is answered", attempt).await;
            // And from then on nobody.
            if verb == Verb::Lock {
                let again = eventually("the store answers", async || {
                    let again = cell.claim(verb, &past, |_| async { Ok(()) }).await;
                    Some(again).filter(|again| !matches!(again, Err(RunError::Store(_))))
                });
                let again = again.await;
                assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "{again:?}");
            }
            said
        }
    }
}
