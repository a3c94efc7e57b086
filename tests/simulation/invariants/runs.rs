//! At every step of the work: who may begin, and what the work believes.

use pushonce::store::record::State;
use pushonce::{History, Key, Lease};
use tokio::time::Instant;

use super::{End, Ledger, Records, Rule, Run, finished};
use crate::schedule::{Route, Schedule, secs};
use crate::totals::Seen;

impl Ledger {
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
        self.runs.push(Run { key: key.clone(), fence, delivery, instance, end: None });
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
        let pending = self.knows(schedule, id);
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
        if pending {
            self.violated(Rule::PendingIsNotRerun, format!("{key}: fence {fence} runs what is done"));
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

    /// Whether a delivery came to an instance that knew that the key is done, and ran it all the same.
    fn knows(&self, schedule: &Schedule, id: usize) -> bool {
        let Run { key, fence, instance, delivery, .. } = &self.runs[id];
        let mut claims = self.won.range((key.clone(), 0)..(key.clone(), *fence)).rev();
        let Some((_, earlier)) = claims.next() else { return false };
        let Some(run) = earlier.run.map(|run| &self.runs[run]) else { return false };
        let Some((End::Succeeded, at)) = run.end else { return false };
        let recorded = self.keys.get(key).is_some_and(|log| log.recorded.contains(&run.fence));
        // The guard of the key hears of it when the entity is released, five seconds later at most.
        let told = if schedule.route == Route::Serialize { at + secs(5) } else { at };
        let known = !recorded && run.instance == *instance && self.delivered[*delivery as usize] > told;
        known && !matches!(schedule.route, Route::MutexVerb | Route::AtMostOnce | Route::AtMostOnceVerb)
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
}
