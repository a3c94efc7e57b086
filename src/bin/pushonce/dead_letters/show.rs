//! `pushonce dead-letters show`.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use pushonce::dead_letter::DeadLetters;

use super::told::Told;
use super::unknown;
use crate::output::{answer, refuse, unless_closed};
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
        let found = letters.show(&self.id).await?;
        let Some(to) = &self.data else {
            let told = found.map(Told::of);
            let text = || told.as_ref().map_or_else(|| unknown(&self.id), Told::facts);
            return answer(json, &told, text, told.is_none());
        };
        let Some(entry) = found else { return Ok(refuse(&unknown(&self.id))) };
        let Some(data) = &entry.data else {
            return Ok(refuse("its data is not kept: it was too large, or the dead letter is discarded"));
        };
        if to == Path::new("-") {
            let mut out = io::stdout();
            let written = unless_closed(out.write_all(data).and_then(|()| out.flush()));
            return Ok(written.map(|_| Answer { text: String::new(), refused: false })?);
        }
        let named = |error: io::Error| format!("{}: {error}", to.display());
        File::create(to).and_then(|mut file| file.write_all(data)).map_err(named)?;
        let told = Told::of(entry);
        answer(json, &told, || told.facts(), false)
    }
}
