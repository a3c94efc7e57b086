//! Each model is checked to its end, and each planted fault found.

use std::sync::Arc;
use std::time::Duration;

use stateright::{Checker, Model};

use super::Protocol;
use super::models::MODELS;
use super::plant::ALL;
use super::reached::Places;
use super::rules;
use crate::time::{Stopwatch, system_clock};

/// Checks a model to its end, and prints what it came to.
fn checked(protocol: Protocol, name: &str) -> Option<Vec<super::Action>> {
    let began = Stopwatch::start(&system_clock());
    let checker = protocol.checker().threads(1).spawn_bfs().join();
    let mut found: Vec<_> =
        checker.discoveries().into_iter().map(|(rule, path)| (path.into_actions(), rule)).collect();
    found.sort_by_key(|(actions, _)| actions.len());
    let said = found.first().map(|(actions, rule)| format!("{rule} broken in {} steps", actions.len()));
    println!(
        "{name:50} {:>9} states {:>8} unique  depth {:>2}  {:>6.1} s  {}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        Duration::as_secs_f32(&began.steady()),
        said.unwrap_or_else(|| "every rule holds".to_owned())
    );
    found.into_iter().next().map(|(actions, _)| actions)
}

#[test]
fn the_rules_hold_in_every_state() {
    for (bounds, reached) in MODELS {
        let places = Arc::<Places>::default();
        let found = checked(Protocol { bounds: *bounds, plant: None, places: places.clone() }, bounds.name);
        println!("    {bounds}\n    reached among others: {reached:?}");
        assert_eq!(found, None, "{}", bounds.name);
        let missing: Vec<_> = reached.iter().filter(|place| !places.has(**place)).collect();
        assert!(missing.is_empty(), "{}: never reached: {missing:?}", bounds.name);
    }
}

#[test]
fn each_planted_fault_has_a_counterexample() {
    for (plant, rule, bounds) in ALL {
        let protocol = Protocol { bounds: *bounds, plant: Some((*plant, *rule)), places: Arc::default() };
        let found = checked(protocol, &format!("{plant:?}"));
        let actions = found.unwrap_or_else(|| panic!("{plant:?} did not break {rule:?}"));
        println!("    {actions:?}");
    }
}

#[test]
fn each_rule_is_broken_by_some_fault() {
    let broken = |rule| ALL.iter().any(|(_, breaks, _)| *breaks == rule);
    let never: Vec<_> =
        rules::ALL.iter().filter(|(rule, ..)| !broken(*rule)).map(|(_, name, _)| name).collect();
    assert!(never.is_empty(), "no fault breaks {never:?}");
}
