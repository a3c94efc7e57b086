//! Lists of any length, page by page, as a table or as a JSON object in each line.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use clap::Args;
use pushonce::store::{Page, StoreError};
use serde::Serialize;

use crate::output::{line, plain, unless_closed};
use crate::place::again;
use crate::progress::Progress;
use crate::table::Growing;
use crate::{Answer, Failed};

/// How many records a page looks at.
const PAGE: usize = 500;
/// Fewer are not worth a trip, since the filter may take none of them.
const LEAST: usize = 50;

#[derive(Debug, Args)]
pub(crate) struct Limit {
    /// Ends after so many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl Limit {
    pub(crate) fn most(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
}

/// One line of a list.
pub(crate) trait Row: Serialize {
    /// The names of the columns.
    const HEAD: &'static [&'static str];
    fn cells(&self) -> Vec<String>;
}

/// One page of rows.
pub(crate) struct Listed<R> {
    /// One that cannot be understood is named, with the reason, so that it hides no other.
    pub(crate) rows: Vec<Result<R, String>>,
    pub(crate) next: Option<String>,
}

/// Prints what the pages bring.
///
/// # Errors
/// The store failed; a row could not be understood (after all others are printed).
pub(crate) async fn list<R: Row>(
    json: bool,
    limit: &Limit,
    mut pages: impl AsyncFnMut(&Page) -> Result<Listed<R>, StoreError>,
) -> Result<Answer, Failed> {
    let mut left = limit.most();
    let mut page = Page { after: None, limit: left.clamp(LEAST, PAGE) };
    let mut table = Growing::new(R::HEAD);
    let (mut found, mut unreadable) = (0, 0);
    // From the second page on: most lists are over before anybody would look.
    let mut progress = None;
    while left > 0 {
        let listed = again(async || pages(&page).await).await?;
        let mut rows = Vec::new();
        for row in listed.rows {
            match row {
                Ok(row) if rows.len() < left => rows.push(row),
                Ok(_) => break,
                Err(what) => {
                    unreadable += 1;
                    let say = || writeln!(io::stderr(), "pushonce: {}", plain(&what));
                    // Nobody is left to be told that it cannot be written.
                    let _ = progress.as_ref().map_or_else(say, |progress: &Progress| progress.beside(say));
                }
            }
        }
        (left, found) = (left - rows.len(), found + rows.len());
        let text = match json {
            true => rows.iter().map(line).collect::<Result<String, Failed>>()?,
            false => table.page(&rows.iter().map(Row::cells).collect::<Vec<_>>()),
        };
        let write = || unless_closed(io::stdout().write_all(text.as_bytes()));
        if progress.as_ref().map_or_else(write, |progress| progress.beside(write))? == ControlFlow::Break(())
        {
            return Ok(Answer { text: String::new(), refused: false });
        }
        let Some(next) = listed.next else { break };
        page.after = Some(next);
        progress.get_or_insert_with(|| Progress::of(None, "found")).add(rows.len());
    }
    drop(progress);
    match unreadable {
        0 if found == 0 && !json => Ok(Answer { text: "Nothing found.\n".to_owned(), refused: false }),
        0 => Ok(Answer { text: String::new(), refused: false }),
        1 => Err("one record could not be understood".into()),
        many => Err(format!("{many} records could not be understood").into()),
    }
}
