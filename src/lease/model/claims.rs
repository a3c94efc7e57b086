//! A holder claims, as `claim.rs` does: a create first, then whatever stands is decided anew; and what it does with a win.

use super::bounds::{LEASE, Role};
use super::kept::{Kept, Seen};
use super::plant::Plant;
use super::play::Play;
use super::reached::Reached;
use super::rules::{Gone, Run};
use super::walk::{Answer, Attempt, Call, Claim, Holder, Stage, Walk, Wish};
use crate::lease::machine::{self, Verdict};
use crate::store::record::{Ended, State, Verb};

impl Play<'_> {
    /// A delivery comes.
    pub(super) fn begin(&mut self, role: Role) {
        let number = u8::try_from(self.world.runs.len()).unwrap_or(u8::MAX);
        self.world.runs.push(Run::NEW);
        let walks = [Walk::Off, Walk::Off];
        self.world.holders.push(Holder { number, role, stage: Stage::Claiming, walks, lost: false });
        self.enter(number, 0);
    }

    /// `claim::claim` is called.
    fn enter(&mut self, me: u8, part: usize) {
        let attempt = Attempt::default();
        if self.verb(me, part) == Some(Verb::Mutex) {
            let walk = Walk::Claiming { attempt, earlier: false, call: Call::Read };
            return self.put(me, part, walk);
        }
        self.decide(me, part, attempt);
    }

    pub(super) fn verb(&mut self, me: u8, part: usize) -> Option<Verb> {
        self.world.holder(me)?.role.claims().get(part).map(|role| role.1)
    }

    /// The head of the loop of `Attempt::run`.
    fn decide(&mut self, me: u8, part: usize, mut attempt: Attempt) {
        if let Some(standing) = &attempt.standing
            && standing.kept.holder == Some(self.id(me))
            && standing.kept.state != State::Released
        {
            self.reached(Reached::OwnClaim);
            let (kept, version) = (standing.kept.clone(), standing.version);
            let since = self.since(&attempt);
            return self.won(me, part, Claim { kept, version, found: attempt.found, since });
        }
        let Some(verb) = self.verb(me, part) else { return };
        let mut stored = attempt.standing.as_ref().map(Seen::stored);
        if let (Some(stored), true) = (&mut stored, self.planted(Plant::EarlyTakeOver)) {
            stored.record.lease /= 2;
        }
        if let (Some(stored), true) = (&mut stored, self.planted(Plant::DoneForALease)) {
            stored.record.ttl = stored.record.lease;
        }
        match machine::claim(&self.ask(verb, me), stored.as_ref(), self.stamp(me)) {
            Verdict::Take(mut next) => {
                if self.planted(Plant::FenceFromOne) {
                    next.fence = stored.as_ref().map_or(1, |stored| stored.record.fence + 1);
                }
                if self.planted(Plant::NoHistory) {
                    (next.runs, next.ended) = (0, Ended::Fresh);
                }
                let earlier = attempt.sent;
                if !earlier {
                    attempt.since = 0;
                }
                attempt.sent = true;
                attempt.found = attempt.standing.as_ref().map(Seen::told).unwrap_or_default();
                let seen = attempt.standing.as_ref().map(|standing| standing.version);
                let call = Call::Swap { seen, next: Kept::of(*next) };
                self.put(me, part, Walk::Claiming { attempt, earlier, call });
            }
            Verdict::Held { .. } if !self.planted(Plant::HeldIsDone) => {
                self.reached(Reached::Held);
                self.refused(me, part, attempt);
            }
            Verdict::Held { .. } | Verdict::Done { .. } => {
                if let Some(standing) = &attempt.standing {
                    let (key, standing) = (self.key(me, part), standing.clone());
                    self.skipped(key, &standing);
                }
                self.refused(me, part, attempt);
            }
            Verdict::Misuse { .. } => {
                self.reached(Reached::Misuse);
                self.refused(me, part, attempt);
            }
        }
    }

    /// From when a win is counted.
    fn since(&self, attempt: &Attempt) -> u8 {
        if self.planted(Plant::SinceAnswer) { 0 } else { attempt.since }
    }

    pub(super) fn key(&mut self, me: u8, part: usize) -> usize {
        self.world.holder(me).and_then(|holder| holder.role.claims().get(part)).map_or(0, |role| role.0)
    }

    pub(super) fn claimed(
        &mut self,
        me: u8,
        part: usize,
        mut attempt: Attempt,
        earlier: bool,
        call: Call,
        answer: Answer,
    ) {
        match (answer, call) {
            (Answer::Written(version), Call::Swap { next, .. }) => {
                let since = self.since(&attempt);
                self.won(me, part, Claim { kept: next, version, found: attempt.found, since });
            }
            (Answer::Stands(standing), call) => {
                if matches!(call, Call::Swap { .. }) {
                    attempt.sent = earlier;
                }
                self.stands(me, &mut attempt, standing);
                self.decide(me, part, attempt);
            }
            (Answer::Lost, _) => {
                attempt.sent = earlier;
                self.put(me, part, Walk::Claiming { attempt, earlier, call: Call::Read });
            }
            (Answer::Failed { may_have_written }, Call::Swap { .. }) => {
                attempt.sent = earlier || may_have_written;
                self.put(me, part, Walk::Claiming { attempt, earlier, call: Call::Read });
            }
            (_, Call::Read) => self.put(me, part, Walk::Claiming { attempt, earlier, call: Call::Read }),
        }
    }

    /// `Attempt::stands`.
    fn stands(&self, me: u8, attempt: &mut Attempt, standing: Option<Seen>) {
        let version = |seen: &Option<Seen>| seen.as_ref().map(|seen| seen.version);
        let ours = standing.as_ref().is_some_and(|seen| seen.kept.holder == Some(self.id(me)));
        if version(&standing) != version(&attempt.standing) && !ours {
            attempt.sent = false;
        }
        attempt.standing = standing;
    }

    /// The claim has ended, and was not won: what it sent is undone, and what else the holder has claimed is given back.
    pub(super) fn refused(&mut self, me: u8, part: usize, attempt: Attempt) {
        if attempt.sent {
            self.forestall(me, part, attempt.standing);
        } else {
            self.put(me, part, Walk::Off);
        }
        self.not_started(me);
    }

    /// The work will not begin.
    pub(super) fn not_started(&mut self, me: u8) {
        self.world.runs[usize::from(me)].undone = true;
        let Some(holder) = self.world.holder(me) else { return };
        holder.stage = Stage::Ending;
        for part in 0..2 {
            if let Some((_, walk)) = self.taken(me, part) {
                match walk {
                    Walk::Held(claim) => self.write(me, part, claim, Wish::Withdraw),
                    walk => self.put(me, part, walk),
                }
            }
        }
        self.leave(me);
    }

    /// The write has won.
    fn won(&mut self, me: u8, part: usize, claim: Claim) {
        self.checked(me, part, claim, 0);
    }

    fn is_fresh(&self, claim: &Claim) -> bool {
        claim.kept.verb == Verb::AtMostOnce || claim.since * 2 < LEASE || self.planted(Plant::StaleWin)
    }

    /// `Attempt::checked`, after that many renewals.
    pub(super) fn checked(&mut self, me: u8, part: usize, claim: Claim, renewals: u8) {
        if self.is_fresh(&claim) {
            if renewals > 0 {
                self.reached(Reached::RenewedFirst);
            }
            self.put(me, part, Walk::Held(claim));
            return self.entered(me, part);
        }
        if renewals < 2 {
            return self.write(me, part, claim, Wish::Check(renewals + 1));
        }
        self.too_late(me, part, claim);
    }

    /// A claim that was won and does not count is dropped.
    pub(super) fn too_late(&mut self, me: u8, part: usize, claim: Claim) {
        self.reached(Reached::TooLate);
        if self.planted(Plant::NoUndo) {
            self.put(me, part, Walk::Off);
        } else {
            self.write(me, part, claim, Wish::Undo { began: 0 });
        }
        self.not_started(me);
    }

    /// One claim is won: the next, or the work.
    fn entered(&mut self, me: u8, part: usize) {
        let Some(holder) = self.world.holder(me) else { return };
        if holder.role.claims().len() > part + 1 {
            return self.enter(me, part + 1);
        }
        let Walk::Held(claim) = &holder.walks[0] else { return };
        let claim = claim.clone();
        // `admit::enter`: the key's lease ran on while the entity was awaited.
        if part > 0 && !self.is_fresh(&claim) {
            if self.protocol.bounds.renews {
                return self.write(me, 0, claim, Wish::Enter);
            }
            return self.not_started(me);
        }
        self.work(me);
    }

    /// The key was renewed, since the wait for the entity took long; meanwhile the entity's lease ran on.
    pub(super) fn reentered(&mut self, me: u8, claim: Claim, recorded: bool) {
        let entity = self.world.holder(me).map(|holder| holder.walks[1].clone());
        let entered = matches!(entity, Some(Walk::Held(entity)) if self.is_fresh(&entity));
        let fresh = self.is_fresh(&claim) && (entered || self.planted(Plant::EntityNotLooked));
        self.put(me, 0, Walk::Held(claim));
        if recorded && fresh { self.work(me) } else { self.not_started(me) }
    }

    fn work(&mut self, me: u8) {
        let Some(holder) = self.world.holder(me) else { return };
        holder.stage = Stage::Working;
        let role = holder.role;
        let claims = holder.walks.clone();
        for ((key, _), walk) in role.claims().iter().zip(claims) {
            if let Walk::Held(claim) = walk {
                self.began(*key, &claim, me);
            }
        }
        self.world.runs[usize::from(me)].began = true;
    }

    /// A holder of which nothing is left to be done is gone.
    pub(super) fn leave(&mut self, me: u8) {
        let over = |holder: &Holder| {
            holder.stage == Stage::Ending && holder.walks.iter().all(|walk| *walk == Walk::Off)
        };
        if self.world.holder(me).is_some_and(|holder| over(holder)) {
            self.world.holders.retain(|holder| holder.number != me);
            let run = &mut self.world.runs[usize::from(me)];
            if run.gone == Gone::Here {
                run.gone = Gone::Left;
            }
        }
    }
}
