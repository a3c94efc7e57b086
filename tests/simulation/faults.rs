//! Planted faults: for each, some schedule must show that the simulation finds it.

use pushonce::planted::Fault;

use crate::invariants::Rule;
use crate::play;

/// A mistake, in the simulated store or in the shipped code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The store writes whatever the version is.
    NoVersionCheck,
    /// The store's versions start again after a deletion.
    RepeatingVersions,
    Code(Fault),
}

/// The most schedules that a fault may hide in.
const SCHEDULES: u64 = 4_000;

/// Plays schedules until the rule is broken that the fault must break, whatever else it breaks before.
fn found(plant: Plant, expected: Rule) {
    for seed in 0..SCHEDULES {
        let played = play(seed, Some(plant), false);
        if let Some(violation) = played.violations.iter().find(|violation| violation.rule == expected) {
            println!("{plant:?}: found by seed {seed}: {expected:?}: {}", violation.text);
            return;
        }
    }
    panic!("{plant:?} did not break {expected:?} in {SCHEDULES} schedules");
}

#[test]
fn a_store_that_checks_no_version_is_found() {
    found(Plant::NoVersionCheck, Rule::OneHolder);
}

#[test]
fn a_store_whose_versions_repeat_after_deletion_is_found() {
    found(Plant::RepeatingVersions, Rule::ZombieWritesNothing);
}

#[test]
fn a_lease_guard_on_complete_is_found() {
    found(Plant::Code(Fault::LeaseGuardOnComplete), Rule::EndIsStored);
}

#[test]
fn a_claim_without_a_token_is_found() {
    found(Plant::Code(Fault::NoToken), Rule::OneHolder);
}

#[test]
fn a_win_that_counts_although_its_lease_is_over_is_found() {
    found(Plant::Code(Fault::StaleWin), Rule::FreshWin);
}

#[test]
fn an_abandoned_claim_that_is_only_looked_up_is_found() {
    found(Plant::Code(Fault::LookUpOnly), Rule::AbandonedIsUndone);
}

#[test]
fn a_completion_that_is_dropped_after_the_ack_is_found() {
    found(Plant::Code(Fault::DroppedCompletion), Rule::EndIsStored);
}
