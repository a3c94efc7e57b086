//! The protocol of the lease over the `Store` port, checked exhaustively for small bounds: every order in which
//! the calls of three holders, time and mishaps can come.
//!
//! **What is the real code**: every decision. What a claim meets, what a holder writes, what an undo writes
//! over an abandoned claim and what a reset does are [`machine`](super::machine)'s `claim`, `settle`,
//! `forestall` and `reset` on real records; how a key stands is `Status::of`.
//!
//! **What is written again**, one function for one function, since a model checker needs states that it can
//! compare, and a future is none: the drivers around them. `claims` is `claim.rs` with `verbs/admit.rs`, `ends` is
//! `settle.rs`, `undo.rs` and what `verbs/settle.rs` asks of them. The test
//! `the_real_code_takes_the_same_steps` walks random paths of the model with the real ones, each call of theirs held up
//! until it is its turn, and compares every call, every record and every write under way. (Of one key; what
//! `verbs/` does with an entity besides is compared by the simulation only.)
//!
//! **The store** is the port: a record by key, swapped on a version that never repeats. A call is carried out
//! and answered in one step; what lies between deciding and landing is the time before that step. A call
//! without an answer is taken from its holder and may land at any later time, or never: so a lost answer, a
//! lost write and a late write are one mishap. A holder that stalls is one that takes no step while time passes.
//!
//! **Time** passes by half a lease, and to where the garbage collection may take a record. Ages and counts end
//! where nothing more can lapse.
//!
//! **Left out**, and the simulation's: the pauses between tries and their number (six; no model comes so far), the
//! process-wide list of pending completions (a holder is one process here), waiting for a live holder (another
//! claim is the same), what a delivery is answered, the handler's own transaction, payload digests, the ledger of
//! uncertain keys.

mod bounds;
mod claims;
#[cfg(feature = "testing")]
mod conform;
mod ends;
mod env;
#[cfg(feature = "testing")]
mod gate;
mod kept;
mod looks;
mod models;
mod plant;
mod play;
mod reached;
#[cfg(feature = "testing")]
mod real;
mod rules;
mod runs;
mod tests;
mod walk;
mod world;
mod writes;

use std::sync::Arc;

use stateright::{Model, Property};

use self::bounds::{Bounds, How, Role};
use self::plant::Plant;
use self::play::Play;
use self::reached::Places;
use self::rules::Rule;
use self::walk::{Stage, Walk};
use self::world::World;
use super::machine::{Force, Stamp};

/// One model, with the mistake that it is to make.
#[derive(Debug, Clone)]
struct Protocol {
    bounds: Bounds,
    /// With the rule that it must break, the only one that is looked at then.
    plant: Option<(Plant, Rule)>,
    places: Arc<Places>,
}

/// What happens next. Holders are named by their numbers, calls by the part of their role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Begin(Role),
    /// The holder's call is carried out and answered.
    Step(u8, usize),
    Lose(u8, usize),
    Refuse(u8, usize),
    Late(u8, usize),
    GiveUp(u8, usize),
    Renew(u8, usize),
    End(u8, How),
    Crash(u8),
    Land(usize),
    Tick,
    Expire(usize),
    Reset(usize, Force),
}

impl Protocol {
    fn stamp(&self, world: &World, number: u8) -> Stamp {
        world.stamp(number, self.bounds.behind)
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.bounds.budget)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Bounds { roles, ends, renews, behind, attempts, .. } = self.bounds;
        if !world.broken.is_empty() && self.plant.is_none() {
            return;
        }
        if world.runs.len() < attempts && world.holders.len() < 3 {
            actions.extend(roles.iter().map(|role| Action::Begin(*role)));
        }
        for holder in world.holders.iter().filter(|holder| !world.has_twin(holder, behind)) {
            let me = holder.number;
            for (part, walk) in holder.walks.iter().enumerate() {
                if let Some(call) = walk.call() {
                    actions.push(Action::Step(me, part));
                    if world.left.mishaps > 0 {
                        actions.push(Action::Lose(me, part));
                        if *call != walk::Call::Read {
                            actions.push(Action::Refuse(me, part));
                        }
                        if Play::may_be_late(walk) {
                            actions.push(Action::Late(me, part));
                        }
                    }
                    if env::is_over(walk) {
                        actions.push(Action::GiveUp(me, part));
                    }
                }
                if let (Walk::Held(claim), Stage::Working, true) = (walk, holder.stage, renews)
                    && claim.since > 0
                    && !holder.lost
                    && claim.kept.verb != crate::store::record::Verb::AtMostOnce
                {
                    actions.push(Action::Renew(me, part));
                }
            }
            if holder.stage == Stage::Working {
                actions.extend(ends.iter().map(|how| Action::End(me, *how)));
            }
            if world.left.crashes > 0 {
                actions.push(Action::Crash(me));
            }
        }
        actions.extend((0..world.late.len()).map(Action::Land));
        if world.left.ticks > 0 {
            actions.push(Action::Tick);
        }
        for (key, _) in world.store.iter().enumerate().filter(|(_, entry)| entry.is_some()) {
            if world.left.deletions > 0 {
                actions.push(Action::Expire(key));
            }
            if world.left.resets > 0 {
                actions.extend([Action::Reset(key, Force::No), Action::Reset(key, Force::Yes)]);
            }
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut play = Play { protocol: self, world: last.clone() };
        match action {
            Action::Begin(role) => play.begin(role),
            Action::Step(me, part) => play.step(me, part),
            Action::Lose(me, part) => play.lose(me, part),
            Action::Refuse(me, part) => play.refuse(me, part),
            Action::Late(me, part) => play.late(me, part),
            Action::GiveUp(me, part) => play.give_up(me, part),
            Action::Renew(me, part) => play.renew(me, part),
            Action::End(me, how) => play.end(me, how),
            Action::Crash(me) => play.crash(me),
            Action::Land(at) => play.land(at),
            Action::Tick => play.tick(),
            Action::Expire(key) => play.expire(key),
            Action::Reset(key, force) => play.reset(key, force),
        }
        play.looked();
        play.world.settle();
        Some(play.world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let wanted = |rule| self.plant.is_none_or(|(_, wanted)| wanted == rule);
        let rules = rules::ALL.iter().filter(|(rule, ..)| wanted(*rule));
        rules.map(|(_, name, holds)| Property::always(name, *holds)).collect()
    }
}
