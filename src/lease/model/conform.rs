//! The model says of the real code what is true: both take the same steps, call by call, along random paths.

use std::sync::Arc;

use stateright::Model as _;

use super::bounds::{Bounds, Budget, FAR, How, Role, hours};
use super::gate::Waiting;
use super::kept::{Kept, Seen};
use super::real::Real;
use super::walk::{Call, Walk, Wish};
use super::world::World;
use super::{Action, Protocol};
use crate::random::splitmix;
use crate::store::{Stored, Version};

const PATHS: u64 = 400;
const STEPS: usize = 60;

const BOUNDS: Bounds = Bounds {
    name: "random paths",
    roles: &[Role::Lock, Role::Mutex, Role::AtMostOnce],
    ends: &[How::Succeeded, How::Failed, How::Panicked, How::Cancelled, How::Rejected],
    renews: true,
    tells: true,
    behind: 11,
    attempts: 6,
    budget: Budget { ticks: 6, mishaps: 4, crashes: 1, deletions: 1, resets: 0 },
};

/// Takes the step that the model has taken.
fn follow(real: &mut Real, protocol: &Protocol, before: &World, action: Action, after: &World) {
    match action {
        Action::Begin(role) => {
            real.begin(before.runs.len() as u8, role.claims()[0].1, protocol.bounds.behind);
        }
        Action::Step(me, _) => real.step(me, protocol.bounds.tells),
        Action::Lose(me, _) => real.lose(me),
        Action::Refuse(me, _) => real.refuse(me),
        Action::Late(me, _) => {
            let walk =
                before.holders.iter().find(|holder| holder.number == me).map(|holder| &holder.walks[0]);
            real.late(me, matches!(walk, Some(Walk::Writing { wish: Wish::End(_), .. })));
        }
        Action::GiveUp(me, _) => real.give_up(me),
        Action::Renew(me, _) => real.renew(me),
        Action::End(me, how) => real.end(me, how),
        Action::Crash(me) => real.crash(me),
        Action::Land(at) => real.land(at),
        Action::Tick => real.pass(after.now),
        Action::Expire(_) => {
            real.pass(after.now);
            real.shelf.stands = None;
        }
        Action::Reset(..) => {}
    }
    let version = real.shelf.stands.as_ref().map(|stored| stored.version.clone());
    real.late.retain(|late| match (late.seen, &version) {
        (Some(seen), version) => version.as_ref().and_then(Version::as_number) == Some(seen),
        (None, Some(_)) => after.left.deletions > 0,
        (None, None) => true,
    });
}

/// What differs, if anything does.
fn differs(real: &Real, world: &World) -> Option<String> {
    let stands = real.shelf.stands.as_ref();
    let version = stands.and_then(|stored| stored.version.as_number());
    let seen = |seen: Option<u64>| seen.map(|seen| u8::from(Some(seen) == version));
    let shown = |stored: &Stored| (Kept::of(stored.record.clone()), stored.age.min(hours(FAR.into())));
    let modelled = |seen: &Seen| (seen.kept.clone(), hours(seen.age.into()));
    let (there, here) = (stands.map(shown), world.store[0].as_ref().map(modelled));
    if there != here {
        return Some(format!("stands {there:?}, in the model {here:?}"));
    }
    let there: Vec<_> = real.late.iter().map(|late| (seen(late.seen), Kept::of(late.next.clone()))).collect();
    let here: Vec<_> = world.late.iter().map(|late| (late.seen, late.next.clone())).collect();
    if there != here {
        return Some(format!("under way are {there:?}, in the model {here:?}"));
    }
    real.holders.iter().find_map(|holder| {
        let there = holder.gate.look(|waiting| {
            waiting.map(|waiting| match waiting {
                Waiting::Read(_) => Call::Read,
                Waiting::Swap { seen: version, next, .. } => {
                    Call::Swap { seen: seen(*version), next: Kept::of(next.clone()) }
                }
            })
        });
        let here = world.holders.iter().find(|modelled| modelled.number == holder.number);
        let here = here.and_then(|modelled| modelled.walks[0].call().cloned());
        (there != here).then(|| format!("{} calls {there:?}, in the model {here:?}", holder.number))
    })
}

/// Walks one path, and gives the number of steps, or the path to where both part.
fn walked(seed: u64) -> Result<usize, String> {
    crate::random::seed(seed);
    let mut dice = seed;
    let tells = splitmix(&mut dice).is_multiple_of(2);
    let protocol = Protocol { bounds: Bounds { tells, ..BOUNDS }, plant: None, places: Arc::default() };
    let mut world = World::new(BOUNDS.budget);
    let mut real = Real::default();
    let mut path = Vec::new();
    for step in 0..STEPS {
        let mut actions = Vec::new();
        protocol.actions(&world, &mut actions);
        if actions.is_empty() {
            return Ok(step);
        }
        // What holders do is taken more often than what befalls them.
        let own = |action: &Action| matches!(action, Action::Step(..) | Action::End(..) | Action::Begin(_));
        if splitmix(&mut dice).is_multiple_of(2) && actions.iter().any(own) {
            actions.retain(own);
        }
        let action = actions[(splitmix(&mut dice) % actions.len() as u64) as usize];
        let Some(next) = protocol.next_state(&world, action) else { continue };
        path.push(action);
        follow(&mut real, &protocol, &world, action, &next);
        world = next;
        if let Some(difference) = differs(&real, &world) {
            return Err(format!("{path:?}: {difference}"));
        }
        if !world.broken.is_empty() {
            return Err(format!("{path:?} breaks a rule"));
        }
    }
    Ok(STEPS)
}

#[test]
fn the_real_code_takes_the_same_steps() {
    let mut steps = 0;
    for seed in 0..PATHS {
        steps += walked(seed).unwrap_or_else(|parted| panic!("seed {seed}: {parted}"));
    }
    println!("{PATHS} random paths of the model were walked by the real code, {steps} steps, call by call");
    assert!(steps > 20 * PATHS as usize, "only {steps} steps");
}

#[cfg(feature = "contract")]
#[test]
fn real_code_that_takes_other_steps_is_found() {
    use crate::lease::planted::{Fault, plant};
    for fault in
        [Fault::NoToken, Fault::LeaseGuardOnComplete, Fault::StaleWin, Fault::LookUpOnly, Fault::NoUndo]
    {
        plant(Some(fault));
        let parted = (0..PATHS).find_map(|seed| walked(seed).err().map(|parted| (seed, parted)));
        plant(None);
        let (seed, parted) = parted.unwrap_or_else(|| panic!("{fault:?} was not found in {PATHS} paths"));
        println!("{fault:?}: seed {seed}: {parted}");
    }
}
