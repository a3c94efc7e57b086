//! The figures of all storms, as a table: on the terminal, and for the last lines of `make test`.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use crate::came::Came;
use crate::causes::Cause;
use crate::fate::{Act, Point};

type Wanted = fn(&Cause) -> bool;

pub(crate) struct Table<'a>(pub(crate) &'a [Came]);

impl Table<'_> {
    /// Past the test's capture, since the figures are of interest when it passes, too.
    pub(crate) fn show(&self, seed: u64) {
        let text = format!("\nthe crash storm, PUSHONCE_STORM_SEED={seed}\n{self}");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        let Some(report) = std::env::var_os("PUSHONCE_TEST_REPORT") else { return };
        let path = Path::new(&report).join("tables");
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, name: &str, figure: impl Fn(&Came) -> String) -> fmt::Result {
        write!(f, "{name:<44}")?;
        for came in self.0 {
            write!(f, "  {:>width$}", figure(came), width = came.store.len().max(10))?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row(f, "", |came| came.store.clone())?;
        self.row(f, "published", |came| came.published.to_string())?;
        self.row(f, "delivered", |came| came.delivered.to_string())?;
        self.row(f, "ran", |came| came.ran.to_string())?;
        self.row(f, "duplicates skipped", |came| came.told("duplicate").to_string())?;
        self.row(f, "contention: 503, held", |came| came.told("in-progress").to_string())?;
        self.row(f, "no answer", |came| came.told("502").to_string())?;
        self.row(f, "unavailable: 503", |came| came.told("unavailable").to_string())?;
        self.row(f, "failed: 500", |came| came.told("failed").to_string())?;
        self.row(f, "uncertain", |came| came.told("uncertain").to_string())?;
        self.row(f, "kills", |came| came.kills.to_string())?;
        self.row(f, "stops", |came| came.stops.to_string())?;
        self.row(f, "repeats, each explained", |came| came.repeated(|_| true).to_string())?;
        let causes: [(_, Wanted); 5] = [
            ("  killed at a point", |cause| matches!(cause, Cause::KilledAt(_))),
            ("  killed at any moment", |cause| *cause == Cause::Killed),
            ("  stopped, the lease lapsed", |cause| *cause == Cause::Stopped),
            ("  late, the lease lapsed", |cause| *cause == Cause::Late),
            ("  failed, or not recorded", |cause| matches!(cause, Cause::Failed | Cause::Unrecorded)),
        ];
        for (name, wanted) in causes {
            self.row(f, name, |came| came.repeated(wanted).to_string())?;
        }
        self.row(f, "effects dropped by their ids", |came| came.dropped.to_string())?;
        self.row(f, "effects per key", |came| {
            let (least, most) = came.effects;
            if least == most { least.to_string() } else { format!("{least} to {most}") }
        })?;
        self.row(f, "seconds", |came| came.seconds.to_string())?;
        let is_of_any =
            |point: &Point| self.0.iter().any(|came| came.struck.keys().any(|(at, _)| at == point));
        for point in Point::ALL.into_iter().filter(is_of_any) {
            self.row(f, &format!("at {point}: died, stood; repeats"), |came| {
                let struck = |act| came.struck.get(&(point, act)).copied().unwrap_or_default();
                let (died, stood) = (struck(Act::Die), struck(Act::Stand));
                let repeats = came.repeated(|cause| *cause == Cause::KilledAt(point));
                if died + stood > 0 { format!("{died}, {stood}; {repeats}") } else { String::new() }
            })?;
        }
        Ok(())
    }
}
