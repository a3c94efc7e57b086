//! `docs/spec-coverage.md` names for each statement what pins it; here that is held against what the runner lists.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;

const COVERAGE: &str = include_str!("../docs/spec-coverage.md");
const DECISIONS: &str = include_str!("../docs/decisions.md");

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

/// What the runner runs, as `make test` asks it: for each file that is the root of a test program, the names of
/// its tests. One that is not compiled in, or in a file that belongs to no program, is not among them; none may be
/// ignored.
fn listed() -> &'static BTreeMap<String, BTreeSet<String>> {
    static LISTED: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
        let mut listed = BTreeMap::<_, BTreeSet<_>>::new();
        // What is said of stores that are not compiled in shows only without them.
        for set in [&["--all-features"][..], &["--features", "telemetry", "--lib"]] {
            for (root, program) in programs(set) {
                let ignored = names(&program, &["--ignored"]);
                assert!(ignored.is_empty(), "no test is ever skipped, and nobody runs {ignored:?} of {root}");
                listed.entry(root).or_default().extend(names(&program, &[]));
            }
        }
        listed
    });
    &LISTED
}

/// The test programs of that set, each with the file that is its root, without `main.rs` and the like.
fn programs(set: &[&str]) -> Vec<(String, PathBuf)> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--no-run", "--message-format=json"]).args(set).current_dir(home);
    let messages = output(&mut cargo);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    let programs = tests.filter_map(|message| {
        let root = Path::new(message["target"]["src_path"].as_str()?).strip_prefix(home).ok()?.to_owned();
        let root = if root.ends_with("main.rs") || root.ends_with("lib.rs") {
            root.parent()?.to_owned()
        } else {
            root.with_extension("")
        };
        Some((root.to_str()?.to_owned(), message["executable"].as_str()?.into()))
    });
    programs.collect()
}

/// The names that a test program lists.
fn names(program: &Path, which: &[&str]) -> BTreeSet<String> {
    let list = output(Command::new(program).args(["--list", "--format", "terse"]).args(which));
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

fn output(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a test of that name, written in that file, is run: once, or by a macro on several servers.
fn runs(file: &str, test: &str) -> bool {
    let file = Path::new(file);
    let programs = listed().iter().filter_map(|(root, names)| Some((file.strip_prefix(root).ok()?, names)));
    // Of two roots that fit, the one nearer to the file.
    let Some((module, names)) = programs.min_by_key(|(module, _)| module.components().count()) else {
        return false;
    };
    let module: String = module.iter().map(|part| format!("{}::", part.display())).collect();
    let test = format!("::{test}");
    names.iter().any(|name| name.starts_with(&module) && format!("::{name}").ends_with(&test))
}

/// Whether it is a law that runs on every store that has laws.
fn is_law(law: &str) -> bool {
    let names = &listed()["tests/contract"];
    let modules: Vec<_> =
        names.iter().filter_map(|name| name.strip_suffix("::a_read_sees_the_last_write")).collect();
    modules.len() > 12 && modules.iter().all(|module| names.contains(&format!("{module}::{law}")))
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
fn every_statement_is_pinned_by_a_test_that_runs_or_a_decision() {
    let rows = rows();
    assert!(rows.len() > 170, "the tables were not read: {} rows", rows.len());
    let (anchors, mut wrong) = (anchors(DECISIONS), Vec::new());
    for (statement, cell) in rows {
        let mut pins = 0;
        for name in named(cell) {
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
    assert!(!runs("tests/spec_coverage", "no_test_is_found_out"), "the end of a name");
    assert!(!runs("tests/spec_coverage", "anchors"), "a function, but no test");
    assert!(
        !runs("tests/push/hooks", "a_message_without_a_key_is_refused_each_time_and_nothing_is_stored"),
        "in another file"
    );
    assert!(!runs("tests/nowhere", "a_message_runs_once"));
    assert!(runs("functional/once", "a_message_runs_once"), "by the list of a macro");
    assert!(runs("tests/sql/purge", "many_may_purge_at_once"), "and by one for each database");
    assert!(runs("src/store/connect", "memory_is_a_store"), "in the crate itself");
    assert!(is_law("a_release_never_deletes") && !is_law("a_release_deletes"));
}

#[test]
fn the_defaults_are_those_that_were_decided() {
    assert_eq!(pushonce::DEFAULT_LEASE, Duration::from_secs(15 * 60));
    assert_eq!(pushonce::DEFAULT_TTL, Duration::from_secs(7 * 24 * 60 * 60));
}
