//! At every step of the work, and at every answer: who may begin, and what is told.

use super::bounds::{How, LEASE, TTL};
use super::kept::Seen;
use super::play::Play;
use super::reached::Reached;
use super::rules::{Rule, finished};
use super::walk::Claim;
use crate::lease::History;
use crate::lease::machine::Commit;
use crate::store::record::{State, Verb};

impl Play<'_> {
    /// The work begins under a claim.
    pub(super) fn began(&mut self, key: usize, claim: &Claim, me: u8) {
        let marks = claim.kept.verb == Verb::AtMostOnce;
        if !marks && claim.since * 2 >= LEASE {
            self.broken(Rule::FreshWin);
        }
        if self.world.runs[usize::from(me)].undone {
            self.broken(Rule::AbandonedIsUndone);
        }
        self.told(key, History::of(&claim.kept));
        let log = &mut self.world.logs[key];
        let second = claim.kept.fence <= log.ran;
        log.ran = log.ran.max(claim.kept.fence);
        log.begun += 1;
        log.marks += u8::from(marks);
        log.open += 1;
        log.last = Some(me);
        let uncaused = log.begun > 1 + log.allowed;
        let within = log.done.is_some_and(|done| done < TTL);
        let twice = marks && log.marks > 1;
        for (broken, rule) in [
            (second, Rule::OneHolder),
            (uncaused, Rule::RunsAreCaused),
            (within, Rule::DoneStays),
            (twice, Rule::AtMostOnce),
        ] {
            if broken {
                self.broken(rule);
            }
        }
    }

    fn told(&mut self, key: usize, history: History) {
        let log = &self.world.logs[key];
        let open = u32::from(log.open);
        let ended = log.last.and_then(|number| self.world.runs[usize::from(number)].ended);
        let (honest, reached) = match history {
            History::Fresh => (open == 0, None),
            History::Failed { runs } => {
                let failed = matches!(ended, None | Some(How::Failed | How::Rejected));
                (runs >= open && failed, Some(Reached::RerunAfterFailure))
            }
            History::Unknown { runs } => (runs >= open, Some(Reached::RerunAfterUnknown)),
        };
        if !honest {
            self.broken(Rule::HistoryTold);
        }
        if let Some(reached) = reached {
            self.reached(reached);
        }
    }

    /// A duplicate is told that the key is done.
    pub(super) fn skipped(&mut self, key: usize, standing: &Seen) {
        let marked = standing.kept.state == State::Done && !finished(&standing.kept);
        if !marked && self.world.logs[key].recorded == 0 {
            self.broken(Rule::AckedWasDone);
        }
        self.reached(if marked { Reached::Marked } else { Reached::Duplicate });
    }

    /// The end of the work is settled, as far as its holder is told.
    pub(super) fn settled(&mut self, key: usize, me: u8, completes: bool, commit: Commit) {
        let recorded = self.world.logs[key].recorded & (1 << me) != 0;
        let stands = self.world.store[key].as_ref().is_some_and(|entry| {
            entry.kept.holder == Some(self.id(me))
                && !finished(&entry.kept)
                && entry.kept.state != State::Released
        });
        match commit {
            Commit::Recorded if completes && !recorded => self.broken(Rule::RanIsRecorded),
            Commit::FencedOut if stands => self.broken(Rule::EndIsStored),
            Commit::FencedOut => self.reached(Reached::FencedOut),
            Commit::Recorded | Commit::AlreadyDone => {}
        }
    }
}
