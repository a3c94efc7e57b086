//! What goes wrong: answers and deadlines, crashes, time, late writes, garbage collection, operators.

use super::bounds::LEASE;
use super::kept::Kept;
use super::plant::Plant;
use super::play::Play;
use super::reached::Reached;
use super::rules::Gone;
use super::walk::{Answer, Call, Walk, Wish};
use super::world::{Late, World};
use crate::lease::machine::{self, Force};

impl World {
    /// Brings states together that no further step can tell apart.
    pub(super) fn settle(&mut self) {
        let (store, deletions) = (&self.store, self.left.deletions);
        self.late.retain(|late| match (late.seen, &store[late.key]) {
            (Some(version), Some(entry)) => version == entry.version,
            (Some(_), None) => false,
            // The condition of a create is true again when what stands is deleted.
            (None, Some(_)) => deletions > 0,
            (None, None) => true,
        });
    }
}

impl Play<'_> {
    /// Nobody waits for the call any more; a write may land all the same.
    pub(super) fn unanswered(&mut self, key: usize, number: u8, call: Call) {
        if let Call::Swap { seen, next } = call {
            self.world.late.push(Late { key, seen, next, number });
        }
    }

    /// A call has no answer within its five seconds: it was carried out, or will be, or never.
    pub(super) fn lose(&mut self, me: u8, part: usize) {
        self.world.left.mishaps -= 1;
        let Some((key, walk)) = self.taken(me, part) else { return };
        if self.planted(Plant::DroppedCompletion) && matches!(walk, Walk::Writing { wish: Wish::End(_), .. })
        {
            return self.leave(me);
        }
        let call = walk.call().cloned().unwrap_or(Call::Read);
        let may_have_written = matches!(call, Call::Swap { .. });
        self.unanswered(key, me, call);
        self.answered(me, part, walk, Answer::Failed { may_have_written });
    }

    /// A call is refused for now, and was certainly not carried out.
    pub(super) fn refuse(&mut self, me: u8, part: usize) {
        self.world.left.mishaps -= 1;
        let Some((_, walk)) = self.taken(me, part) else { return };
        self.answered(me, part, walk, Answer::Failed { may_have_written: false });
    }

    /// The third of a lease is over that a claim or a renewal may take, or the time that a settling
    /// waits before it goes on after the answer.
    pub(super) fn late(&mut self, me: u8, part: usize) {
        self.world.left.mishaps -= 1;
        let Some((key, walk)) = self.taken(me, part) else { return };
        match walk {
            Walk::Claiming { attempt, call, .. } => {
                self.unanswered(key, me, call);
                self.refused(me, part, attempt);
            }
            Walk::Writing { claim, wish, call, .. } => {
                self.unanswered(key, me, call);
                match wish {
                    Wish::Check(_) => self.too_late(me, part, claim),
                    Wish::Enter => self.reentered(me, claim, false),
                    Wish::Keep => self.put(me, part, Walk::Held(claim)),
                    Wish::Send => self.sent(me, part, claim, false),
                    Wish::End(_) | Wish::Withdraw | Wish::Undo { .. } => self.write(me, part, claim, wish),
                }
            }
            walk => self.put(me, part, walk),
        }
    }

    /// An undo has lasted for a lease.
    pub(super) fn give_up(&mut self, me: u8, part: usize) {
        let Some((key, walk)) = self.taken(me, part) else { return };
        if let Some(call) = walk.call() {
            self.unanswered(key, me, call.clone());
        }
        self.gave_up(me, part);
    }

    /// The process is killed: what it had sent is under way, all else is gone.
    pub(super) fn crash(&mut self, me: u8) {
        self.world.left.crashes -= 1;
        for part in 0..2 {
            if let Some((key, walk)) = self.taken(me, part)
                && let Some(call) = walk.call()
            {
                self.unanswered(key, me, call.clone());
            }
        }
        self.world.holders.retain(|holder| holder.number != me);
        self.world.runs[usize::from(me)].gone = Gone::Crashed;
    }

    /// An hour passes. Whoever does not act has stalled.
    pub(super) fn tick(&mut self) {
        self.world.left.ticks -= 1;
        self.world.pass(1);
    }

    /// A write lands whose sender has gone or waits no more.
    pub(super) fn land(&mut self, at: usize) {
        let late = self.world.late.remove(at);
        if self.swap(late.key, late.seen, &late.next, false).is_ok() {
            self.reached(Reached::LateLanded);
        }
    }

    /// Time passes until the garbage collection may take the record of a key, and it does.
    pub(super) fn expire(&mut self, key: usize) {
        self.world.left.deletions -= 1;
        let at = self.world.expires(key).unwrap_or_default();
        self.world.pass(at.saturating_sub(self.world.now));
        self.world.store[key] = None;
        if !self.planted(Plant::RepeatingVersions) {
            self.world.overwritten(key);
        }
        self.deleted(key);
    }

    /// An operator resets a key, by what stands there.
    pub(super) fn reset(&mut self, key: usize, force: Force) {
        self.world.left.resets -= 1;
        let Some(seen) = self.world.store[key].clone() else { return };
        if let machine::Reset::Write(next) = machine::reset(&seen.stored(), force, self.stamp(0)) {
            self.reached(Reached::Reset);
            let _ = self.swap(key, Some(seen.version), &Kept::of(*next), true);
        }
    }

    /// Whether the walk waits for a call that can be over its time.
    pub(super) fn may_be_late(walk: &Walk) -> bool {
        match walk {
            Walk::Claiming { .. } => true,
            Walk::Writing { wish: Wish::End(_) | Wish::Withdraw, call, .. } => *call != Call::Read,
            Walk::Writing { wish, .. } => !matches!(wish, Wish::Undo { .. }),
            Walk::Off | Walk::Held(_) | Walk::Forestalling { .. } => false,
        }
    }
}

/// Whether an undo of that age may be given up.
pub(super) fn is_over(walk: &Walk) -> bool {
    let began = match walk {
        Walk::Forestalling { began, .. } | Walk::Writing { wish: Wish::Undo { began }, .. } => *began,
        _ => return false,
    };
    began >= LEASE
}
