//! Ratios between contenders in one run, and what they must reach.

use crate::contender::{Contender, Store};
use crate::measure::{IN_FLIGHT, Turn, median};
use crate::rest::Rest;

/// A ratio of the throughput of two contenders.
pub(crate) struct Ratio {
    pub(crate) store: Store,
    pub(crate) in_flight: usize,
    pub(crate) to: Contender,
    pub(crate) median: f64,
    /// The least and the most of a round.
    pub(crate) spread: [f64; 2],
    /// At least so much, where a target was set.
    pub(crate) target: Option<f64>,
}

impl Ratio {
    pub(crate) fn is_reached(&self) -> Option<bool> {
        self.target.map(|target| self.median >= target)
    }
}

/// What pushonce has to reach of the other's throughput.
fn target(store: Store, to: Contender) -> Option<f64> {
    match (store, to) {
        (Store::Postgres, Contender::ByHand) => Some(0.9),
        (Store::Memory, Contender::Peer) => Some(10.0),
        (Store::Redis, Contender::Peer) => Some(6.0),
        (Store::Datastore, Contender::Peer) => Some(3.0),
        (Store::Postgres | Store::Datastore, Contender::Loop) => Some(0.8),
        (Store::Memory, Contender::Axum) => Some(0.8),
        _ => None,
    }
}

/// Pushonce to each other contender, round by round: what slows the machine slows both.
pub(crate) fn ratios(turns: &[Turn]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for store in Store::ALL {
        for to in store.contenders().iter().copied().filter(|to| *to != Contender::Pushonce) {
            for in_flight in IN_FLIGHT {
                let rates = |of: Contender| {
                    let turns = turns.iter().filter(move |turn| {
                        (turn.store, turn.contender, turn.in_flight) == (store, of, in_flight)
                    });
                    turns.map(|turn| turn.rate)
                };
                let rounds: Vec<f64> =
                    rates(Contender::Pushonce).zip(rates(to)).map(|(our, its)| our / its).collect();
                if rounds.is_empty() {
                    continue;
                }
                let spread = [f64::min, f64::max].map(|of| rounds.iter().copied().reduce(of).expect("some"));
                let target = target(store, to);
                ratios.push(Ratio { store, in_flight, to, median: median(rounds), spread, target });
            }
        }
    }
    ratios
}

/// The trips that a first message may take: ours at most; the peer's as its design has them, where one was named.
pub(crate) fn trips_of(rest: &Rest) -> Option<f64> {
    match (rest.contender, rest.store) {
        (Contender::Pushonce, _) => Some(2.0),
        (Contender::Peer, Store::Datastore) => Some(6.0),
        (Contender::Peer, Store::Postgres) => Some(7.0),
        _ => None,
    }
}
