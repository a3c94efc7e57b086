//! The figures of all storms, as tables: on the terminal, and for the last lines of `make test`.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use crate::came::Came;
use crate::causes::Cause;
use crate::fate::{Act, Point};

pub(crate) struct Table<'a>(pub(crate) &'a [Came]);

const COLUMNS: [&str; 17] = [
    "published",
    "delivered",
    "ran",
    "duplicates",
    "held",
    "no answer",
    "uncertain",
    "repeats",
    "killed at a point",
    "killed",
    "stopped",
    "late",
    "others",
    "kills",
    "stops",
    "dropped by id",
    "effects per key",
];

impl Table<'_> {
    /// Past the test's capture, since the figures are of interest when it passes, too.
    pub(crate) fn show(&self, seed: u64) {
        let text = format!("\nthe crash storm, seed {seed}\n{self}");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        let Some(report) = std::env::var_os("PUSHONCE_TEST_REPORT") else { return };
        let path = Path::new(&report).join("tables");
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}  {}  seconds", "store", COLUMNS.join("  "))?;
        for came in self.0 {
            let repeated = |wanted: fn(&Cause) -> bool| came.repeated(wanted).to_string();
            let (least, most) = came.effects;
            let figures = [
                came.published.to_string(),
                came.delivered.to_string(),
                came.ran.to_string(),
                came.told("duplicate").to_string(),
                came.told("in-progress").to_string(),
                came.told("502").to_string(),
                came.told("uncertain").to_string(),
                repeated(|_| true),
                repeated(|cause| matches!(cause, Cause::KilledAt(_))),
                repeated(|cause| matches!(cause, Cause::Killed)),
                repeated(|cause| matches!(cause, Cause::Stopped)),
                repeated(|cause| matches!(cause, Cause::Late)),
                repeated(|cause| matches!(cause, Cause::Unrecorded | Cause::Failed)),
                came.kills.to_string(),
                came.stops.to_string(),
                came.dropped.to_string(),
                if least == most { least.to_string() } else { format!("{least} to {most}") },
            ];
            write!(f, "{:<24}", came.store)?;
            for (figure, name) in figures.iter().zip(COLUMNS) {
                write!(f, "  {figure:>width$}", width = name.len())?;
            }
            writeln!(f, "  {:>7}", came.seconds)?;
        }
        writeln!(
            f,
            "\nat each point: processes that died, that stood still; repeats of the runs that died there"
        )?;
        for came in self.0 {
            write!(f, "{:<24}", came.store)?;
            for point in Point::ALL {
                let struck = |act| came.struck.get(&(point, act)).copied().unwrap_or_default();
                let (died, stood) = (struck(Act::Die), struck(Act::Stand));
                let repeats = came.repeated(|cause| *cause == Cause::KilledAt(point));
                if died + stood > 0 {
                    write!(f, "  {point} {died}, {stood}; {repeats}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
