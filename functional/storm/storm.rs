//! One storm on one store: four instances behind the emulator's pushes, struck while messages come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use pushonce::IntoKey as _;
use pushonce::store::record::State;

use crate::came::Came;
use crate::dice::Dice;
use crate::fate::Deck;
use crate::fleet::{Fleet, Weather};
use crate::gate::{ACK_DEADLINE, Gate};
use crate::load::{self, Published};
use crate::program::Told;
use crate::pubsub::{PubSub, Push};
use crate::site::Site;
use crate::supplier::Supplier;
use crate::transaction::Database;
use crate::work::{CONSUMER, Mode};

/// For each order: the time over which the orders are published.
const PACE: Duration = Duration::from_millis(15);
/// For what is left when the last order is published, with the leases that have to lapse.
const REST: Duration = Duration::from_secs(150);
/// For the instances to end, and for the looks at the end.
const LAST: Duration = Duration::from_secs(60);

/// A storm over so many orders, and what must not have been.
pub(crate) async fn storm(site: &Site, mode: Mode, orders: usize, seed: u64) -> (Came, Vec<String>) {
    let began = Instant::now();
    let limit = PACE * u32::try_from(orders).unwrap() + REST;
    let stormed = tokio::time::timeout(limit + LAST, async {
        let storm = Storm::set(site, mode, orders).await;
        let (fleet, published, missing) = storm.blow(seed, limit).await;
        let (came, mut faults) = storm.look(&fleet, &published).await;
        faults.splice(..0, missing);
        (came, faults)
    });
    let (mut came, faults) = match stormed.await {
        Ok(came) => came,
        Err(_) => panic!("{}: the storm is over, and its end did not come in {LAST:?}", site.name),
    };
    came.store = site.name.to_owned() + if mode == Mode::Transaction { ", transaction" } else { "" };
    came.seconds = began.elapsed().as_secs();
    let faults = faults.into_iter().map(|fault| format!("{}: {fault}", came.store)).collect();
    (came, faults)
}

struct Storm<'a> {
    site: &'a Site,
    mode: Mode,
    orders: usize,
    supplier: Supplier,
    gate: Arc<Gate>,
    pubsub: PubSub,
    /// What keeps the effects, in place of the supplier.
    database: Option<Database>,
}

impl<'a> Storm<'a> {
    async fn set(site: &'a Site, mode: Mode, orders: usize) -> Self {
        let (supplier, gate) = (Supplier::start().await, Arc::new(Gate::open().await));
        let pubsub = PubSub::from_env("storm").await;
        let deadline = u32::try_from(ACK_DEADLINE.as_secs()).unwrap();
        for topic in load::topics() {
            pubsub.topic(&topic).await;
            pubsub.push(&topic, &topic, &gate.url(), Push::new().ack_deadline(deadline)).await;
        }
        let database = match mode {
            Mode::Supplier => None,
            Mode::Transaction => Some(Database::created(&site.variables()[0].1).await),
        };
        Self { site, mode, orders, supplier, gate, pubsub, database }
    }

    /// Until all is acked, or the limit is reached: that is a fault, and the instances are ended all the same.
    async fn blow(&self, seed: u64, limit: Duration) -> (Fleet, Published, Option<String>) {
        let told =
            Told { mode: self.mode, variables: self.site.variables(), supplier: self.supplier.url("") };
        let fleet = Fleet::new(told, self.gate.clone(), Deck::of(self.mode, seed), self.site.name);
        let (mut published, dice) = (Published::new(), Dice::of(!seed));
        let load = async {
            let pace = PACE * u32::try_from(self.orders).unwrap();
            let acked = tokio::time::timeout(limit, async {
                load::publish(&self.pubsub, &self.gate, (self.orders, pace), &dice, &mut published).await;
                fleet.turns(Weather::Calm);
                while !self.gate.counted().acked_all(published.keys()) {
                    tokio::time::sleep(crate::POLL).await;
                }
            });
            let acked = acked.await;
            fleet.turns(Weather::Over);
            acked
        };
        let ((), acked) = tokio::join!(fleet.sail(), load);
        let missing = acked.is_err().then(|| self.missing(&published, limit));
        (fleet, published, missing)
    }

    /// What it waited for.
    fn missing(&self, published: &Published, limit: Duration) -> String {
        let counted = self.gate.counted();
        let mut missing: Vec<_> = published.iter().filter(|(id, _)| !counted.acked.contains(*id)).collect();
        missing.sort();
        let (orders, all, many) = (self.orders, published.len(), missing.len());
        missing.truncate(10);
        format!(
            "after {limit:?} {all} messages of {orders} orders were published and {many} of them not acked, \
             such as {missing:?}; {counted:?}"
        )
    }

    /// What came of it, by all who know.
    async fn look(&self, fleet: &Fleet, published: &Published) -> (Came, Vec<String>) {
        let mut faults = self.not_acked().await;
        faults.extend(self.not_done().await);
        let effects = self.effects().await;
        let lives = fleet.lives.lock().unwrap();
        let (came, more) = Came::of(self.mode, published, &self.gate.counted(), &lives, &effects);
        faults.extend(more);
        (came, faults)
    }

    /// What Pub/Sub would still deliver. The subscriptions are deleted.
    async fn not_acked(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for subscription in load::topics() {
            let left = self.pubsub.left(&subscription).await;
            if let Some(first) = left.first() {
                faults.push(format!("{subscription} still has {} messages, such as {first}", left.len()));
            }
            self.pubsub.delete(&subscription).await;
        }
        faults
    }

    /// The orders whose records do not say that they are done.
    async fn not_done(&self) -> Vec<String> {
        let store = self.site.store();
        let look = |number| {
            let (store, key) = (store.clone(), (CONSUMER, load::order(number)).into_key().unwrap());
            async move {
                let stored = store.read(&key).await.unwrap();
                let done = stored.as_ref().is_some_and(|stored| stored.record.state == State::Done);
                (!done).then(|| format!("{key} is not done: {stored:?}"))
            }
        };
        let looks = futures_util::stream::iter((0..self.orders).map(look)).buffer_unordered(16);
        looks.filter_map(async |fault| fault).collect().await
    }

    /// The order of each effect, and the id by which its keeper knows it again.
    async fn effects(&self) -> Vec<(String, String)> {
        match &self.database {
            Some(database) => {
                database.effects().await.into_iter().map(|order| (order, String::new())).collect()
            }
            None => {
                let asked = self.supplier.effects();
                let order = |effect: &crate::supplier::Effect| effect.header("order").unwrap().to_owned();
                asked.iter().map(|effect| (order(effect), effect.id().to_owned())).collect()
            }
        }
    }
}
