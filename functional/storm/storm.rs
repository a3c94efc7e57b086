//! One storm on one store: four instances behind the emulator's pushes, struck while messages come.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use pushonce::store::record::State;
use pushonce::{IntoKey as _, Store};
use tokio::sync::watch;

use crate::came::Came;
use crate::dice::Dice;
use crate::fate::Deck;
use crate::fleet::{Fleet, Weather, stands};
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
const REST: Duration = Duration::from_secs(90);
/// For the instances to end, and for the looks at the end.
const LAST: Duration = Duration::from_secs(60);

/// A storm over so many orders, and what must not have been.
pub(crate) async fn storm(site: &Site, mode: Mode, orders: usize, seed: u64) -> (Came, Vec<String>) {
    let began = Instant::now();
    let over = PACE * u32::try_from(orders).unwrap();
    let limit = over + REST + LAST;
    let stormed = tokio::time::timeout(limit, weathered(site, mode, (orders, over), seed)).await;
    let (mut came, faults) =
        stormed.unwrap_or_else(|_| panic!("{}: the end did not come in {limit:?}", site.name));
    came.store = site.name.to_owned() + if mode == Mode::Transaction { ", transaction" } else { "" };
    came.seconds = began.elapsed().as_secs();
    let faults = faults.into_iter().map(|fault| format!("{}: {fault}", came.store)).collect();
    (came, faults)
}

async fn weathered(
    site: &Site,
    mode: Mode,
    (orders, over): (usize, Duration),
    seed: u64,
) -> (Came, Vec<String>) {
    let (supplier, gate, pubsub) =
        (Supplier::start().await, Arc::new(Gate::open().await), PubSub::from_env("storm").await);
    let told = Told {
        mode,
        variables: site.variables(),
        supplier: supplier
            .url("/")
            .parse::<http::Uri>()
            .unwrap()
            .authority()
            .unwrap()
            .as_str()
            .parse()
            .unwrap(),
    };
    let database = (mode == Mode::Transaction).then(|| Database::at(&told.variables[0].1));
    if let Some(database) = &database {
        database.create().await;
    }
    for topic in load::topics() {
        pubsub.topic(&topic).await;
        pubsub
            .push(
                &topic,
                &topic,
                &gate.url(),
                Push::new().ack_deadline(u32::try_from(ACK_DEADLINE.as_secs()).unwrap()),
            )
            .await;
    }
    let fleet = Fleet {
        told,
        gate: gate.clone(),
        weather: watch::Sender::new(Weather::Storm),
        deck: Deck::of(mode, seed),
        dice: Dice::of(seed.wrapping_add(1)),
        stands: stands(site.name),
        lives: Mutex::default(),
    };

    let (dice, mut published, mut faults) = (Dice::of(seed.wrapping_add(2)), Published::new(), Vec::new());
    let load = async {
        let all = tokio::time::timeout(over + REST, async {
            load::publish(&pubsub, &gate, (orders, over), &dice, &mut published).await;
            fleet.weather.send_replace(Weather::Calm);
            while !gate.counted().acked_all(published.keys()) {
                tokio::time::sleep(crate::POLL).await;
            }
        });
        if all.await.is_err() {
            faults.push(missing(&published, &gate, orders, over + REST));
        }
        fleet.weather.send_replace(Weather::Over);
    };
    tokio::join!(fleet.sail(), load);

    for subscription in load::topics() {
        let left = pubsub.left(&subscription).await;
        if let Some(first) = left.first() {
            faults.push(format!("{subscription} still has {} messages, such as {first}", left.len()));
        }
        pubsub.delete(&subscription).await;
    }
    let effects = match &database {
        Some(database) => database.effects().await.into_iter().map(|order| (order, String::new())).collect(),
        None => asked(&supplier),
    };
    faults.extend(not_done(&site.store(), orders).await);
    let (came, more) = Came::of(mode, &published, &gate.counted(), &fleet.lives.lock().unwrap(), &effects);
    faults.extend(more);
    (came, faults)
}

/// The order and the effect id of each request of an effect.
fn asked(supplier: &Supplier) -> Vec<(String, String)> {
    let effects = supplier.effects();
    effects
        .iter()
        .map(|effect| (effect.header("order").unwrap().to_owned(), effect.id().to_owned()))
        .collect()
}

/// What a storm waits for that does not end.
fn missing(published: &Published, gate: &Gate, orders: usize, limit: Duration) -> String {
    let counted = gate.counted();
    let mut missing: Vec<_> = published.iter().filter(|(id, _)| !counted.acked.contains(*id)).collect();
    missing.sort();
    let (all, many) = (published.len(), missing.len());
    missing.truncate(10);
    format!(
        "after {limit:?} {all} messages of {orders} orders were published and {many} not acked, such as {missing:?}; \
         Pub/Sub was told {:?}",
        counted.told
    )
}

/// The orders whose records do not say that they are done.
async fn not_done(store: &Arc<dyn Store>, orders: usize) -> Vec<String> {
    let look = |number| async move {
        let key = (CONSUMER, load::order(number)).into_key().unwrap();
        let stored = store.read(&key).await.unwrap();
        let done = stored.as_ref().is_some_and(|stored| stored.record.state == State::Done);
        (!done).then(|| format!("{key} is not done: {stored:?}"))
    };
    futures_util::stream::iter(0..orders)
        .map(look)
        .buffer_unordered(16)
        .filter_map(async |fault| fault)
        .collect()
        .await
}
