//! `pushonce`: the program for operators.
//!
//! Each subcommand is a module with its arguments and a `run`. What was asked for goes to stdout, an error
//! in one line to stderr. The exit code is 0 where all is well, 1 where something is refused, 2 where it
//! could not be looked at: wrong arguments, or input that cannot be read.

mod check;
mod deployment;
mod plan;
mod report;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// One recorded success per key for each Google Cloud Pub/Sub push: the program for operators.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
}

/// What a subcommand has to say, and whether it is bad.
struct Answer {
    text: String,
    refused: bool,
}

type Unreadable = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let answered = match Program::parse().command {
        Command::Check(check) => check.run(),
    };
    match answered.and_then(|answer| {
        match io::stdout().write_all(answer.text.as_bytes()) {
            // Whoever reads has seen enough (`| head`).
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(answer.refused),
        }
    }) {
        Ok(refused) => ExitCode::from(u8::from(refused)),
        Err(error) => {
            let mut line = format!("pushonce: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                line = format!("{line}: {cause}");
                source = cause.source();
            }
            eprintln!("{}", line.replace('\n', " "));
            ExitCode::from(2)
        }
    }
}
