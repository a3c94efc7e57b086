//! What an instance writes down of its runs, a line at a time, so that it outlives SIGKILL; and what is read of it.

use std::io::Write as _;
use std::time::SystemTime;

use pushonce::{History, Lease};

use crate::fate::Point;

/// Tells a line of the journal from what the test program itself writes.
const MARK: &str = "storm";
/// What a process says last before it strikes itself.
pub(crate) const CAME_TO: &str = "came-to";

/// Microseconds since the epoch, as fences are counted: on one machine everybody has the same clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    u64::try_from(since.as_micros()).unwrap()
}

/// Which run of which key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) key: String,
    pub(crate) fence: u64,
}

impl Name {
    pub(crate) fn of(lease: &Lease) -> Self {
        Self { key: lease.key().text().to_owned(), fence: lease.fence() }
    }
}

/// One line: what is said of a run, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) name: Name,
    pub(crate) said: Said,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The handler began, and was told this.
    Began(History),
    /// The store has acknowledged that the key is done.
    Recorded,
    /// The layer is through with it: the outcome's name.
    Ended(String),
    /// By it the process has come to its point, and strikes itself.
    CameTo(Point),
}

fn write(text: &str) {
    // One write per line: a process that is killed in it has written it, or has not.
    std::io::stdout().write_all(format!("{MARK} {} {text}\n", now()).as_bytes()).unwrap();
}

pub(crate) fn began(name: &Name, history: History) {
    let (told, runs) = match history {
        History::Fresh => ("fresh", 0),
        History::Failed { runs } => ("failed", runs),
        History::Unknown { runs } => ("unknown", runs),
    };
    write(&format!("began {} {} {told} {runs}", name.key, name.fence));
}

pub(crate) fn recorded(name: &Name) {
    write(&format!("recorded {} {}", name.key, name.fence));
}

pub(crate) fn ended(name: &Name, outcome: &str) {
    write(&format!("ended {} {} {outcome}", name.key, name.fence));
}

pub(crate) fn came_to(name: &Name, point: Point) {
    write(&format!("{CAME_TO} {} {} {point}", name.key, name.fence));
}

/// The lines of the journal in all that a process wrote.
pub(crate) fn read(log: &str) -> Vec<Line> {
    // A line of others may stand before ours without an end of its own.
    log.lines()
        .filter_map(|line| line.split_once(&format!("{MARK} ")))
        .filter_map(|(_, ours)| parse(ours))
        .collect()
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace();
    let at = words.next()?.parse().ok()?;
    let what = words.next()?;
    let name = Name { key: words.next()?.to_owned(), fence: words.next()?.parse().ok()? };
    let said = match what {
        "began" => {
            let (told, runs) = (words.next()?, words.next()?.parse().ok()?);
            Said::Began(match told {
                "fresh" => History::Fresh,
                "failed" => History::Failed { runs },
                _ => History::Unknown { runs },
            })
        }
        CAME_TO => Said::CameTo(Point::named(words.next()?)?),
        "recorded" => Said::Recorded,
        "ended" => Said::Ended(words.next()?.to_owned()),
        _ => return None,
    };
    Some(Line { at, name, said })
}
