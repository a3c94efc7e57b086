//! In every state: what the holders believe, and what stands.

use std::time::Duration;

use super::bounds::{BEGIN, How, LEASE, TTL, hours};
use super::kept::{Kept, Seen};
use super::play::Play;
use super::rules::{Gone, Rule, finished, number};
use super::walk::{Holder, Stage, Walk};
use crate::lease::status::Status;
use crate::store::record::{State, Verb};
use crate::time::duration_micros;

impl Play<'_> {
    /// What must hold in every state.
    pub(super) fn looked(&mut self) {
        for key in 0..self.world.store.len() {
            let believers = self.believers(key);
            if believers.iter().any(|holds| !holds) {
                self.broken(Rule::BeliefHolds);
            }
            if believers.len() > 1 {
                self.broken(Rule::OneHolder);
            }
            if let Some(rule) = self.world.store[key].as_ref().and_then(|entry| self.left_behind(key, entry))
            {
                self.broken(rule);
            }
        }
        if self.is_stuck() {
            self.broken(Rule::FreeAgain);
        }
    }

    /// For each holder whose work believes that its claim of the key has something left, whether it holds it.
    fn believers(&self, key: usize) -> Vec<bool> {
        let entry = self.world.store[key].as_ref().filter(|entry| stands(entry));
        let believes = |holder: &&Holder| {
            let part = holder.role.claims().iter().position(|claim| claim.0 == key);
            let Some(Walk::Held(claim) | Walk::Writing { claim, .. }) = part.map(|part| &holder.walks[part])
            else {
                return false;
            };
            let span = if claim.kept.verb == Verb::AtMostOnce { TTL } else { LEASE };
            let told = holder.lost || self.world.runs[usize::from(holder.number)].reset;
            holder.stage == Stage::Working && claim.since < span && !told
        };
        let holds =
            |holder: &Holder| entry.is_some_and(|entry| entry.kept.holder == Some(self.id(holder.number)));
        self.world.holders.iter().filter(believes).map(holds).collect()
    }

    /// What is wrong with a claim whose holder has settled or undone it.
    fn left_behind(&self, key: usize, entry: &Seen) -> Option<Rule> {
        let run = self.world.runs.get(usize::from(number(entry.kept.holder)?))?;
        if !stands(entry) || run.gone != Gone::Left || self.is_outlived(key, &entry.kept) {
            return None;
        }
        let marked = entry.kept.state == State::Done;
        match run.ended {
            None if !run.began => (!Status::of(&entry.stored()).is_free()).then_some(Rule::AbandonedIsUndone),
            Some(How::Succeeded) => Some(Rule::EndIsStored),
            Some(How::Failed | How::Panicked | How::Rejected) if !marked => Some(Rule::EndIsStored),
            _ => None,
        }
    }

    /// Whether it was decided to be written before the key's record was deleted, days ago. Such a create may
    /// land after all, and heals by lapsing.
    pub(super) fn is_outlived(&self, key: usize, kept: &Kept) -> bool {
        let odd = number(kept.holder).is_some_and(|number| number % 2 == 1);
        let behind = if odd { self.protocol.bounds.behind } else { 0 };
        let written = (kept.expires / duration_micros(hours(1)) + behind).saturating_sub(retained(kept));
        self.world.logs[key].deleted.is_some_and(|deleted| written < BEGIN + u64::from(deleted))
    }

    /// Whether somebody neither works nor waits for an answer; or nothing is under way, and a key is neither
    /// done nor freed by time alone.
    fn is_stuck(&self) -> bool {
        let idle = |holder: &Holder| {
            holder.stage != Stage::Working && holder.walks.iter().all(|walk| walk.call().is_none())
        };
        let never_free = |entry: &Seen| {
            let mut later = entry.stored();
            later.age += hours(if entry.kept.state == State::Done { TTL } else { LEASE }.into());
            !Status::of(&later).is_free()
        };
        let at_rest = self.world.holders.is_empty();
        self.world.holders.iter().any(idle) || (at_rest && self.world.store.iter().flatten().any(never_free))
    }
}

/// For how many hours after its writing a record is kept.
fn retained(kept: &Kept) -> u64 {
    let lease = if kept.state == State::Claimed { kept.lease } else { Duration::ZERO };
    (lease + kept.ttl).as_secs() / 3600 + 24
}

/// Whether it is a claim, or a mark whose work has not succeeded.
fn stands(entry: &Seen) -> bool {
    entry.kept.state != State::Released && !finished(&entry.kept)
}
