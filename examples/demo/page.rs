//! What is printed: one aligned line per delivery, from its answer and from what the store says then.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use pushonce::Outcome;
use pushonce::store::record::{Ended, State};
use pushonce::store::{Record, Stored};

use crate::push::Answer;

/// Prints a line. A reader that has seen enough, as `head` has, ends nothing.
macro_rules! say {
    ($($text:tt)*) => {
        drop(writeln!(std::io::stdout(), $($text)*))
    };
}

const BOLD: &str = "1";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";

pub(crate) struct Page {
    colour: bool,
    lines: u32,
    acked: u32,
    broken: u32,
}

impl Page {
    pub(crate) fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colour, lines: 0, acked: 0, broken: 0 }
    }

    pub(crate) fn title(&self) {
        say!("{}", self.painted(BOLD, "pushonce: one recorded success per order, whatever Pub/Sub delivers"));
        say!(
            "\n  Each line is one push over HTTP to a handler that charges a card. ack: Pub/Sub forgets the"
        );
        say!("  message; nack: it sends it again. The key of a message is its order number (po_id).");
        say!("\n      {:<39}{:<10}{:<9}why", "sent", "answer", "handler");
    }

    pub(crate) fn heading(&self, text: &str) {
        say!("\n  {}", self.painted(BOLD, text));
    }

    pub(crate) fn line(&mut self, sent: &str, answer: &Answer, standing: Option<&Stored>, promised: bool) {
        self.lines += 1;
        let number = self.lines;
        let handler = if answer.died() { "killed" } else { handler(answer.outcome()) };
        let (told, colour) = match answer.status() {
            None => ("no answer".to_owned(), RED),
            // The only acks that the layer gives.
            Some(status) if matches!(status.as_u16(), 200 | 204) => {
                self.acked += 1;
                (format!("{} ack", status.as_u16()), GREEN)
            }
            Some(status) => (format!("{} nack", status.as_u16()), YELLOW),
        };
        let told = self.painted(colour, &format!("{told:<10}"));
        say!("  {number:>2}  {sent:<39}{told}{handler:<9}{}", why(answer, standing));
        self.promise(promised, "this answer");
    }

    /// A submission, whose task or refusal is in its answer's body.
    #[cfg(feature = "submit")]
    pub(crate) fn submission(&mut self, sent: &str, answer: &Answer, promised: bool) {
        let [task, state, code] =
            ["task_id", "state", "code"].map(|member| crate::submission::told(answer, member));
        let status = answer.status().map_or("no answer".to_owned(), |status| status.as_u16().to_string());
        let colour = if code.is_empty() { GREEN } else { YELLOW };
        let status = self.painted(colour, &format!("{status:<19}"));
        // Of an id that begins with its time, what tells it from others.
        let of = task.rsplit('-').next().filter(|end| !end.is_empty()).map(|end| format!(": task ..{end}"));
        say!("   -  {sent:<39}{status}{code}{state}{}", of.unwrap_or_default());
        self.promise(promised, "this answer");
    }

    /// Says so where something is not as promised.
    pub(crate) fn promise(&mut self, kept: bool, what: &str) {
        if !kept {
            self.broken += 1;
            say!("      {}", self.painted(RED, &format!("NOT AS PROMISED: {what}")));
        }
    }

    /// The last words; whether all was as promised.
    pub(crate) fn summary(
        &self,
        calls: usize,
        charged: &[(String, usize)],
        repeats: usize,
        took: Duration,
    ) -> bool {
        let orders: Vec<_> = charged.iter().map(|(order, times)| format!("{order} x{times}")).collect();
        say!("\n  {}", self.painted(BOLD, "Summary"));
        say!(
            "  {} deliveries in {:.1} s: {} acked, {} not.",
            self.lines,
            took.as_secs_f64(),
            self.acked,
            self.lines - self.acked
        );
        say!("  Charged: {}. The card service was called {calls} times.", orders.join(", "));
        if self.broken > 0 {
            say!("\n  {}", self.painted(RED, &format!("{} not as promised: see above.", self.broken)));
            return false;
        }
        say!(
            "  {repeats} call was a repeat: PO-1004's first holder died after its charge and before its record, and"
        );
        say!(
            "  no lease can exclude that. The rerun came with the same effect id (`lease.effect_id`), so the card"
        );
        say!(
            "  service dropped it. PO-1005 and what was refused were never acked: nothing is lost in silence."
        );
        if cfg!(not(feature = "submit")) {
            say!("\n  The producer's side is one more scene: cargo run --example demo --features submit");
        }
        say!("\n  {}", self.painted(GREEN, "All as promised."));
        true
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether the handler ran, as the outcome says.
fn handler(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Ran | Outcome::Failed | Outcome::Uncertain | Outcome::Unguarded) => "ran",
        Some(_) => "not run",
        None => "?",
    }
}

/// Why, as the answer's outcome and the record that stands say it.
fn why(answer: &Answer, standing: Option<&Stored>) -> String {
    let Some(outcome) = answer.outcome() else {
        return match standing {
            Some(stored) if stored.record.state == State::Claimed => {
                format!("the claim stands, {:.1} s of its lease left", left(stored).as_secs_f64())
            }
            _ => "nothing says why".to_owned(),
        };
    };
    let record = standing.map(|stored| &stored.record);
    let reason = match (outcome, record) {
        (Outcome::Ran, Some(record)) => ran(record),
        (Outcome::Duplicate, Some(record)) => {
            let by = record.receipt.as_ref().and_then(|receipt| receipt.message.as_deref());
            format!("recorded by message {}", by.unwrap_or("?"))
        }
        (Outcome::InProgress, _) => {
            let seconds = answer.retry_after().unwrap_or_default().as_secs();
            format!("somebody holds the key; retry after {seconds} s")
        }
        (Outcome::Failed, Some(record)) if record.state == State::Released => {
            format!("key released; failed runs so far: {}", record.runs)
        }
        (Outcome::Unkeyed, _) => "no po_id; nothing was claimed".to_owned(),
        (Outcome::Refused, _) => "not a push; nothing was claimed".to_owned(),
        (_, record) => format!("the record: {:?}", record.map(|record| record.state)),
    };
    format!("{outcome}: {reason}")
}

fn ran(record: &Record) -> String {
    match (record.state, record.ended) {
        (State::Done, Ended::Fresh) => "the key was free; now recorded".to_owned(),
        (State::Done, Ended::Failed) => format!("recorded, after {} failed runs", record.runs),
        (State::Done, Ended::Unknown) => {
            format!("taken over and recorded; it knew of {} run without an end", record.runs)
        }
        (state, _) => format!("but the record is {state:?}"),
    }
}

fn left(stored: &Stored) -> Duration {
    stored.record.lease.saturating_sub(stored.record.aged.saturating_add(stored.age))
}
