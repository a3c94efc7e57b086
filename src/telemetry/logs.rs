//! Setting up a process's log: for Cloud Logging or for people, filtered.

use std::env::{self, VarError};
use std::io::{self, IsTerminal as _};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, fmt, registry};

use super::CloudLogging;

/// What is logged where nobody says otherwise.
const DEFAULT: &str = "info";
/// The span of a delivery.
const DELIVERY: &str = "pushonce::delivery";
/// Where the warning about a filter comes from.
const HERE: &str = "pushonce::telemetry";

/// Sets up the log of this process: [`Logs`] as they come.
///
/// Call it first in `main`, once, and in programs only: a library that did would take the choice from
/// its users.
///
/// # Errors
/// As [`Logs::try_init`].
pub fn init() -> Result<(), InvalidLogs> {
    Logs::new().try_init()
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Lines of JSON for Cloud Logging: [`CloudLogging`].
    CloudLogging,
    /// Lines for people.
    Human,
}

/// The log of a process, to standard output: a filter, a format, a project.
///
/// Without setters: the filter of `RUST_LOG`, else `info`; JSON where `K_SERVICE` is set, as it is on
/// Cloud Run, or where standard output is no terminal, else lines for people, in colours unless
/// `NO_COLOR` is set; the project of `GOOGLE_CLOUD_PROJECT`. Nothing is dialled, the metadata server
/// neither. What goes through the `log` crate is not seen.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing is logged before `try_init`"]
pub struct Logs {
    project: Option<String>,
    filter: Option<String>,
    format: Option<Format>,
    report_errors: bool,
}

impl Logs {
    /// A log as it comes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The project whose traces the entries join: see [`CloudLogging::project`].
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// What is logged, whatever `RUST_LOG` says: levels and targets, such as `info,pushonce=debug`
    /// ([`Targets`]; spans and fields cannot be named).
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// How it is written, wherever this runs.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Tells Error Reporting too: see [`CloudLogging::report_errors`].
    pub fn report_errors(mut self) -> Self {
        self.report_errors = true;
        self
    }

    /// Sets the log up.
    ///
    /// # Errors
    /// [`InvalidLogs`] if the filter cannot be read, or if this process has a subscriber already:
    /// nothing was changed. Do not start without a log; mend what the text says.
    pub fn try_init(self) -> Result<(), InvalidLogs> {
        let text = self.filter.map_or_else(from_env, Ok)?;
        let (filter, muted) = filter(&text)?;
        let layer = match self.format.unwrap_or_else(fitting) {
            Format::CloudLogging => {
                let mut layer = CloudLogging::new();
                if let Some(project) = self.project {
                    layer = layer.project(project);
                }
                if self.report_errors {
                    layer = layer.report_errors();
                }
                layer.boxed()
            }
            Format::Human => {
                let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                fmt::layer().with_ansi(io::stdout().is_terminal() && !plain).boxed()
            }
        };
        tracing::subscriber::set_global_default(registry().with(filter).with(layer))?;
        if muted {
            tracing::warn!(
                target: HERE,
                filter = text,
                "this log filter leaves nothing of pushonce, not even its errors: is a level misspelt, or `pushonce=info` missing?"
            );
        }
        Ok(())
    }
}

/// The filter of the environment.
fn from_env() -> Result<String, InvalidLogs> {
    match env::var("RUST_LOG") {
        Ok(text) if !text.trim().is_empty() => Ok(text),
        Ok(_) | Err(VarError::NotPresent) => Ok(DEFAULT.to_owned()),
        Err(VarError::NotUnicode(_)) => Err(InvalidLogs::NotUnicode),
    }
}

/// What fits where this runs.
fn fitting() -> Format {
    if env::var_os("K_SERVICE").is_none() && io::stdout().is_terminal() {
        Format::Human
    } else {
        Format::CloudLogging
    }
}

/// A filter, and whether it has to be warned of. A misspelt level is read as a target that nothing
/// has, and would silence all others.
fn filter(text: &str) -> Result<(Targets, bool), InvalidLogs> {
    let text = text.trim();
    let invalid = |source| InvalidLogs::Filter { filter: text.to_owned(), source };
    // How other programs name spans: read as the name of a target, which nothing has.
    if text.contains(['[', '{']) {
        return Err(invalid(None));
    }
    let filter: Targets = text.parse().map_err(|source| invalid(Some(source)))?;
    let muted = !filter.would_enable("pushonce", &Level::ERROR) && !text.eq_ignore_ascii_case("off");
    // The span says to which delivery and trace a line belongs, also one that is not of this crate.
    let filter = filter.with_target(DELIVERY, LevelFilter::ERROR);
    Ok((if muted { filter.with_target(HERE, LevelFilter::WARN) } else { filter }, muted))
}

/// A log that cannot be set up. Do not start without one; mend what the text says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLogs {
    /// The filter cannot be read.
    #[error(
        "the log filter {filter:?} (of `RUST_LOG`, unless the program gives one) cannot be read: expected levels and targets, such as `info` or `info,pushonce=debug`, and no spans or fields"
    )]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        source: Option<tracing_subscriber::filter::ParseError>,
    },
    /// `RUST_LOG` is not UTF-8.
    #[error("`RUST_LOG` is not UTF-8")]
    NotUnicode,
    /// This process has a subscriber already. Call `init` once, and nothing else that sets one.
    #[error("this process has a log already")]
    Taken(#[from] SetGlobalDefaultError),
}
