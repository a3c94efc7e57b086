//! What was seen of one killed holder, and how the table and the file of figures say it.

use std::time::Duration;

use pushonce::sizing::Sizing;
use pushonce::testing::Ending;

use crate::place::Standing;
use crate::subject::Subject;

/// Who is killed, with which lease; `None`: its own default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    pub(crate) lease: Option<Duration>,
}

/// What became of the message.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) case: Case,
    pub(crate) round: u32,
    pub(crate) sizing: Sizing,
    /// The deliveries after the kill: when they came, counted from it, and how they ended.
    pub(crate) attempts: Vec<(Duration, Ending, Duration)>,
    pub(crate) effects: usize,
    pub(crate) standing: Standing,
}

impl Recovered {
    /// The deliveries after the kill that were not acked.
    pub(crate) fn burned(&self) -> usize {
        self.attempts.iter().filter(|(_, ending, _)| *ending != Ending::Acked).count()
    }

    /// From the kill until the message was acked.
    pub(crate) fn acked(&self) -> Option<Duration> {
        self.attempts.iter().find(|(_, ending, _)| *ending == Ending::Acked).map(|(_, _, ended)| *ended)
    }

    pub(crate) fn seen(&self) -> String {
        match (self.acked(), self.effects) {
            (None, _) => "not in the time that was looked".to_owned(),
            (Some(acked), 0) => format!("**never**: acked after {:.1} s, and lost", acked.as_secs_f64()),
            (Some(acked), _) => format!("{:.1} s", acked.as_secs_f64()),
        }
    }

    /// By the formula: when it is processed again, and the attempts burned after the one that was killed.
    pub(crate) fn computed(&self) -> (Duration, usize) {
        let verdict = self.sizing.verdict();
        let burned = usize::try_from(verdict.burned_exact()).expect("few");
        (verdict.taken_over(), burned.saturating_sub(1))
    }

    pub(crate) fn csv(&self) -> String {
        let (name, lease) = (self.case.subject.name(), self.sizing.lease.as_secs());
        let lines = self.attempts.iter().enumerate().map(|(number, (sent, ending, ended))| {
            let (sent, ended, number) = (sent.as_secs_f64(), ended.as_secs_f64(), number + 2);
            format!("\"{name}\",{lease},{},{number},{sent:.3},{ended:.3},\"{ending}\"\n", self.round)
        });
        lines.collect()
    }
}

/// The rounds of one case as a line of the table.
pub(crate) fn row(rounds: &[Recovered]) -> Vec<String> {
    let first = &rounds[0];
    let spread = |mut values: Vec<String>| {
        values.dedup();
        values.join(", ")
    };
    let (taken_over, burned) = first.computed();
    let (lease, computed) = if first.case.subject == Subject::ByHand {
        ("none".to_owned(), "–".to_owned())
    } else {
        (
            format!("{} s", first.sizing.lease.as_secs()),
            format!("{} s, {burned} burned", taken_over.as_secs()),
        )
    };
    let seen = spread(rounds.iter().map(Recovered::seen).collect());
    let burned = spread(rounds.iter().map(|round| round.burned().to_string()).collect());
    vec![first.case.subject.name().to_owned(), lease, seen, burned, computed]
}
