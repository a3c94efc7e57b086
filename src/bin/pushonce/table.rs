//! Tables: one of facts, and one that grows page by page.

use std::io::{IsTerminal as _, stdout};

use comfy_table::{Attribute, Cell, ColumnConstraint, Table, TableComponent, Width, presets};

use crate::output::plain;

/// The gap between two columns.
const GAP: u16 = 2;
/// A column that is wider in one page does not widen those of the next beyond this.
const WIDEST: u16 = 48;

/// A table of facts: a name and a value in each line. Those without a value are left out.
pub(crate) fn facts(facts: impl IntoIterator<Item = (&'static str, Option<String>)>) -> String {
    let mut table = blank();
    for (name, value) in facts {
        if let Some(value) = value {
            table.add_row([Cell::new(name).add_attribute(Attribute::Bold), Cell::new(plain(&value))]);
        }
    }
    text(&mut table, &[])
}

/// A table whose rows come in pages. What may be long stands in the last column.
#[derive(Debug)]
pub(crate) struct Growing {
    head: &'static [&'static str],
    widths: Vec<u16>,
}

impl Growing {
    pub(crate) fn new(head: &'static [&'static str]) -> Self {
        Self { head, widths: Vec::new() }
    }

    /// The lines of one more page, after the head if it is the first.
    pub(crate) fn page(&mut self, rows: &[Vec<String>]) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let mut table = blank();
        if self.widths.is_empty() {
            table.set_header(self.head.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
            table.set_style(TableComponent::HeaderLines, '─');
        }
        table.add_rows(rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect::<Vec<_>>()));
        let lines = text(&mut table, &self.widths);
        let widths = table.column_max_content_widths();
        self.widths.resize(widths.len(), 0);
        for (known, width) in self.widths.iter_mut().zip(widths) {
            *known = width.min(WIDEST).max(*known);
        }
        // The last column ends the line.
        self.widths.pop();
        lines
    }
}

fn blank() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let plain = !stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    if plain {
        table.force_no_tty();
    } else {
        table.enforce_styling();
    }
    table
}

/// The lines of a table whose first columns are at least that wide.
fn text(table: &mut Table, widths: &[u16]) -> String {
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP));
        if let Some(width) = widths.get(at) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width + GAP)));
        }
    }
    table.trim_fmt() + "\n"
}
