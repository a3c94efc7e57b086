//! What an operator does to a key, into its fault: reset, inspect, list, purge.

use std::sync::Arc;

use pushonce::maintain::{Force, Inspected, Reset, Status, inspect, reset};
use pushonce::store::record::Verb;
use pushonce::store::{Filter, Maintain, Page, StoreError};
use pushonce::{History, RunError, Skip, lock};

use super::cell::Cell;
use super::rows::Row;
use crate::world::{assert_done, eventually};

/// There is nothing that a fault could meet.
pub(crate) const NO_CALL: &str = "no call";

pub(crate) async fn make(row: Row, cell: &Arc<Cell>) -> &'static str {
    done_before(cell).await;
    match row {
        Row::InspectRead => be_inspected(cell).await,
        Row::List => be_listed(cell).await,
        Row::Purge => be_purged(cell).await,
        _ => be_reset(cell).await,
    }
}

/// The same key, whose operator's process was killed.
pub(crate) async fn find(row: Row, cell: &Arc<Cell>) -> &'static str {
    let past = &*cell.past;
    match row {
        Row::InspectRead => match answer(past, async |store| inspect(store, &cell.key).await).await {
            Some(told) => is_done(&told),
            None => return FORGOTTEN,
        },
        Row::List => match answer(past, async |store| listed(cell, store).await).await {
            0 => return FORGOTTEN,
            found => assert_eq!(found, 1, "it is listed once"),
        },
        Row::Purge => _ = answer(past, async |store| store.purge_expired(1000).await).await,
        _ => {
            _ = answer(past, async |store| reset(store, &cell.key, Force::No).await).await;
            let (fence, _) = cell.next(Verb::Lock).await;
            assert_done(&cell.past(), &cell.key, fence).await;
        }
    }
    "killed, then answered"
}

/// A process takes its memory with it.
const FORGOTTEN: &str = "killed, all forgotten";

fn is_done(told: &Inspected) {
    assert!(matches!(told.status, Status::Done { .. }), "{told:?}");
}

/// Done, as another process did it.
async fn done_before(cell: &Arc<Cell>) {
    let (fence, _) = cell.next(Verb::Lock).await;
    assert_done(&cell.past(), &cell.key, fence).await;
}

/// What an operator was told, and if that was nothing, what he is told next.
async fn asked<T>(cell: &Arc<Cell>, ask: impl AsyncFn(&dyn Maintain) -> Result<T, StoreError>) -> (bool, T) {
    let first = ask(&*cell.store).await;
    cell.answered().await;
    match first {
        Ok(told) => (true, told),
        Err(error) => {
            assert!(error.is_transient(), "{error:?}");
            (false, answer(&*cell.past, ask).await)
        }
    }
}

/// Asks until there is an answer.
async fn answer<T>(store: &dyn Maintain, ask: impl AsyncFn(&dyn Maintain) -> Result<T, StoreError>) -> T {
    let asked = async || match ask(store).await {
        Ok(told) => Some(told),
        Err(error) => {
            assert!(error.is_transient(), "{error:?}");
            None
        }
    };
    eventually("an operator is answered", asked).await
}

async fn be_reset(cell: &Arc<Cell>) -> &'static str {
    cell.aim().await;
    let key = &cell.key;
    let (at_once, told) = asked(cell, async |store| reset(store, key, Force::No).await).await;
    match (at_once, told) {
        (true, Reset::Freed) | (false, Reset::Freed | Reset::Free) => {}
        told => panic!("{told:?}"),
    }
    let (fence, history) = cell.next(Verb::Lock).await;
    assert_eq!(history, History::Unknown { runs: 1 }, "it is reset once");
    assert_done(&cell.past(), key, fence).await;
    if at_once { "freed" } else { "unavailable, then freed" }
}

async fn be_inspected(cell: &Arc<Cell>) -> &'static str {
    cell.aim().await;
    let (at_once, told) = asked(cell, async |store| inspect(store, &cell.key).await).await;
    is_done(&told.expect("a record stands"));
    if at_once { "told" } else { "unavailable, then told" }
}

/// How often the key is listed.
async fn listed(cell: &Cell, store: &dyn Maintain) -> Result<usize, StoreError> {
    let name = format!("{}:{}", cell.key.consumer(), cell.key.text());
    let (filter, mut page) = (Filter { prefix: name.clone(), ..Filter::default() }, Page::default());
    let mut times = 0;
    loop {
        let listing = store.list(&filter, &page).await?;
        times += listing.found.iter().filter(|found| found.key == name).count();
        let Some(next) = listing.next else { return Ok(times) };
        page.after = Some(next);
    }
}

async fn be_listed(cell: &Arc<Cell>) -> &'static str {
    // Its statement is prepared then, so that the next request on the wire is the call.
    answer(&*cell.store, async |store| listed(cell, store).await).await;
    cell.aim().await;
    let (at_once, times) = asked(cell, async |store| listed(cell, store).await).await;
    assert_eq!(times, 1, "it is listed once");
    if at_once { "listed" } else { "unavailable, then listed" }
}

async fn be_purged(cell: &Arc<Cell>) -> &'static str {
    let purge = async |store: &dyn Maintain| store.purge_expired(1000).await;
    let trips = || cell.proxy.as_ref().map_or(1, |proxy| proxy.take());
    trips();
    let before = match purge(&*cell.store).await {
        Err(error) if error.is_transient() => Ok(answer(&*cell.store, purge).await),
        before => before,
    };
    let asks = trips() > 0;
    cell.aim().await;
    let said = match before {
        _ if asks => match asked(cell, purge).await.0 {
            true => "purged",
            false => "unavailable, then purged",
        },
        // Its server collects its own garbage.
        before => {
            assert!(matches!(before, Ok(0) | Err(StoreError::Refused { .. })), "{before:?}");
            trips();
            let _ = purge(&*cell.store).await;
            assert_eq!(trips(), 0);
            cell.answered().await;
            NO_CALL
        }
    };
    let again = async || match lock(&cell.key, &cell.past()).run(async { Ok(()) }).await {
        Err(RunError::Store(error)) if error.is_transient() => None,
        again => Some(again),
    };
    let again = eventually("the store answers", again).await;
    assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))), "what is kept stays: {again:?}");
    said
}
