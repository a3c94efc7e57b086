//! One step: a holder's call is carried out and answered, and the holder goes on as `claim.rs`, `settle.rs` and `undo.rs` do.

use super::Protocol;
use super::bounds::{LEASE, TTL, hours};
use super::kept::{Kept, Seen};
use super::plant::Plant;
use super::walk::{Answer, Call, Walk};
use super::world::World;
use crate::lease::machine::{Ask, Stamp};
use crate::store::record::{Id, Verb};

/// The id of a holder that goes by that number.
pub(super) const fn id(number: u8) -> Id {
    Id::from_bits(number as u128 + 1)
}

/// A world, on its way to the next.
pub(super) struct Play<'a> {
    pub(super) protocol: &'a Protocol,
    pub(super) world: World,
}

impl Play<'_> {
    pub(super) fn planted(&self, plant: Plant) -> bool {
        self.protocol.plant.is_some_and(|(planted, _)| planted == plant)
    }

    pub(super) fn id(&self, number: u8) -> Id {
        if self.planted(Plant::NoToken) { Id::from_bits(0) } else { id(number) }
    }

    pub(super) fn ask(&self, verb: Verb, number: u8) -> Ask {
        let lease = if self.planted(Plant::LeaseForEver) { 1000 } else { LEASE.into() };
        Ask::new(verb, hours(lease), hours(TTL.into()), self.id(number))
    }

    pub(super) fn stamp(&self, number: u8) -> Stamp {
        self.protocol.stamp(&self.world, number)
    }

    /// The store's `swap`.
    pub(super) fn swap(
        &mut self,
        key: usize,
        seen: Option<u8>,
        next: &Kept,
        operator: bool,
    ) -> Result<u8, Option<Seen>> {
        let standing = self.world.store[key].clone();
        let holds = seen == standing.as_ref().map(|standing| standing.version);
        if !holds && !self.planted(Plant::NoVersionCheck) {
            return Err(standing);
        }
        let version = if self.planted(Plant::RepeatingVersions) {
            standing.as_ref().map_or(1, |standing| standing.version + 1)
        } else {
            self.world.overwritten(key);
            1
        };
        self.written(key, standing.as_ref(), next, operator);
        self.world.store[key] = Some(Seen { kept: next.clone(), version, age: 0 });
        Ok(version)
    }

    /// A holder's call is carried out and answered at once.
    pub(super) fn step(&mut self, me: u8, part: usize) {
        let Some((key, walk)) = self.taken(me, part) else { return };
        let answer = match walk.call() {
            None => return,
            Some(Call::Read) => Answer::Stands(self.world.store[key].clone()),
            Some(Call::Swap { seen, next }) => {
                let (seen, next) = (*seen, next.clone());
                match self.swap(key, seen, &next, false) {
                    Ok(version) => Answer::Written(version),
                    Err(standing) if self.protocol.bounds.tells => Answer::Stands(standing),
                    Err(_) => Answer::Lost,
                }
            }
        };
        self.answered(me, part, walk, answer);
    }

    /// Takes the walk out, to be put back as what it becomes.
    pub(super) fn taken(&mut self, me: u8, part: usize) -> Option<(usize, Walk)> {
        let holder = self.world.holder(me)?;
        let (key, _) = *holder.role.claims().get(part)?;
        Some((key, std::mem::take(&mut holder.walks[part])))
    }

    pub(super) fn put(&mut self, me: u8, part: usize, walk: Walk) {
        if let Some(holder) = self.world.holder(me) {
            holder.walks[part] = walk;
        }
    }

    pub(super) fn answered(&mut self, me: u8, part: usize, walk: Walk, answer: Answer) {
        match walk {
            Walk::Off | Walk::Held(_) => {}
            Walk::Claiming { attempt, earlier, call } => {
                self.claimed(me, part, attempt, earlier, call, answer);
            }
            Walk::Writing { claim, wish, sent, call } => {
                self.wrote(me, part, claim, (wish, sent), call, answer);
            }
            Walk::Forestalling { condition, began, .. } => {
                self.forestalled(me, part, condition, began, answer);
            }
        }
    }
}
