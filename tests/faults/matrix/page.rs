//! The printed table, and the page that has it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::STORES;
use super::faults::Fault;
use super::ground::Cells;
use super::rows::Row;

const PAGE: &str = include_str!("../../../docs/faults.md");
/// Set to write the page anew.
const WRITE: &str = "PUSHONCE_FAULTS_WRITE";

fn writes() -> bool {
    std::env::var_os(WRITE).is_some_and(|wish| !wish.is_empty())
}

/// The columns that are there so far. Whoever brings the last one prints the table.
static COLUMNS: Mutex<BTreeMap<&'static str, Cells>> = Mutex::new(BTreeMap::new());

/// No cell is empty, none has failed, and each says what the page says.
pub(crate) fn hold(name: &'static str, cells: Cells) {
    let wrong = wrong(name, &cells);
    let is_taken = writes() && cells.values().all(Result::is_ok);
    let mut columns = COLUMNS.lock().unwrap_or_else(PoisonError::into_inner);
    columns.insert(name, cells);
    if STORES.iter().all(|store| columns.contains_key(store)) {
        let table = table(&columns);
        println!("\n{table}");
        keep(&table);
    }
    drop(columns);
    let wrong = if is_taken { Vec::new() } else { wrong };
    assert!(
        wrong.is_empty(),
        "{name}: {} cells are not as they should be:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The cells of a column that are not as the page has them.
pub(crate) fn wrong(name: &str, cells: &Cells) -> Vec<String> {
    let mut wrong = Vec::new();
    for (row, fault) in Row::ALL.into_iter().flat_map(|row| Fault::ALL.map(|fault| (row, fault))) {
        let said = said(cells, row, fault);
        let expected = expected(name, row, fault);
        if expected.as_deref() != Some(&*said) {
            let expected = expected.unwrap_or_default();
            wrong.push(format!("{row}, {fault}: it says `{said}`, and the page `{expected}`"));
        }
    }
    wrong
}

fn said(cells: &Cells, row: Row, fault: Fault) -> String {
    match cells.get(&(row, fault)) {
        Some(Ok(said)) => (*said).to_owned(),
        Some(Err(failed)) => format!("FAILED: {}", failed.replace(['|', '\n'], " ")),
        None => "EMPTY".to_owned(),
    }
}

/// What the page says of a cell.
pub(crate) fn expected(name: &str, row: Row, fault: Fault) -> Option<String> {
    let column = 2 + STORES.iter().position(|store| *store == name)?;
    let begins = format!("| {row} | {fault} |");
    let line = PAGE.lines().find(|line| line.starts_with(&begins))?;
    line.trim_matches('|').split('|').nth(column).map(|cell| cell.trim().to_owned())
}

fn table(columns: &BTreeMap<&'static str, Cells>) -> String {
    let mut lines = vec![format!("| step: call | fault | {} |", STORES.join(" | "))];
    lines.push("|---".repeat(STORES.len() + 2) + "|");
    for row in Row::ALL {
        for fault in Fault::ALL {
            let cells = STORES.iter().map(|store| said(&columns[store], row, fault));
            lines.push(format!("| {row} | {fault} | {} |", cells.collect::<Vec<_>>().join(" | ")));
        }
    }
    lines.join("\n") + "\n"
}

/// For the report of the run, and if that is asked for, in the page.
fn keep(table: &str) {
    if let Some(report) = std::env::var_os("PUSHONCE_TEST_REPORT") {
        std::fs::create_dir_all(&report).expect("a directory for the report");
        std::fs::write(Path::new(&report).join("faults.md"), table).expect("the report can be written");
    }
    if writes() {
        let before = PAGE.split("| step: call |").next().unwrap_or_default();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/faults.md");
        std::fs::write(page, format!("{before}{table}")).expect("the page can be written");
    }
}
