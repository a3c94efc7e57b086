//! The printed table, and the page that has it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use super::STORES;
use super::faults::Fault;
use super::ground::Cells;
use super::rows::Row;

const PAGE: &str = include_str!("../../../docs/faults.md");
/// Set to write the page anew.
const WRITE: &str = "PUSHONCE_FAULTS_WRITE";

/// The columns that are there so far. Whoever brings the last one prints the table.
static COLUMNS: Mutex<BTreeMap<&'static str, Cells>> = Mutex::new(BTreeMap::new());

/// No cell is empty, none has failed, and each says what the page says.
pub(crate) fn hold(name: &'static str, cells: Cells) {
    let mut wrong = Vec::new();
    for row in Row::ALL {
        for fault in Fault::ALL {
            let said = match &cells.get(&(row, fault)) {
                Some(Ok(said)) => (*said).to_owned(),
                Some(Err(failed)) => format!("FAILED: {failed}"),
                None => "EMPTY".to_owned(),
            };
            let expected = expected(name, row, fault);
            if expected.as_ref() != Some(&said) {
                wrong.push(format!("{row}, {fault}: {said}, and the page says {expected:?}"));
            }
        }
    }
    let mut columns = COLUMNS.lock().expect("nothing panics under it");
    columns.insert(name, cells);
    if STORES.iter().all(|store| columns.contains_key(store)) {
        let table = table(&columns);
        println!("\n{table}");
        keep(&table);
    }
    drop(columns);
    let failed = wrong.iter().any(|cell| cell.contains("FAILED") || cell.contains("EMPTY"));
    let writes = std::env::var_os(WRITE).is_some() && !failed;
    assert!(wrong.is_empty() || writes, "{name}: {} cells are not as they should be:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the page says of a cell.
fn expected(name: &str, row: Row, fault: Fault) -> Option<String> {
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
            let cells = STORES.iter().map(|store| match columns[store].get(&(row, fault)) {
                Some(Ok(said)) => said,
                Some(Err(_)) => "FAILED",
                None => "EMPTY",
            });
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
    if std::env::var_os(WRITE).is_some() {
        let before = PAGE.split("| step: call |").next().unwrap_or_default();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/faults.md");
        std::fs::write(page, format!("{before}{table}")).expect("the page can be written");
    }
}
