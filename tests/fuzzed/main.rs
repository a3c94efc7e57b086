//! The targets of `make fuzz`, each over all it begins with and over seeded changes of that, so that no change
//! waits for the fuzzer. `PUSHONCE_SEED` begins elsewhere, `PUSHONCE_CASES` says how many there are.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a property that does not hold is a panic")]

mod mutate;
#[path = "../simulation/rng.rs"]
#[expect(dead_code, reason = "the simulation asks it for more")]
mod rng;
mod targets;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rng::Rng;
use targets::{TARGETS, Target};

/// The inputs of a target, and how often each came to which end.
fn fuzz(target: &Target, cases: usize) -> BTreeMap<&'static str, usize> {
    let mut ends = BTreeMap::new();
    let mut run = |name: &str, input: &[u8]| match catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        Ok(end) => *ends.entry(end).or_default() += 1,
        Err(_) => {
            panic!("{}, {name}: keep this input in tests/fuzzed/found: {}", target.name, input.escape_ascii())
        }
    };
    let seeds = target.seeds();
    for (path, seed) in &seeds {
        run(&path.display().to_string(), seed);
    }
    let seeds: Vec<_> = seeds.into_iter().map(|(_, seed)| seed).collect();
    let first = number("PUSHONCE_SEED").unwrap_or(0);
    for seed in first..first + number("PUSHONCE_CASES").unwrap_or(cases as u64) {
        run(&format!("PUSHONCE_SEED={seed}"), &mutate::mutated(&mut Rng::new(seed), &seeds));
    }
    ends
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

/// Nothing breaks a property; and none of its ends is one that nothing comes to, or nothing would be shown of it.
fn holds(name: &str, cases: usize) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let ends = fuzz(target, cases);
    println!("{name}: {ends:?}");
    let missing: Vec<_> = target.ends.iter().filter(|end| !ends.contains_key(*end)).collect();
    assert!(missing.is_empty(), "{name} never came to {missing:?}");
    assert_eq!(ends.len(), target.ends.len(), "an end that is not listed: {ends:?}");
}

#[test]
fn the_decoder_says_one_thing_of_every_push() {
    holds("delivery", 20_000);
}

#[test]
fn no_two_things_have_one_key() {
    holds("keys", 20_000);
}

#[test]
fn no_request_breaks_the_submit_routes() {
    holds("routes", 5_000);
}

#[test]
fn nobody_comes_in_without_the_right_token() {
    holds("token", 2_000);
}

/// A target of its own that breaks, so that the others are not green for want of looking.
#[test]
fn a_property_that_does_not_hold_is_found() {
    let planted = |input: &[u8]| {
        assert!(!input.windows(8).any(|part| part == b"[[[[[[[["), "a word that is in no seed");
        "fine"
    };
    let target = Target { name: "planted", run: planted, ends: &["fine"], ..TARGETS[0] };
    let failed = catch_unwind(|| fuzz(&target, 20_000)).unwrap_err();
    let told = failed.downcast_ref::<String>().unwrap();
    assert!(told.starts_with("planted, PUSHONCE_SEED=") && told.contains("[[[[[[[["), "{told}");
}
