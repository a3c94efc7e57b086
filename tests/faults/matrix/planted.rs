//! What the matrix must not pass: a store without conditions, claims that cannot be told apart, an error that
//! is called final, a panic, a fault that was never made, a cell that is missing or says another thing.

use std::sync::Arc;
use std::time::Duration;

use pushonce::planted::{Fault as Planted, plant};
use pushonce::store::chaos::{Chaos, Fault as Fake};
use pushonce::store::{
    BoxFuture, Filter, Listing, Maintain, Memory, Page, Record, StoreError, Stored, Swap, Version,
};
use pushonce::{Key, Store};
use tokio::task::LocalSet;

use super::aimed::{Aimed, Strike};
use super::cell::Cell;
use super::faults::Fault;
use super::ground::{Cells, LEASES, Made, Way, cell};
use super::rows::Row;
use super::{page, steps};
use crate::site::Site;

/// Writes whatever stands.
#[derive(Debug)]
struct Unconditional(Memory);

impl Store for Unconditional {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.0.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            // A create is still one, or nothing would stand for long.
            let stands = self.0.read(key).await?.map(|stored| stored.version);
            self.0.swap(key, seen.and(stands.as_ref()), next).await
        })
    }
}

impl Maintain for Unconditional {
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.check()
    }

    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.0.purge_expired(limit)
    }

    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        self.0.list(filter, page)
    }
}

/// Why a cell fails that was tampered with.
async fn failed(site: &Site, way: Way, row: Row, fault: Fault, tamper: impl FnOnce(&mut Cell)) -> String {
    let cells = async {
        let mut cell =
            Arc::into_inner(cell(site, (row, fault), "", None, &way, LEASES)).expect("nobody else has it");
        tamper(&mut cell);
        let (cell, mut made) = (Arc::new(cell), Made::default());
        made.make(&cell, steps::make(cell.clone()));
        made.cells().await
    };
    let cells = LocalSet::new().run_until(cells).await;
    cells.into_values().next().expect("a cell").expect_err("it must fail")
}

/// The same on the store in memory.
async fn failed_within(row: Row, fault: Fault, tamper: impl FnOnce(&mut Cell, Arc<Chaos>)) -> String {
    let site = Site::memory().await;
    let chaos = Chaos::new(site.store());
    failed(&site, Way::Within(chaos.clone()), row, fault, |cell| tamper(cell, chaos)).await
}

fn assert_has(failed: &str, words: &str) {
    assert!(failed.contains(words), "{failed}");
}

#[tokio::test]
async fn a_store_without_conditions_fails() {
    let failed = failed_within(Row::ReclaimSwap, Fault::CutAfter, |cell, _| {
        let store = Arc::new(Unconditional(Memory::new()));
        let chaos = Chaos::new(store.clone());
        cell.strike = Strike::Fake(chaos.clone(), Fault::CutAfter.made_up());
        cell.store = Aimed::new(chaos, store.clone());
        cell.past = store;
    });
    assert_has(&failed.await, "who was replaced");
}

#[tokio::test]
async fn claims_that_cannot_be_told_apart_fail() {
    plant(Some(Planted::NoToken));
    let failed = failed_within(Row::FirstClaimCreate, Fault::CutAfter, |_, _| ()).await;
    plant(None);
    assert_has(&failed, "a rival is told Ok(())");
}

#[tokio::test]
async fn a_claim_that_is_left_standing_fails() {
    plant(Some(Planted::NoUndo));
    let failed = failed_within(Row::MarkCreate, Fault::Stalled, |_, _| ()).await;
    plant(None);
    assert_has(&failed, "waited in vain until the next one has the key");
}

#[tokio::test]
async fn an_error_that_is_called_final_fails() {
    let failed = failed_within(Row::CompleteSwap, Fault::CutAfter, |cell, chaos| {
        cell.strike = Strike::Fake(chaos, Fake::Refuse);
    });
    assert_has(&failed.await, "a fault that passes was called final");
}

#[tokio::test]
async fn a_write_that_landed_and_is_said_not_to_have_fails() {
    let failed = failed_within(Row::ReleaseSwap, Fault::CutAfter, |cell, chaos| {
        cell.strike = Strike::Fake(chaos, Fake::Fail);
    });
    assert_has(&failed.await, "it may have landed, and is said not to have");
}

#[tokio::test]
async fn a_call_that_never_came_fails() {
    let failed = failed_within(Row::FirstClaimRead, Fault::CutBefore, |cell, chaos| {
        cell.lost = Strike::Fake(chaos, Fake::Stall(Duration::ZERO));
    });
    assert_has(&failed.await, "the fault was never made: no Read came");
}

#[tokio::test]
async fn a_fault_on_another_wire_fails() {
    let site = Site::fake_gcs().await;
    let [way, other] = [site.proxy().await, site.proxy().await].map(Arc::new);
    let failed = failed(&site, Way::Wire(way), Row::FirstClaimCreate, Fault::CutBefore, |cell| {
        cell.strike = Strike::CutBefore(other.clone());
        cell.proxy = Some(other);
    });
    assert_has(&failed.await, "nothing of the call went over the wire");
}

#[test]
fn a_cell_that_is_missing_or_says_another_thing_fails() {
    let all = Row::ALL.len() * Fault::ALL.len();
    assert_eq!(page::wrong("redis", &Cells::new()).len(), all);
    let at = (Row::CompleteSwap, Fault::CutAfter);
    let wrong = |said| all - page::wrong("redis", &Cells::from([(at, Ok(said))])).len();
    assert_eq!((wrong("recorded"), wrong("lost")), (1, 0));
}
