//! What must hold, whatever happens: checked at every write, at every step of the work and at every answer.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use pushonce::store::record::{Ended, Progress, Record, State, Verb};
use pushonce::{History, Key, Lease};
use tokio::time::Instant;

use crate::schedule::{Route, Schedule, secs};
use crate::totals::{Seen, Totals};

/// After this long without a mishap everything that a live instance still has to write is written:
/// its longest pause between two tries is 30 seconds, and a claim may wait for an entity.
pub(crate) const QUIET: Duration = secs(50);
/// The same for an undo, which pauses a second at most and calls for five.
const UNDOING: Duration = secs(12);

/// One rule. Its name is what a planted fault is expected to break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Never two live holders within a lease by the store's clock.
    OneHolder,
    /// Whose lease has something left, as the work sees it, holds the key.
    BeliefHolds,
    /// A run begins while more than half of its lease is left.
    FreshWin,
    /// The fence of a key rises with every claim and release, also across deletion.
    FenceRises,
    /// Whoever was replaced writes nothing.
    ZombieWritesNothing,
    /// A done key is neither overwritten nor run again within its ttl.
    DoneStays,
    /// Nothing is recorded as done that nobody did.
    DoneWasRun,
    /// `at_most_once` never runs twice within its ttl.
    AtMostOnce,
    /// Runs per key ≤ 1 + failures + crashes + cancels + lapsed leases.
    RunsAreCaused,
    /// Every rerun says in its history that it is one.
    HistoryTold,
    /// What was told as `ran` is recorded.
    RanIsRecorded,
    /// Nothing is acked that nobody did (or, for `at_most_once`, marked).
    AckedWasDone,
    /// After the work succeeded nothing nacks.
    SuccessIsAcked,
    /// The end of the work is stored once the store is healthy, unless somebody took the key over.
    EndIsStored,
    /// A claim that nobody works on does not hold its key.
    AbandonedIsUndone,
    /// Every message ends acked or dead-lettered.
    EveryMessageEnds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) text: String,
}

/// How a run really ended, whatever was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded,
    Failed,
    Panicked,
    Cancelled,
    Crashed,
}

#[derive(Debug)]
struct Run {
    fence: u64,
    delivery: u64,
    instance: usize,
    end: Option<(End, Instant)>,
}

/// A claim that landed.
#[derive(Debug)]
struct Won {
    instance: usize,
    sent: Instant,
    landed: Instant,
    run: Option<usize>,
}

/// What is known of a key from outside.
#[derive(Debug, Default)]
struct Log {
    highest: u64,
    /// Runs since the key was last done or deleted, and what allows more than one.
    begun: u32,
    allowed: u32,
    /// Runs that began and are not recorded.
    open: Vec<usize>,
    last_begun: u64,
    /// Since when it is recorded.
    done: Option<Instant>,
    /// When a run of `at_most_once` was last marked.
    marked: Option<Instant>,
    /// Fences of the runs that are recorded.
    recorded: Vec<u64>,
}

/// A record as the store keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) version: u64,
    pub(crate) written: Instant,
}

impl Entry {
    /// Live by the store's clock.
    fn live(&self, now: Instant) -> bool {
        let age = self.record.aged + (now - self.written);
        match self.record.state {
            State::Claimed => age < self.record.lease,
            State::Done => age < self.record.ttl,
            State::Released => false,
        }
    }
}

pub(crate) type Records = BTreeMap<Key, Entry>;

/// How an instance is, for the rules that hold only once it has had time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Health {
    pub(crate) alive: bool,
    /// When it was last hindered, or will be no more.
    pub(crate) quiet_since: Instant,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) totals: Totals,
    pub(crate) violations: Vec<Violation>,
    runs: Vec<Run>,
    keys: BTreeMap<Key, Log>,
    won: BTreeMap<(Key, u64), Won>,
}

fn finished(record: &Record) -> bool {
    record.state == State::Done
        && record.receipt.as_ref().is_some_and(|receipt| receipt.progress == Progress::Finished)
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            totals: Totals::new(),
            violations: Vec::new(),
            runs: Vec::new(),
            keys: BTreeMap::new(),
            won: BTreeMap::new(),
        }
    }

    pub(crate) fn violated(&mut self, rule: Rule, text: impl Display) {
        self.violations.push(Violation { rule, text: text.to_string() });
    }

    fn run_under(&self, key: &Key, fence: u64) -> Option<&Run> {
        let run = self.won.get(&(key.clone(), fence))?.run?;
        Some(&self.runs[run])
    }

    /// A write that landed: `next` over `before`.
    pub(crate) fn written(
        &mut self,
        key: &Key,
        before: Option<&Entry>,
        next: &Record,
        instance: usize,
        sent: Instant,
        now: Instant,
    ) {
        let same = before.is_some_and(|before| before.record.holder == next.holder);
        let claims =
            !same && (next.state == State::Claimed || (next.state == State::Done && !finished(next)));
        self.fences(key, before, next, claims);
        if let Some(before) = before {
            self.over(key, before, next, claims, now);
        }
        if claims {
            let won = Won { instance, sent, landed: now, run: None };
            self.won.insert((key.clone(), next.fence), won);
        }
        match before.map(|before| &before.record) {
            _ if finished(next) && before.is_none_or(|before| !finished(&before.record)) => {
                self.completed(key, before, next, now);
            }
            Some(record) if same && record.state != State::Released && next.state == State::Released => {
                self.released(key, record.fence, next);
            }
            Some(record) if same && record.state == next.state && !finished(next) => {
                let forestalls = next.state == State::Released || !next.aged.is_zero();
                self.totals.add(if forestalls { Seen::Forestalled } else { Seen::Renewals });
            }
            None if next.state == State::Released => self.totals.add(Seen::Forestalled),
            _ => {}
        }
    }

    fn fences(&mut self, key: &Key, before: Option<&Entry>, next: &Record, claims: bool) {
        let releases = next.state == State::Released
            && before.is_none_or(|before| before.record.state != State::Released);
        let log = self.keys.entry(key.clone()).or_default();
        let highest = log.highest;
        log.highest = highest.max(next.fence);
        if next.fence < highest || ((claims || releases) && next.fence == highest) {
            self.violated(Rule::FenceRises, format!("{key}: {} after {highest}", next.fence));
        }
    }

    fn over(&mut self, key: &Key, before: &Entry, next: &Record, claims: bool, now: Instant) {
        let (record, live) = (&before.record, before.live(now));
        let same = record.holder == next.holder;
        if live && record.state == State::Claimed && !same {
            self.violated(Rule::OneHolder, format!("{key}: {next:?} over the live {record:?}"));
        }
        let undoes = same && !finished(record) && next.state == State::Released;
        if live && record.state == State::Done && !(same && next.state == State::Done) && !undoes {
            self.violated(Rule::DoneStays, format!("{key}: {next:?} over {record:?}"));
        }
        if !same && !claims {
            self.violated(Rule::ZombieWritesNothing, format!("{key}: {next:?} over {record:?}"));
        }
        if claims && record.state == State::Claimed {
            let run = self.run_under(key, record.fence);
            let (began, works) = (run.is_some(), run.is_some_and(|run| run.end.is_none()));
            if began {
                self.totals.add(Seen::TakeOvers);
                self.log(key).allowed += 1;
            }
            if works {
                self.totals.add(Seen::Zombies);
            }
        }
        if claims && record.state == State::Done {
            self.totals.add(Seen::TtlOver);
            self.forget(key);
        }
        if finished(next) && record.state == State::Claimed && !live {
            self.totals.add(Seen::CompletedAfterLapse);
        }
    }

    fn completed(&mut self, key: &Key, before: Option<&Entry>, next: &Record, now: Instant) {
        let fence = before.map_or(0, |before| before.record.fence);
        let end = self.run_under(key, fence).and_then(|run| run.end).map(|(end, _)| end);
        if end != Some(End::Succeeded) {
            self.violated(Rule::DoneWasRun, format!("{key}: fence {fence} is done, its run: {end:?}"));
        }
        let log = self.log(key);
        log.recorded.push(fence);
        log.open.clear();
        // A mark's window runs from the mark.
        let since = if next.verb == Verb::AtMostOnce { log.marked.unwrap_or(now) } else { now };
        log.done = Some(since);
    }

    fn released(&mut self, key: &Key, fence: u64, next: &Record) {
        let Some(run) = self.run_under(key, fence) else { return self.totals.add(Seen::Undone) };
        let end = run.end.map(|(end, _)| end);
        match end {
            Some(End::Succeeded) if next.verb == Verb::Mutex && next.ended == Ended::Fresh => {
                self.forget(key);
                self.log(key).recorded.push(fence);
            }
            Some(End::Failed | End::Panicked | End::Cancelled) => self.log(key).allowed += 1,
            end => {
                self.violated(Rule::EndIsStored, format!("{key}: fence {fence} released, its run: {end:?}"))
            }
        }
    }

    /// A new window: what was before is recorded, over, or deleted.
    fn forget(&mut self, key: &Key) {
        let log = self.log(key);
        (log.begun, log.allowed, log.done) = (0, 0, None);
        log.open.clear();
    }

    /// Garbage collection took the record.
    pub(crate) fn deleted(&mut self, key: &Key) {
        self.totals.add(Seen::Deleted);
        self.forget(key);
    }

    fn log(&mut self, key: &Key) -> &mut Log {
        self.keys.entry(key.clone()).or_default()
    }

    /// The work begins.
    pub(crate) fn began(
        &mut self,
        schedule: &Schedule,
        records: &Records,
        lease: &Lease,
        (delivery, instance): (u64, usize),
        now: Instant,
    ) -> usize {
        let (key, fence) = (lease.key().clone(), lease.fence());
        let id = self.runs.len();
        self.totals.add(Seen::Runs);
        self.runs.push(Run { fence, delivery, instance, end: None });
        self.believes(id, records, lease);
        // A mark's window runs from before it was first sent, at most ten seconds before it landed.
        let window = if schedule.route.marks() { schedule.ttl - secs(10) } else { schedule.ttl };
        if !schedule.route.marks() && lease.left() <= schedule.lease / 2 {
            self.violated(
                Rule::FreshWin,
                format!("{key}: fence {fence} begins with {:?} left", lease.left()),
            );
        }
        self.told(&key, lease.history());
        let landed = self.won.get_mut(&(key.clone(), fence)).map(|won| {
            won.run = Some(id);
            won.landed
        });
        let log = self.log(&key);
        let (highest, marked, done) = (log.last_begun, log.marked, log.done);
        log.last_begun = highest.max(fence);
        log.begun += 1;
        let (begun, allowed) = (log.begun, log.allowed);
        log.open.push(id);
        log.marked = landed;
        if fence <= highest {
            self.violated(
                Rule::OneHolder,
                format!("{key}: a run with fence {fence} after one with {highest}"),
            );
        }
        if begun > 1 + allowed {
            self.violated(Rule::RunsAreCaused, format!("{key}: {begun} runs, {allowed} causes for another"));
        }
        if done.is_some_and(|since| now - since < window) {
            self.violated(Rule::DoneStays, format!("{key}: fence {fence} runs within the ttl"));
        }
        let again = marked.zip(landed).is_some_and(|(marked, landed)| landed - marked < window);
        if schedule.route.marks() && again {
            self.violated(Rule::AtMostOnce, format!("{key}: fence {fence} runs a second time"));
        }
        id
    }

    /// The entity that a run works under is held by it alone.
    pub(crate) fn began_under(&mut self, id: usize, entity: &Key, records: &Records, now: Instant) {
        let standing = records.get(entity).filter(|e| e.record.state == State::Claimed && e.live(now));
        let won = standing.and_then(|entry| self.won.get_mut(&(entity.clone(), entry.record.fence)));
        match won {
            Some(won) if won.run.is_none() => won.run = Some(id),
            won => {
                let text = format!("{entity}: a run begins while the entity is held by {won:?}");
                self.violated(Rule::OneHolder, text);
            }
        }
    }

    fn told(&mut self, key: &Key, history: History) {
        let log = self.log(key);
        let (open, last) = (log.open.len() as u32, log.open.last().copied());
        let end = last.and_then(|last| self.runs[last].end).map(|(end, _)| end);
        let honest = match history {
            History::Fresh => last.is_none(),
            History::Failed { runs } => runs >= open && (last.is_none() || end == Some(End::Failed)),
            History::Unknown { runs } => runs >= open,
        };
        if !honest {
            self.violated(
                Rule::HistoryTold,
                format!("{key}: {history:?} after {open} runs, the last {end:?}"),
            );
        }
        match history {
            History::Fresh => {}
            History::Failed { .. } => self.totals.add(Seen::RerunsAfterFailure),
            History::Unknown { .. } => self.totals.add(Seen::RerunsAfterUnknown),
        }
    }

    /// Who believes that the lease has something left must hold the key.
    pub(crate) fn believes(&mut self, id: usize, records: &Records, lease: &Lease) {
        if lease.left().is_zero() {
            return;
        }
        let (key, fence) = (lease.key(), self.runs[id].fence);
        let holds = records.get(key).is_some_and(|entry| {
            entry.record.fence == fence && entry.record.state != State::Released && !finished(&entry.record)
        });
        if !holds {
            let text = format!("{key}: fence {fence} has {:?} left of {:?}", lease.left(), records.get(key));
            self.violated(Rule::BeliefHolds, text);
        }
    }

    /// The work ended, unless it had before.
    pub(crate) fn ended(&mut self, id: usize, end: End, now: Instant) -> bool {
        let run = &mut self.runs[id];
        if run.end.is_some() {
            return false;
        }
        run.end = Some((end, now));
        self.totals.add(match end {
            End::Succeeded => Seen::Successes,
            End::Failed => Seen::Failures,
            End::Panicked => Seen::Panics,
            End::Cancelled => Seen::Cancels,
            End::Crashed => Seen::KilledAtWork,
        });
        true
    }

    /// An instance was killed, and with it the work in it.
    pub(crate) fn crashed(&mut self, instance: usize, now: Instant) {
        self.totals.add(Seen::Crashes);
        for id in 0..self.runs.len() {
            if self.runs[id].instance == instance {
                self.ended(id, End::Crashed, now);
            }
        }
    }

    /// What a delivery was told.
    pub(crate) fn answered(&mut self, route: Route, key: &Key, delivery: u64, status: u16, outcome: &str) {
        let run = self.runs.iter().find(|run| run.delivery == delivery);
        let (fence, end) = run.map_or((0, None), |run| (run.fence, run.end.map(|(end, _)| end)));
        let log = self.keys.get(key);
        let recorded = log.is_some_and(|log| !log.recorded.is_empty());
        let mine = log.is_some_and(|log| log.recorded.contains(&fence));
        let marked = route.marks() && self.won.keys().any(|(won, _)| won == key);
        let succeeded = end == Some(End::Succeeded);
        let said = format!("{key}: delivery {delivery} was told {status} {outcome}, its run: {end:?}");
        let (seen, justified) = match outcome {
            "ran" => (Seen::Ran, succeeded),
            "uncertain" => (Seen::Uncertain, succeeded),
            "duplicate" => (Seen::Duplicates, recorded || marked),
            "lost" => (Seen::Lost, status >= 300 || marked),
            "in-progress" => (Seen::InProgress, status >= 300),
            "failed" => (Seen::Failed, status >= 300),
            "unavailable" => (Seen::Unavailable, status >= 300),
            _ => (Seen::Failed, false),
        };
        self.totals.add(seen);
        if !justified {
            self.violated(Rule::AckedWasDone, &said);
        }
        if succeeded && status >= 300 {
            self.violated(Rule::SuccessIsAcked, &said);
        }
        // A mutex records nothing, and the mark of `at_most_once` stands already.
        if outcome == "ran" && !mine && !route.marks() && route != Route::MutexVerb {
            self.violated(Rule::RanIsRecorded, said);
        }
    }

    /// What must have become of every claim that stands, by now.
    pub(crate) fn looked(
        &mut self,
        schedule: &Schedule,
        records: &Records,
        now: Instant,
        health: impl Fn(usize) -> Health,
    ) {
        for (key, entry) in records {
            if entry.record.state == State::Released || finished(&entry.record) {
                continue;
            }
            let Some(won) = self.won.get(&(key.clone(), entry.record.fence)) else { continue };
            let health = health(won.instance);
            if !health.alive {
                continue;
            }
            let Some(run) = won.run else {
                // An undo ends one lease after it began; what lands later heals by lapsing.
                let waits = if schedule.route == Route::Serialize { QUIET } else { UNDOING };
                let due = health.quiet_since.max(won.landed) + waits;
                if now >= due && due <= won.sent + schedule.lease && entry.live(now) {
                    let text = format!("{key}: nobody works under {:?}", entry.record);
                    self.violated(Rule::AbandonedIsUndone, text);
                }
                continue;
            };
            if now < health.quiet_since + QUIET {
                continue;
            }
            let Some((end, at)) = self.runs[run].end else { continue };
            // A cancelled run is left to lapse; a mark stays, whatever became of its run.
            let stored = match end {
                End::Succeeded => true,
                End::Failed | End::Panicked => !schedule.route.marks(),
                End::Cancelled => schedule.cancel_safe && !schedule.route.marks(),
                End::Crashed => false,
            };
            if stored && now >= at + QUIET {
                let text = format!("{key}: its run {end:?} {:?} ago; {:?} stands", now - at, entry.record);
                self.violated(Rule::EndIsStored, text);
            }
        }
    }
}
