//! Arrows point down only: a module uses what is on its own floor's own folder or below, never a sibling or above.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each top-level module and its floor. Modules of one floor do not know each other, except on floor
/// 0, which is what everybody stands on.
const FLOORS: &[(&str, u8)] = &[
    ("chain", 0),
    ("disabled", 0),
    ("key", 0),
    ("measure", 0),
    ("meter", 0),
    ("random", 0),
    ("task", 0),
    ("time", 0),
    ("store", 1),
    ("lease", 2),
    ("verbs", 3),
    ("pubsub", 3),
    ("publish", 3),
    ("maintain", 3),
    ("idempotent", 4),
    ("oidc", 4),
    ("dead_letter", 5),
    ("serve", 5),
    ("submit", 5),
    ("sizing", 5),
    ("telemetry", 5),
    ("testing", 6),
    ("bin", 7),
];

#[test]
fn every_arrow_points_down() {
    let mut climbing = Vec::new();
    let mut arrows = 0;
    for (file, text) in sources(Path::new("src")) {
        let Some(home) = module(&file) else { continue };
        for target in targets(&file, &text) {
            arrows += 1;
            if !allowed(home, &target) {
                climbing.push(format!("{file} uses crate::{target}"));
            }
        }
    }
    assert!(arrows > 100, "only {arrows} arrows were read: the reader is broken");
    assert!(climbing.is_empty(), "{climbing:#?}");
}

#[test]
fn a_planted_arrow_that_climbs_is_found() {
    for (home, text, climbs) in [
        ("src/store/memory.rs", "use crate::lease::Claim;", true),
        ("src/store/memory.rs", "let x = crate::verbs::lock(1);", true),
        ("src/lease/claim.rs", "use super::super::idempotent::Config;", true),
        ("src/pubsub/outcome.rs", "use crate::{\n    key::Key,\n    idempotent::Report,\n};", true),
        ("src/verbs/guard.rs", "use crate::pubsub::Delivery;", true),
        ("src/verbs/guard.rs", "use super::settle::settle; use crate::lease::Claim;", false),
        ("src/idempotent/answer.rs", "// crate::serve is above\nuse crate::pubsub::Outcome;", false),
    ] {
        let home_module = module(home).unwrap();
        let climbing = targets(home, text).iter().any(|target| !allowed(home_module, target));
        assert_eq!(climbing, climbs, "{home}: {text}");
    }
}

#[test]
fn every_module_has_a_floor() {
    let floors: BTreeMap<_, _> = FLOORS.iter().copied().collect();
    for (file, _) in sources(Path::new("src")) {
        if let Some(home) = module(&file) {
            assert!(floors.contains_key(home), "{home} ({file}) stands on no floor: add it to FLOORS");
        }
    }
}

fn allowed(home: &str, target: &str) -> bool {
    let floor = |name: &str| FLOORS.iter().find(|(module, _)| *module == name).map(|(_, floor)| *floor);
    match (floor(home), floor(target)) {
        _ if home == target => true,
        (Some(0), Some(0)) => true,
        (Some(home), Some(target)) => target < home,
        // A re-export of the root, such as crate::Store in a doc path, or a macro.
        _ => true,
    }
}

/// The top-level module of a file; `None` for the front door.
fn module(file: &str) -> Option<&str> {
    let rest = file.strip_prefix("src/")?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    (name != "lib").then_some(name)
}

/// The top-level modules that a text names by `crate::` or by a `super::` that leaves its own module.
fn targets(file: &str, text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        first_names(&code[at + "crate::".len()..], &mut found);
    }
    // `super` from a file of depth n leaves the module with the n-th repetition.
    let inside = file.trim_start_matches("src/").trim_end_matches("/mod.rs").matches('/').count();
    let leaving = "super::".repeat(inside + 1);
    for (at, _) in code.match_indices(&leaving) {
        first_names(&code[at + leaving.len()..], &mut found);
    }
    found
}

/// The first name of a path, or of each path of a group in braces.
fn first_names(path: &str, found: &mut Vec<String>) {
    let name =
        |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return found.push(name(path)) };
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' if depth == 0 => {
                found.push(name(&group[start..at]));
                start = at + 1;
            }
            '}' if depth == 0 => return found.push(name(&group[start..at])),
            '}' => depth -= 1,
            _ => {}
        }
    }
}

fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else {
            files.push((path.to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()));
        }
    }
    files
}
