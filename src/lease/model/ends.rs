//! A holder writes, as `settle.rs` does, and undoes what nobody works on, as `undo.rs` does.

use super::bounds::{How, LEASE, hours};
use super::kept::{Kept, Seen};
use super::plant::Plant;
use super::play::Play;
use super::reached::Reached;
use super::rules::Gone;
use super::walk::{Answer, Call, Claim, Stage, Walk, Wish};
use crate::lease::machine::{self, Commit, Note, Op, Step};
use crate::store::record::{Ended, State, Verb};

/// What a wish writes.
fn op(wish: Wish, verb: Verb, claim: &Claim) -> Op {
    match wish {
        Wish::Check(_) | Wish::Enter | Wish::Keep | Wish::Send => Op::Renew,
        Wish::Undo { .. } | Wish::Withdraw => Op::Undo(claim.found.0.clone()),
        Wish::End(How::Succeeded) if verb == Verb::Mutex => Op::Release(Ended::Fresh),
        Wish::End(How::Succeeded) => Op::Complete(Note::default()),
        // The entity of such work is released as that of work that failed.
        Wish::End(How::Rejected) if verb == Verb::Mutex => Op::Release(Ended::Failed),
        Wish::End(How::Rejected) => Op::Reject(Note::default()),
        Wish::End(How::Failed) => Op::Release(Ended::Failed),
        Wish::End(How::Panicked | How::Cancelled) => Op::Release(Ended::Unknown),
    }
}

impl Play<'_> {
    /// The head of the loop of `Claim::write`.
    pub(super) fn write(&mut self, me: u8, part: usize, claim: Claim, wish: Wish) {
        let Some(verb) = self.verb(me, part) else { return };
        let op = op(wish, verb, &claim);
        let mine = if self.planted(Plant::AnyHolder) { claim.kept.holder } else { None };
        let guarded = self.planted(Plant::LeaseGuardOnComplete) && matches!(op, Op::Complete(_));
        let step = if guarded && claim.since >= LEASE {
            Step::Answer(Commit::FencedOut)
        } else {
            let held = || hours(claim.since.into());
            machine::settle(&op, mine.unwrap_or(self.id(me)), &claim.kept, held, self.stamp(me))
        };
        match step {
            Step::Write(next) => {
                let call = Call::Swap { seen: Some(claim.version), next: Kept::of(*next) };
                self.put(me, part, Walk::Writing { claim, wish, sent: 0, call });
            }
            Step::Answer(commit) => self.committed(me, part, claim, wish, commit),
        }
    }

    pub(super) fn wrote(
        &mut self,
        me: u8,
        part: usize,
        mut claim: Claim,
        (wish, sent): (Wish, u8),
        call: Call,
        answer: Answer,
    ) {
        match (answer, call) {
            (Answer::Written(version), Call::Swap { next, .. }) => {
                let renews = matches!(wish, Wish::Check(_) | Wish::Enter | Wish::Keep | Wish::Send);
                if renews && claim.kept.state == State::Claimed {
                    claim.since = sent;
                }
                (claim.kept, claim.version) = (next, version);
                self.committed(me, part, claim, wish, Commit::Recorded);
            }
            (Answer::Stands(None), _) => self.committed(me, part, claim, wish, Commit::FencedOut),
            (Answer::Stands(Some(Seen { kept, version, .. })), _) => {
                let ours = kept.holder == Some(self.id(me)) && kept != claim.kept;
                if ours {
                    self.reached(Reached::OwnWrite);
                }
                (claim.kept, claim.version) = (kept, version);
                self.write(me, part, claim, wish);
            }
            (Answer::Failed { .. }, _) if self.planted(Plant::LostIsRecorded) => {
                self.committed(me, part, claim, wish, Commit::Recorded);
            }
            (Answer::Lost | Answer::Failed { .. }, Call::Swap { .. }) => {
                self.put(me, part, Walk::Writing { claim, wish, sent, call: Call::Read });
            }
            (_, Call::Read) => self.write(me, part, claim, wish),
        }
    }

    /// What `Claim::write` returns.
    fn committed(&mut self, me: u8, part: usize, claim: Claim, wish: Wish, commit: Commit) {
        let recorded = commit == Commit::Recorded;
        match wish {
            Wish::Check(renewals) if recorded => self.checked(me, part, claim, renewals),
            Wish::Check(_) => self.too_late(me, part, claim),
            Wish::Enter => self.reentered(me, claim, recorded),
            Wish::Keep => {
                if recorded {
                    self.reached(Reached::Renewed);
                } else {
                    self.reached(Reached::FencedOut);
                    if let Some(holder) = self.world.holder(me) {
                        holder.lost = true;
                    }
                }
                self.put(me, part, Walk::Held(claim));
            }
            Wish::Send => self.sent(me, part, claim, recorded),
            Wish::End(how) => {
                let key = self.key(me, part);
                let completes =
                    claim.kept.verb != Verb::Mutex && matches!(how, How::Succeeded | How::Rejected);
                self.settled(key, me, completes, commit);
                self.put(me, part, Walk::Off);
                self.leave(me);
            }
            Wish::Undo { .. } | Wish::Withdraw => {
                self.put(me, part, Walk::Off);
                self.leave(me);
            }
        }
    }

    /// The lease is renewed while the work runs.
    pub(super) fn renew(&mut self, me: u8, part: usize) {
        if let Some((_, walk)) = self.taken(me, part) {
            match walk {
                Walk::Held(claim) => self.write(me, part, claim, Wish::Keep),
                walk => self.put(me, part, walk),
            }
        }
    }

    /// The work ends. A renewal in flight is waited for no longer.
    pub(super) fn end(&mut self, me: u8, how: How) {
        let Some(holder) = self.world.holder(me) else { return };
        holder.stage = Stage::Ending;
        let parts = holder.role.claims().len();
        self.world.runs[usize::from(me)].ended = Some(how);
        for part in 0..parts {
            let Some((key, walk)) = self.taken(me, part) else { continue };
            let claim = match walk {
                Walk::Held(claim) => claim,
                Walk::Writing { claim, call, .. } => {
                    self.unanswered(key, me, call);
                    claim
                }
                walk => {
                    self.put(me, part, walk);
                    continue;
                }
            };
            match how {
                How::Cancelled if !self.planted(Plant::CancelReleases) => {}
                // The key is renewed before its message is sent, and the entity is released after that.
                How::Rejected if part == 0 => self.write(me, part, claim, Wish::Send),
                How::Rejected => self.put(me, part, Walk::Held(claim)),
                _ => self.write(me, part, claim, Wish::End(how)),
            }
        }
        self.leave(me);
    }

    /// The claim was renewed for the dead letter: it is sent, or the work has failed as any other.
    pub(super) fn sent(&mut self, me: u8, part: usize, claim: Claim, renewed: bool) {
        let how = if renewed { How::Rejected } else { How::Failed };
        if renewed {
            self.reached(Reached::Rejected);
        }
        self.world.runs[usize::from(me)].ended = Some(how);
        self.put(me, part, Walk::Held(claim));
        for part in 0..2 {
            if let Some((_, walk)) = self.taken(me, part) {
                match walk {
                    Walk::Held(claim) => self.write(me, part, claim, Wish::End(how)),
                    walk => self.put(me, part, walk),
                }
            }
        }
    }

    /// `undo::forestall`.
    pub(super) fn forestall(&mut self, me: u8, part: usize, condition: Option<Seen>) {
        if self.planted(Plant::NoUndo) {
            return self.put(me, part, Walk::Off);
        }
        self.forestalling(me, part, condition, 0);
    }

    fn forestalling(&mut self, me: u8, part: usize, condition: Option<Seen>, began: u8) {
        let Some(verb) = self.verb(me, part) else { return };
        if began >= LEASE {
            return self.gave_up(me, part);
        }
        let call = if self.planted(Plant::LookUpOnly) {
            Call::Read
        } else {
            let stored = condition.as_ref().map(Seen::stored);
            let next = machine::forestall(&self.ask(verb, me), stored.as_ref(), self.stamp(me));
            Call::Swap { seen: condition.as_ref().map(|seen| seen.version), next: Kept::of(next) }
        };
        self.put(me, part, Walk::Forestalling { condition, began, call });
    }

    pub(super) fn forestalled(
        &mut self,
        me: u8,
        part: usize,
        condition: Option<Seen>,
        began: u8,
        answer: Answer,
    ) {
        match answer {
            Answer::Written(_) => {
                self.reached(Reached::Forestalled);
                self.put(me, part, Walk::Off);
                self.leave(me);
            }
            Answer::Lost => self.put(me, part, Walk::Forestalling { condition, began, call: Call::Read }),
            Answer::Failed { .. } => self.forestalling(me, part, condition, began),
            Answer::Stands(standing) => self.undoing(me, part, (condition, began), standing),
        }
    }

    fn undoing(
        &mut self,
        me: u8,
        part: usize,
        (condition, began): (Option<Seen>, u8),
        standing: Option<Seen>,
    ) {
        match standing {
            Some(seen) if seen.kept.holder == Some(self.id(me)) => {
                let found = condition.as_ref().map(Seen::told).unwrap_or_default();
                let claim = Claim { kept: seen.kept, version: seen.version, found, since: 0 };
                self.write(me, part, claim, Wish::Undo { began });
            }
            standing => {
                let version = |seen: &Option<Seen>| seen.as_ref().map(|seen| seen.version);
                if self.planted(Plant::LookUpOnly) || version(&standing) != version(&condition) {
                    self.put(me, part, Walk::Off);
                    return self.leave(me);
                }
                self.forestalling(me, part, condition, began);
            }
        }
    }

    /// An undo that did not succeed for as long as a lease.
    pub(super) fn gave_up(&mut self, me: u8, part: usize) {
        self.world.runs[usize::from(me)].gone = Gone::Lapsing;
        self.put(me, part, Walk::Off);
        self.leave(me);
    }
}
