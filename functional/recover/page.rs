//! The page on which the figures stand, each table between its two markers.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const PAGE: &str = "docs/benchmarks.md";

/// A table of Markdown.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// The table with these columns alone.
    pub(crate) fn only(&self, head: &[String]) -> Self {
        let at: Vec<_> = head
            .iter()
            .map(|name| self.head.iter().position(|is| is == name).expect("a column of that name"))
            .collect();
        let rows = self.rows.iter().map(|row| at.iter().map(|at| row[*at].clone()).collect()).collect();
        Self { head: head.to_vec(), rows }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// The table of that name on the page.
pub(crate) fn read(name: &str) -> Table {
    let text = fs::read_to_string(path(PAGE)).expect("the page");
    let between = text.split_once(&begin(name)).and_then(|(_, rest)| rest.split_once(&end(name)));
    let (between, _) = between.unwrap_or_else(|| panic!("{PAGE} has no {name}"));
    let cells = |line: &str| {
        let line = line.trim_start_matches("| ").trim_end_matches(" |");
        line.split(" | ").map(str::to_owned).collect::<Vec<_>>()
    };
    let mut lines = between.lines().filter(|line| line.starts_with("| ")).map(cells);
    Table { head: lines.next().expect("a head"), rows: lines.collect() }
}

/// Writes what was seen: into `target/recover`, and between its markers on the page.
pub(crate) fn write(name: &str, what: &str) {
    // Two tests write on it.
    static PEN: Mutex<()> = Mutex::new(());
    let _pen = PEN.lock().expect("nobody panics with it");
    keep(&format!("{name}.md"), what);
    let text = fs::read_to_string(path(PAGE)).expect("the page");
    let (before, rest) = text.split_once(&begin(name)).expect("the marker that begins it");
    let (_, after) = rest.split_once(&end(name)).expect("the marker that ends it");
    let text = format!("{before}{}\n\n{what}\n{}{after}", begin(name), end(name));
    fs::write(path(PAGE), text).expect("written");
}

/// Keeps a file of figures in `target/recover`.
pub(crate) fn keep(file: &str, what: &str) {
    let folder = path("target/recover");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(file), what).expect("written");
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn begin(name: &str) -> String {
    format!("<!-- {name}:begin -->")
}

fn end(name: &str) -> String {
    format!("<!-- {name}:end -->")
}
