//! What came of a storm: counted, and held against what must hold.

use std::collections::{BTreeMap, BTreeSet};

use crate::causes::{Cause, Life, repeats, runs};
use crate::fate::{Act, Fate, Point};
use crate::gate::Counted;
use crate::journal::Said;
use crate::load::Published;
use crate::work::{LEASE, Mode};

/// One run in so many may lose its lease, or its connection, to a machine that is too busy. One in twenty-five
/// takes longer than its lease, so that without renewal there would be more.
const UNSTRUCK: usize = 400;

/// The figures of one storm.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) store: String,
    pub(crate) published: usize,
    pub(crate) delivered: usize,
    pub(crate) ran: usize,
    /// What Pub/Sub was told, by the outcome's name; an answer that has none, by its status.
    pub(crate) told: BTreeMap<String, usize>,
    pub(crate) repeats: BTreeMap<Cause, usize>,
    pub(crate) kills: usize,
    pub(crate) stops: usize,
    /// How often a process struck itself there.
    pub(crate) struck: BTreeMap<(Point, Act), usize>,
    /// The fewest and the most that a key has.
    pub(crate) effects: (usize, usize),
    /// How often the supplier was asked for an effect that it had.
    pub(crate) dropped: usize,
    pub(crate) seconds: u64,
}

impl Came {
    /// Counts, and gives what must not be.
    pub(crate) fn of(
        mode: Mode,
        published: &Published,
        gate: &Counted,
        lives: &[(Fate, Life)],
        effects: &[(String, String)],
    ) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let mut came = Self {
            published: published.len(),
            delivered: gate.delivered,
            told: gate.told.clone(),
            ..Self::default()
        };
        came.count_lives(mode, lives, &mut faults);
        came.count_effects(mode, published, effects, &mut faults);

        let lives: Vec<_> = lives.iter().map(|(_, life)| life.clone()).collect();
        let (runs, wrong) = runs(&lives);
        faults.extend(wrong);
        came.ran = runs.values().map(Vec::len).sum();
        for of_key in runs.values() {
            for repeat in repeats(of_key, &lives, LEASE) {
                match repeat.cause {
                    Ok(cause) => *came.repeats.entry(cause).or_default() += 1,
                    Err(_) => faults.push(repeat.to_string()),
                }
                if repeat.cause.is_ok_and(|cause| cause.is_unstruck()) {
                    crate::say(&format!("nobody struck it: {repeat}"));
                }
            }
            if of_key.iter().filter(|run| run.recorded).count() > 1 {
                faults.push(format!("two runs of one key were recorded: {of_key:#?}"));
            }
        }
        let unstruck = came.repeated(Cause::is_unstruck);
        if unstruck > came.ran / UNSTRUCK {
            faults.push(format!(
                "{unstruck} runs of {} were repeated although nobody struck their instances",
                came.ran
            ));
        }
        // A storm that interrupts nothing shows nothing.
        for (what, shown) in [
            ("no run was cut off by a kill", came.repeated(|cause| !matches!(cause, Cause::Stopped))),
            ("no run outlived its lease standing still", came.repeated(|cause| *cause == Cause::Stopped)),
            ("no effect was cut off from its done", came.dropped + usize::from(mode == Mode::Transaction)),
            ("no delivery met a recorded key", came.told("duplicate")),
            ("no delivery met a holder", came.told("in-progress")),
        ] {
            if shown == 0 {
                faults.push(what.to_owned());
            }
        }
        (came, faults)
    }

    fn count_lives(&mut self, mode: Mode, lives: &[(Fate, Life)], faults: &mut Vec<String>) {
        for (fate, life) in lives {
            self.kills += usize::from(life.killed.is_some());
            self.stops += life.stood.len();
            for line in &life.lines {
                if let (Said::CameTo(point), Fate::At { act, .. }) = (&line.said, fate) {
                    *self.struck.entry((*point, *act)).or_default() += 1;
                }
            }
        }
        for &point in mode.points() {
            for act in [Act::Die, Act::Stand] {
                if !self.struck.contains_key(&(point, act)) {
                    faults.push(format!("nobody came to {point}, to {act:?} there"));
                }
            }
        }
    }

    /// Each effect is an order and the id by which whoever keeps it knows it again. A supplier keeps
    /// one effect for each id; a table keeps every row.
    fn count_effects(
        &mut self,
        mode: Mode,
        published: &Published,
        effects: &[(String, String)],
        faults: &mut Vec<String>,
    ) {
        let mut kept: BTreeMap<&str, Vec<&str>> =
            published.values().map(|order| (order.as_str(), Vec::new())).collect();
        let mut known = BTreeSet::new();
        for (order, id) in effects {
            if mode == Mode::Transaction || known.insert(id) {
                kept.entry(order).or_default().push(id);
            } else {
                self.dropped += 1;
            }
        }
        let counts = || kept.values().map(Vec::len);
        self.effects = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let others = kept.iter().filter(|(_, effects)| effects.len() != 1);
        faults.extend(others.map(|(order, effects)| format!("{order} has {} effects", effects.len())));
    }

    /// How many deliveries had that outcome.
    pub(crate) fn told(&self, outcome: &str) -> usize {
        self.told.get(outcome).copied().unwrap_or_default()
    }

    /// How many repeats had such a cause.
    pub(crate) fn repeated(&self, wanted: impl Fn(&Cause) -> bool) -> usize {
        self.repeats.iter().filter(|(cause, _)| wanted(cause)).map(|(_, repeats)| repeats).sum()
    }
}
