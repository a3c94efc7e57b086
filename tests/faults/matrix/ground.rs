//! A store's part of the matrix: its server, the ways to it, and its columns, one after the other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pushonce::store::Maintain;
use pushonce::store::chaos::Chaos;
use pushonce::{IntoKey as _, Store};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet, spawn_local};

use super::aimed::{Aimed, Strike};
use super::cell::{Cell, Floor, Leases};
use super::column::{Column, Seat};
use super::faults::Fault;
use super::rows::Row;
use super::{other_process, page, steps};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::site::Site;

/// What each cell says, or why it failed.
pub(crate) type Words = Result<&'static str, String>;
pub(crate) type At = (Row, Fault);
pub(crate) type Cells = BTreeMap<At, Words>;

pub(crate) const LEASES: Leases = Leases { plain: Duration::from_secs(30), renewed: Duration::from_secs(45) };

/// So that a busy machine answers each within its deadline: many more cells wait than are at work.
const AT_ONCE: usize = 8;

/// How many cells are made once more: where nearly all differ, it is not for the machine.
const FEW: usize = 12;

pub(crate) struct Ground {
    name: &'static str,
    site: Site,
    server: Option<Server>,
}

/// What the calls of a cell go through.
pub(crate) enum Way {
    Wire(Arc<Proxy>),
    /// No wire: what it does is made up.
    Within(Arc<Chaos>),
}

impl Ground {
    pub(crate) async fn of(name: &'static str) -> Self {
        let (site, server) = match name {
            "memory" => (Site::memory().await, None),
            "sqlite" => (Site::sqlite().await, None),
            "fake-gcs" => (Site::fake_gcs().await, None),
            _ => {
                let server = Server::start(name).await;
                (Site::of(name, &server.url()).await, Some(server))
            }
        };
        Self { name, site, server }
    }

    pub(crate) async fn cells(mut self, test: &str) -> Cells {
        let mut cells = self.each_alone(&Fault::OF_THE_WIRE).await;
        self.once_more(&mut cells).await;
        cells.extend(match self.name {
            "memory" | "sqlite" => other_process::killed(test, self.name, &self.site).await,
            _ => self.column(Fault::Restarted, test).await,
        });
        cells.extend(match self.name {
            "memory" => self.each_alone(&[Fault::Stalled]).await,
            _ => self.column(Fault::Stalled, test).await,
        });
        cells
    }

    async fn each_alone(&self, faults: &[Fault]) -> Cells {
        let (mut made, turns) = (Made::default(), Arc::new(Semaphore::new(AT_ONCE)));
        for fault in faults.iter().copied() {
            for row in Row::ALL {
                let way = self.way().await;
                let cell = cell(&self.site, (row, fault), "", None, &way, LEASES);
                let (its, turns) = (cell.clone(), turns.clone());
                made.make(&cell, async move {
                    // Those that wait for a renewal cost nothing meanwhile.
                    let _turn = if row.is_slow() { None } else { turns.acquire().await.ok() };
                    steps::make(its).await
                });
            }
        }
        made.cells().await
    }

    /// On a machine that is busy for seconds a deadline passes that was far away. Such cells are made again, with
    /// nothing beside them. A law that broke is not made good by that.
    async fn once_more(&self, cells: &mut Cells) {
        let differ = |(at, said): (&At, &Words)| {
            let differs = said
                .as_ref()
                .is_ok_and(|said| page::expected(self.name, at.0, at.1).as_deref() != Some(*said));
            differs.then_some(*at)
        };
        for at in cells.iter().filter_map(differ).take(FEW).collect::<Vec<_>>() {
            let cell = cell(&self.site, at, "-once-more", None, &self.way().await, LEASES);
            let mut made = Made::default();
            made.make(&cell, steps::make(cell.clone()));
            cells.extend(made.cells().await);
        }
    }

    /// All cells at once.
    async fn column(&mut self, fault: Fault, test: &str) -> Cells {
        let (column, mut ways, mut made) = (Column::of(fault), Vec::new(), Made::default());
        for row in Row::ALL {
            let way = self.way().await;
            let cell = cell(&self.site, (row, fault), "", Some(column.seat(row)), &way, LEASES);
            made.make(&cell, steps::make(cell.clone()));
            ways.push(way);
        }
        column.at_the_call().await;
        let mut lock = None;
        // Datastore has no restarts that its users see, and its emulators forget all by theirs.
        let forgets = self.name.ends_with("-emulator");
        match (fault, &mut self.server) {
            (Fault::Restarted, Some(server)) if !forgets => server.kill(),
            (Fault::Restarted, _) => ways.iter().filter_map(Way::wire).for_each(|proxy| proxy.go_down()),
            (_, Some(server)) => server.stop().await,
            (_, None) if self.name == "sqlite" => lock = Some(other_process::locks(test, &self.site).await),
            (_, None) => ways.iter().filter_map(Way::wire).for_each(|proxy| proxy.fall_silent()),
        }
        column.strike();
        column.answered().await;
        match (fault, &mut self.server) {
            (Fault::Restarted, Some(server)) if !forgets => server.restart().await,
            (Fault::Stalled, Some(server)) => server.go_on(),
            _ => ways.iter().filter_map(Way::wire).for_each(|proxy| proxy.come_back()),
        }
        drop(lock);
        made.cells().await
    }

    async fn way(&self) -> Way {
        match self.name {
            "memory" | "sqlite" => Way::Within(Chaos::new(self.site.store())),
            _ => Way::Wire(Arc::new(self.site.proxy().await)),
        }
    }
}

impl Way {
    /// The wire, if it is there.
    fn wire(&self) -> Option<&Arc<Proxy>> {
        match self {
            Self::Wire(proxy) => Some(proxy),
            Self::Within(_) => None,
        }
    }

    fn strike(&self, fault: Fault, seat: Option<&Seat>) -> Strike {
        match (self, fault, seat) {
            (_, _, Some(seat)) => Strike::Column(seat.clone()),
            (Self::Within(chaos), Fault::Stalled, _) => Strike::StandsStill(chaos.clone()),
            (Self::Within(chaos), ..) => Strike::Fake(chaos.clone(), fault.made_up()),
            (Self::Wire(proxy), Fault::CutBefore, _) => Strike::CutBefore(proxy.clone()),
            (Self::Wire(proxy), Fault::CutAfter, _) => Strike::CutAfter(proxy.clone()),
            (Self::Wire(proxy), Fault::LandsLate, _) => Strike::Hold(proxy.clone()),
            (Self::Wire(proxy), Fault::AnswersLate, _) => Strike::HoldAnswer(proxy.clone()),
            (Self::Wire(_), ..) => unreachable!("a fault of the whole server is met in a column"),
        }
    }
}

pub(crate) fn cell(
    site: &Site,
    (row, fault): At,
    time: &str,
    seat: Option<Seat>,
    way: &Way,
    leases: Leases,
) -> Arc<Cell> {
    let (keys, operated, proxy): (Arc<dyn Store>, Arc<dyn Maintain>, _) = match way {
        Way::Within(chaos) => (chaos.clone(), site.operated(), None),
        Way::Wire(proxy) => {
            let operated = site.operated_on_one_connection_at(&proxy.address());
            (operated.clone(), operated, Some(proxy.clone()))
        }
    };
    // Of its own consumer, so that a list is of one key.
    let name = format!("{row:?}-{fault:?}{time}");
    let key = (&*format!("of-{name}"), &*name).into_key().expect("a key");
    let strike = way.strike(fault, seat.as_ref());
    let lost = way.strike(Fault::CutAfter, None);
    let (past, floor) = (site.operated(), Floor::default());
    let store = Aimed::new(keys, operated);
    Arc::new(Cell { row, fault, key, leases, store, past, proxy, seat, lost, strike, floor })
}

/// Cells that are being made.
#[derive(Default)]
pub(crate) struct Made(JoinSet<(At, Words)>);

impl Made {
    /// On a task of its own, so that what fails fails alone.
    pub(crate) fn make(&mut self, cell: &Arc<Cell>, how: impl Future<Output = &'static str> + 'static) {
        let at = (cell.row, cell.fault);
        self.0.spawn_local(async move { (at, spawn_local(how).await.map_err(reason)) });
    }

    pub(crate) async fn cells(self) -> Cells {
        self.0.join_all().await.into_iter().collect()
    }
}

fn reason(failed: JoinError) -> String {
    let panic = failed.into_panic();
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Where SQLite has it.
pub(crate) fn file(site: &Site) -> PathBuf {
    let url = site.variables().into_iter().find(|(name, _)| *name == "PUSHONCE_STORE").expect("an address").1;
    PathBuf::from(url.trim_start_matches("sqlite://"))
}
