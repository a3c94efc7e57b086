//! `docs/spec-coverage.md` names for each statement what pins it; here that is held against the sources.
#![cfg(test)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

const COVERAGE: &str = include_str!("../docs/spec-coverage.md");
const DECISIONS: &str = include_str!("../docs/decisions.md");

/// The macros that write a test for each name in their list.
const LISTS: [&str; 4] = ["\non! {", "\non_both_emulators! {", "\non_servers! {", "\nscenarios! {"];

/// The rows of all tables: the statement, and the cell that says what pins it.
fn rows() -> Vec<(&'static str, &'static str)> {
    let mut rows = Vec::new();
    let mut lines = COVERAGE.lines().peekable();
    while let Some(line) = lines.next() {
        // A header is the line before the rule.
        let is_header = lines.peek().is_some_and(|next| next.starts_with("|---"));
        let Some(row) = line.strip_prefix("| ").filter(|_| !is_header) else { continue };
        let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
        rows.push((cells[0], *cells.last().unwrap()));
    }
    rows
}

/// What is quoted in a cell.
fn named(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether the file has the test, and runs it: by its attribute, or in the list of a macro.
fn runs(file: &str, test: &str) -> bool {
    let source = source(&format!("{file}.rs"));
    let function = ["(", "<"].iter().find_map(|next| source.find(&format!("fn {test}{next}")));
    let Some(at) = function else { return false };
    let before = source[..at].trim_end_matches("async ").trim_end();
    let attribute = before.rsplit_once("#[").is_some_and(|(_, attribute)| {
        (attribute.starts_with("test]") || attribute.starts_with("tokio::test")) && !attribute.contains('{')
    });
    attribute || LISTS.iter().any(|list| source.split(list).skip(1).any(|rest| lists(rest, test)))
}

/// Whether the list, which ends at the first brace at a line's start, has the name.
fn lists(list: &str, test: &str) -> bool {
    let list = list.split("\n}").next().unwrap_or_default();
    list.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == test)
}

/// Whether it is a law of the one list, which `contract!` writes a test for on every store.
fn is_law(law: &str) -> bool {
    let list = source("src/lease/contract/list.rs");
    list.lines().any(|line| line.trim().strip_suffix(&format!("::{law},")).is_some())
}

/// The anchors that a page gives its headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let plain = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|text| text.to_lowercase().chars().filter(plain).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_statement_is_pinned_by_a_test_that_runs_or_a_decision_or_waits() {
    let rows = rows();
    assert!(rows.len() > 80, "the tables were not read: {} rows", rows.len());
    let (anchors, mut wrong) = (anchors(DECISIONS), Vec::new());
    for (statement, cell) in rows {
        let waits = cell.starts_with("later: ");
        let mut pins = usize::from(waits);
        for name in named(cell).filter(|_| !waits) {
            pins += 1;
            let pinned = match name.rsplit_once("::") {
                Some(("law", law)) => is_law(law),
                Some((file, test)) => runs(file, test),
                None => false,
            };
            if !pinned {
                wrong.push(format!("{statement}: no test `{name}` runs"));
            }
        }
        for link in cell.split("](decisions.md#").skip(1).filter_map(|rest| rest.split(')').next()) {
            pins += 1;
            if !anchors.contains(link) {
                wrong.push(format!("{statement}: decisions.md has no heading for #{link}"));
            }
        }
        if pins == 0 {
            wrong.push(format!("{statement}: nothing pins it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_name_that_is_no_test_is_found_out() {
    assert!(runs("tests/spec_coverage", "a_name_that_is_no_test_is_found_out"));
    assert!(!runs("tests/spec_coverage", "anchors_of_nothing"));
    assert!(!runs("functional/front", "pass"), "a function, but no test");
    assert!(runs("functional/once", "a_message_runs_once"), "by the list of a macro");
    assert!(runs("tests/sql/purge", "many_may_purge_at_once"), "and by one for each database");
    assert!(is_law("a_release_never_deletes") && !is_law("a_release_deletes"));
}

#[test]
fn the_defaults_are_those_that_were_decided() {
    assert_eq!(pushonce::DEFAULT_LEASE, Duration::from_secs(15 * 60));
    assert_eq!(pushonce::DEFAULT_TTL, Duration::from_secs(7 * 24 * 60 * 60));
}
