//! At every answer, and from time to time: what was told, and what must have been stored by now.

use pushonce::Key;
use pushonce::store::record::State;
use tokio::time::Instant;

use super::{End, Health, Ledger, QUIET, Records, Rule, UNDOING, finished};
use crate::schedule::{Route, Schedule};
use crate::totals::Seen;

impl Ledger {
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
