//! `pushonce`: the program for operators.
//!
//! Each subcommand is a module with its arguments and a `run`. What was asked for goes to stdout, an error
//! in one line to stderr. The exit code is 0 where all is well or done, 1 where something is refused, 2
//! where it could not be looked at: wrong arguments, input that cannot be read, a store that fails.

mod check;
mod dead_letters;
mod deployment;
mod keys;
mod list;
mod output;
mod place;
mod plan;
mod progress;
mod report;
mod table;
mod tasks;
mod uncertain;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// One recorded success per key for each Google Cloud Pub/Sub push: the program for operators.
///
/// Exit codes: 0 all is well, or done; 1 refused, held, or not there; 2 it could not be looked at (wrong
/// arguments, input that cannot be read, a store that fails).
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Keys(keys::Keys),
    Tasks(tasks::Tasks),
    DeadLetters(dead_letters::DeadLetters),
    Uncertain(uncertain::Uncertain),
}

/// What a subcommand has to say, and whether it is bad.
struct Answer {
    text: String,
    refused: bool,
}

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let answered = match Program::parse().command {
        Command::Check(check) => check.run(),
        Command::Keys(keys) => place::run(keys.run()),
        Command::Tasks(tasks) => place::run(tasks.run()),
        Command::DeadLetters(letters) => place::run(letters.run()),
        Command::Uncertain(uncertain) => place::run(uncertain.run()),
    };
    let printed = answered.and_then(|answer| {
        let written = output::unless_closed(io::stdout().write_all(answer.text.as_bytes()));
        Ok(written.map(|_| answer.refused)?)
    });
    match printed {
        Ok(refused) => ExitCode::from(u8::from(refused)),
        Err(error) => {
            output::complain(&*error);
            ExitCode::from(2)
        }
    }
}
