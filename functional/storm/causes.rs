//! Why a key was run again: each repeat has a cause that somebody saw, or it is a fault.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use pushonce::History;

use crate::fate::Point;
use crate::journal::{Line, Name, Said};

/// One life of an instance, as who struck it knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Life {
    /// When it was killed, in microseconds since the epoch; nobody else ends it before the storm is over.
    pub(crate) killed: Option<u64>,
    /// From when until when it stood still.
    pub(crate) stood: Vec<(u64, u64)>,
    /// What it wrote down.
    pub(crate) lines: Vec<Line>,
}

/// One run of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) name: Name,
    /// The number of the life.
    pub(crate) life: usize,
    pub(crate) began: u64,
    /// What it was told of the runs before.
    pub(crate) history: History,
    /// The store has acknowledged its done.
    pub(crate) recorded: bool,
    /// Where its process struck itself, by this run.
    pub(crate) point: Option<Point>,
    /// When the layer was through with it, and the outcome's name.
    pub(crate) ended: Option<(u64, String)>,
}

/// Why a run was followed by another of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Its process killed itself at the point.
    KilledAt(Point),
    /// Its process was killed at a moment that was drawn.
    Killed,
    /// Its process stood still, and its lease lapsed.
    Stopped,
    /// Its lease lapsed although nobody stopped it.
    Late,
    /// The store did not take its done, or nobody knew whether it had.
    Unrecorded,
    /// It failed, by its own word.
    Failed,
}

impl Cause {
    /// Nobody struck the instance of the run: the machine was too busy, or something is wrong.
    pub(crate) fn is_unstruck(&self) -> bool {
        matches!(self, Self::Late | Self::Unrecorded | Self::Failed)
    }
}

/// A run, the next one of its key, and why that was.
pub(crate) struct Repeat<'a> {
    pub(crate) earlier: &'a Run,
    pub(crate) later: &'a Run,
    /// Or what is wrong with it: nothing explains it.
    pub(crate) cause: Result<Cause, &'static str>,
}

impl fmt::Display for Repeat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { earlier, later, cause } = self;
        match cause {
            Ok(cause) => write!(f, "{cause:?}: ")?,
            Err(why) => write!(f, "{why}: ")?,
        }
        write!(f, "{earlier:?} was followed by {later:?}")
    }
}

/// The runs of each key, in the order of their claims, and what is wrong with what was written down of them.
pub(crate) fn runs(lives: &[Life]) -> (BTreeMap<String, Vec<Run>>, Vec<String>) {
    let (mut runs, mut faults) = (BTreeMap::<Name, Run>::new(), Vec::new());
    for (life, Line { at, name, said }) in
        lives.iter().enumerate().flat_map(|(life, lived)| lived.lines.iter().map(move |line| (life, line)))
    {
        if let Said::Began(history) = said {
            let (name, history) = (name.clone(), *history);
            let run = Run { name, life, began: *at, history, recorded: false, point: None, ended: None };
            if let Some(other) = runs.insert(run.name.clone(), run) {
                faults.push(format!("two runs have one fence, and one of them is {other:?}"));
            }
            continue;
        }
        let Some(run) = runs.get_mut(name) else {
            faults.push(format!("it never began, or not yet: {name:?}, {said:?}"));
            continue;
        };
        match said {
            Said::Began(_) => {}
            Said::Recorded => run.recorded = true,
            Said::Ended(outcome) => run.ended = Some((*at, outcome.clone())),
            Said::CameTo(point) => run.point = Some(*point),
        }
    }
    let mut by_key: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    for run in runs.into_values() {
        by_key.entry(run.name.key.clone()).or_default().push(run);
    }
    (by_key, faults)
}

/// The repeats of one key, whose runs are given in the order of their claims.
pub(crate) fn repeats<'a>(
    runs: &'a [Run],
    lives: &'a [Life],
    lease: Duration,
) -> impl Iterator<Item = Repeat<'a>> {
    runs.windows(2).enumerate().map(move |(before, pair)| {
        let (earlier, later) = (&pair[0], &pair[1]);
        let cause = cause(earlier, later, before + 1, &lives[earlier.life], lease);
        Repeat { earlier, later, cause }
    })
}

/// Why `earlier` was followed by `later`, of which there were `before` runs.
fn cause(
    earlier: &Run,
    later: &Run,
    before: usize,
    life: &Life,
    lease: Duration,
) -> Result<Cause, &'static str> {
    let ended = earlier.ended.as_ref().map(|(at, outcome)| (*at, outcome.as_str()));
    if earlier.recorded || ended.is_some_and(|(_, outcome)| outcome == "ran") {
        return Err("it was run again although it was recorded");
    }
    let told = match later.history {
        History::Fresh => 0,
        History::Failed { runs } | History::Unknown { runs } => runs,
    };
    if usize::try_from(told).is_ok_and(|told| told < before) {
        return Err("the repeat was not told of the runs before it");
    }
    if ended.is_some_and(|(at, outcome)| outcome == "failed" && at <= later.began) {
        return Ok(Cause::Failed);
    }
    // A fence is the time of its claim, and a claim is told by the store that the lease before it is over.
    if u128::from(later.name.fence - earlier.name.fence) < lease.as_micros() {
        return Err("it was taken over within its lease");
    }
    let over = |at: u64| at <= later.began;
    let stood = life.stood.iter().any(|&(from, until)| from <= later.began && earlier.began <= until);
    match (life.killed, ended) {
        // It was stopped first, and killed when it had been replaced: what counts is what came first.
        (_, None) if life.killed.is_none_or(|at| !over(at)) && stood => Ok(Cause::Stopped),
        // It stood at its point, and was killed when it went on.
        (Some(at), None) if over(at) && stood => Ok(Cause::Killed),
        (Some(at), None) if over(at) => Ok(earlier.point.map_or(Cause::Killed, Cause::KilledAt)),
        (_, Some(_)) if stood => Ok(Cause::Stopped),
        (_, Some((at, _))) if !over(at) => Ok(Cause::Late),
        (_, Some((_, "uncertain" | "unavailable"))) => Ok(Cause::Unrecorded),
        (Some(_), None) => Ok(Cause::Late),
        (None, None) => Err("nobody knows how it ended"),
        (_, Some(_)) => Err("how it ended is no cause"),
    }
}
