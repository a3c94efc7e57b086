//! A contender at rest: how fast it starts, what it holds, and how often it goes to its store.

use std::time::Duration;

use crate::contender::{Contender, Store, Workers};
use crate::entry::Entry;
use crate::load::{Connection, Load, new_id};
use crate::measure::{Plan, median};
use crate::proxy::{Proxy, Speech};

/// A server at rest, medians of its starts.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) store: Store,
    pub(crate) contender: Contender,
    pub(crate) started_in: Duration,
    /// KiB, after the first message; after all of them; and at the peak.
    pub(crate) memory: [u64; 3],
    /// Store trips of a first message and of a duplicate, where there is a wire.
    pub(crate) trips: Option<[f64; 2]>,
}

/// How long a start takes, what it holds, and how often it goes to the store.
pub(crate) async fn at_rest(contender: Contender, store: Store, workers: Workers, plan: Plan) -> Rest {
    let (mut started, mut memory) = (Vec::new(), [const { Vec::new() }; 3]);
    for _ in 0..plan.starts {
        let server = Entry::new(contender, store, workers).start().await;
        started.push(server.started_in);
        memory[0].push(server.memory().0);
        let time = Duration::from_secs(60);
        Load { port: server.port, in_flight: 16, messages: plan.messages, time }.send().await;
        let (now, peak) = server.memory();
        memory[1].push(now);
        memory[2].push(peak);
    }
    let trips = trips(contender, store).await;
    Rest { store, contender, started_in: median(started), memory: memory.map(median), trips }
}

/// By a proxy on the way of one connection that is warm.
async fn trips(contender: Contender, store: Store) -> Option<[f64; 2]> {
    const MESSAGES: u64 = 20;
    let speech = if store == Store::Datastore { Speech::Streams } else { Speech::Turns };
    let proxy = Proxy::start(&store.host()?, speech).await.expect("a proxy");
    let server = Entry::new(contender, store, Workers::ONE).through(proxy.address()).start().await;
    let mut connection = Connection::open(server.port).await;
    // Some drivers prepare a statement only when it has come five times.
    for id in [(); 10].map(|()| new_id()) {
        assert_eq!([connection.push(id).await, connection.push(id).await], [200, 204]);
    }
    let mut trips = [0, 0];
    for _ in 0..MESSAGES {
        let id = new_id();
        for (status, trips) in [200, 204].into_iter().zip(&mut trips) {
            proxy.take();
            assert_eq!(connection.push(id).await, status);
            *trips += proxy.take();
        }
    }
    Some(trips.map(|trips| trips as f64 / MESSAGES as f64))
}
