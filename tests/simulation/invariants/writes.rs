//! At every write: who may write over what.

use pushonce::Key;
use pushonce::store::record::{Ended, Record, State, Verb};
use tokio::time::Instant;

use super::entries::is_entry;
use super::{End, Entry, Ledger, Rule, Won, finished};
use crate::totals::Seen;

impl Ledger {
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
        if is_entry(key) {
            return self.noted(before, next);
        }
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
            Some(End::Cancelled) if !self.cancel_safe => {
                self.violated(Rule::CancelLapses, format!("{key}: fence {fence} was cancelled and released"));
            }
            Some(End::Failed | End::Panicked | End::Cancelled) => self.log(key).allowed += 1,
            end => {
                let text = format!("{key}: fence {fence} released, its run: {end:?}");
                self.violated(Rule::EndIsStored, text);
            }
        }
    }
}
