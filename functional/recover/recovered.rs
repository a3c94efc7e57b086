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

    /// By the formula: when it is processed again, and the attempts burned after the one that was killed.
    pub(crate) fn computed(&self) -> (Duration, usize) {
        let verdict = self.sizing.verdict();
        let burned = usize::try_from(verdict.burned_exact()).expect("few");
        (verdict.taken_over(), burned.saturating_sub(1))
    }

    pub(crate) fn csv(&self) -> String {
        let name = self.case.subject.name();
        let lease = if self.case.subject == Subject::ByHand { 0 } else { self.sizing.lease.as_secs() };
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
    let (taken_over, burned) = first.computed();
    let (lease, computed) = if first.case.subject == Subject::ByHand {
        ("none".to_owned(), "–".to_owned())
    } else {
        let computed = format!("{} s, {burned} burned", taken_over.as_secs());
        (format!("{} s", first.sizing.lease.as_secs()), computed)
    };
    let mut each: Vec<_> = rounds.iter().map(Recovered::burned).collect();
    each.sort_unstable();
    let burned = between(each.iter().map(usize::to_string));
    vec![first.case.subject.name().to_owned(), lease, seen(rounds), burned, computed]
}

fn seen(rounds: &[Recovered]) -> String {
    let Some(mut acked) = rounds.iter().map(Recovered::acked).collect::<Option<Vec<_>>>() else {
        return "not in the time that was looked".to_owned();
    };
    acked.sort();
    let acked = between(acked.iter().map(|acked| format!("{:.1}", acked.as_secs_f64())));
    if rounds.iter().any(|round| round.effects == 0) {
        format!("**never**: acked after {acked} s, and lost")
    } else {
        format!("{acked} s")
    }
}

/// The least and the most of what is sorted.
fn between(values: impl Iterator<Item = String>) -> String {
    let mut values: Vec<_> = values.collect();
    values.dedup();
    match &*values {
        [least, .., most] => format!("{least}–{most}"),
        _ => values.join(""),
    }
}
