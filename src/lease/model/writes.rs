//! At every write: who may write over what.

use super::bounds::{FAR, How};
use super::kept::{Kept, Seen};
use super::play::Play;
use super::reached::Reached;
use super::rules::{Gone, Rule, finished, number};
use crate::lease::status::{Status, is_started};
use crate::store::record::{Ended, State, Verb};

impl Play<'_> {
    /// A write that landed: `next` over `before`.
    pub(super) fn written(&mut self, key: usize, before: Option<&Seen>, next: &Kept, operator: bool) {
        let same = before.is_some_and(|before| before.kept.holder == next.holder);
        let claims =
            !same && (next.state == State::Claimed || (next.state == State::Done && is_started(next)));
        let releases =
            next.state == State::Released && before.is_none_or(|before| before.kept.state != State::Released);
        let highest = self.world.logs[key].highest;
        // A create that lands after days has a fence of then: beyond what the retention bears, as the docs say.
        let outlived = before.is_none() && self.is_outlived(key, next);
        if !outlived && (next.fence < highest || ((claims || releases) && next.fence == highest)) {
            self.broken(Rule::FenceRises);
        }
        let log = &mut self.world.logs[key];
        log.highest = highest.max(next.fence);
        if outlived {
            (log.highest, log.ran) = (next.fence, next.fence - 1);
        }
        if operator {
            return self.reset_by_force(key, before);
        }
        if let Some(before) = before {
            self.over(key, before, next, (same, claims));
        }
        let before = before.map(|before| &before.kept);
        if finished(next) && before.is_none_or(|before| !finished(before)) {
            self.completed(key, next);
        } else if let Some(before) = before.filter(|before| same && before.state != State::Released)
            && next.state == State::Released
        {
            self.released(key, before, next);
        }
    }

    fn over(&mut self, key: usize, before: &Seen, next: &Kept, (same, claims): (bool, bool)) {
        let live = !Status::of(&before.stored()).is_free();
        let stood = before.kept.state;
        if live && stood == State::Claimed && !same {
            self.broken(Rule::OneHolder);
        }
        let undoes = same && !finished(&before.kept) && next.state == State::Released;
        if live && stood == State::Done && !(same && next.state == State::Done) && !undoes {
            self.broken(Rule::DoneStays);
        }
        if !same && !claims {
            self.broken(Rule::ZombieWritesNothing);
        }
        if claims && stood == State::Claimed {
            let run = number(before.kept.holder).map(|number| self.world.runs[usize::from(number)]);
            if let Some(run) = run.filter(|run| run.began) {
                self.world.logs[key].allowed += 1;
                self.reached(if run.gone == Gone::Crashed {
                    Reached::CrashHealed
                } else {
                    Reached::TakenOver
                });
            }
        }
        if claims && stood == State::Done && !live {
            self.world.logs[key].forget();
            self.reached(Reached::TtlOver);
        }
        if finished(next) && stood == State::Claimed && !live {
            self.reached(Reached::CompletedAfterLapse);
        }
    }

    fn completed(&mut self, key: usize, next: &Kept) {
        let holder = number(next.holder);
        let ended = holder.and_then(|number| self.world.runs[usize::from(number)].ended);
        if !matches!(ended, Some(How::Succeeded | How::Rejected)) {
            self.broken(Rule::DoneWasRun);
        }
        let log = &mut self.world.logs[key];
        log.recorded |= holder.map_or(0, |number| 1 << number);
        (log.open, log.last) = (0, None);
        log.done = Some(u8::try_from(next.aged.as_secs() / 3600).unwrap_or(FAR));
    }

    fn released(&mut self, key: usize, before: &Kept, next: &Kept) {
        let Some(run) = number(before.holder).map(|number| self.world.runs[usize::from(number)]) else {
            return;
        };
        if !run.began {
            return self.reached(Reached::Undone);
        }
        match run.ended {
            Some(How::Succeeded) if next.verb == Verb::Mutex && next.ended == Ended::Fresh => {
                self.world.logs[key].forget();
            }
            Some(How::Cancelled) => self.broken(Rule::CancelLapses),
            Some(How::Failed | How::Panicked) => self.world.logs[key].allowed += 1,
            // What cannot be sent to the dead letters has failed.
            Some(How::Rejected) if next.ended == Ended::Failed => self.world.logs[key].allowed += 1,
            _ => self.broken(Rule::EndIsStored),
        }
    }

    fn reset_by_force(&mut self, key: usize, before: Option<&Seen>) {
        let log = &mut self.world.logs[key];
        (log.done, log.recorded, log.marks) = (None, 0, 0);
        log.allowed = log.begun;
        if let Some(number) = before.and_then(|before| number(before.kept.holder)) {
            self.world.runs[usize::from(number)].reset = true;
        }
    }

    /// The garbage collection took the record.
    pub(super) fn deleted(&mut self, key: usize) {
        self.world.logs[key].forget();
        self.world.logs[key].deleted = Some(self.world.now);
        self.reached(Reached::Deleted);
    }
}
