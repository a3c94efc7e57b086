//! `pushonce dead-letters show`.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use pushonce::dead_letter::DeadLetters;

use super::told::Told;
use super::unknown;
use crate::output::{answer, plain, unless_closed};
use crate::{Answer, Failed};

#[derive(Debug, Args)]
pub(super) struct Show {
    /// Its id
    id: String,
    /// Writes its data there, as the bytes that they are; - for stdout, which then has nothing else
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

impl Show {
    pub(super) async fn run(&self, letters: &DeadLetters, json: bool) -> Result<Answer, Failed> {
        let Some(mut entry) = letters.show(&self.id).await? else {
            return answer(json, &(), || unknown(&self.id), true);
        };
        let data = entry.data.take();
        if let Some(file) = &self.data {
            let Some(data) = &data else {
                let why =
                    format!("the data of {} is not kept: it was too large, or is discarded", plain(&self.id));
                return Ok(Answer { text: format!("{why}.\n"), refused: true });
            };
            if file == Path::new("-") {
                let mut out = io::stdout();
                let _ = unless_closed(out.write_all(data).and_then(|()| out.flush()))?;
                return Ok(Answer { text: String::new(), refused: false });
            }
            let named = |error: io::Error| format!("{}: {error}", file.display());
            File::create(file).and_then(|mut file| file.write_all(data)).map_err(named)?;
        }
        entry.data = data;
        let told = Told::of(entry);
        answer(json, &told, || told.facts(), false)
    }
}
