//! The numbers of a sizing, what is wrong with it, and both as text.

use std::fmt;
use std::time::Duration;

use super::Sizing;
use super::backoff::Backoff;
use super::rules::{self, Finding, Severity};

/// What [`Sizing::verdict`] found: the numbers and the findings. Its `Display` is a table of several lines.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a verdict that nobody reads refuses nothing"]
pub struct Verdict {
    sizing: Sizing,
    findings: Vec<Finding>,
}

impl Verdict {
    pub(super) fn of(sizing: Sizing) -> Self {
        let numbers = Self { sizing, findings: Vec::new() };
        Self { findings: rules::findings(&numbers), ..numbers }
    }

    /// The sizing that was judged.
    pub fn sizing(&self) -> &Sizing {
        &self.sizing
    }

    /// `H`: how long a key can be held by others: holders ahead × lease.
    pub fn window(&self) -> Duration {
        self.sizing.lease.saturating_mul(self.sizing.holders_ahead)
    }

    /// The attempts that a held key burns in the window if every delay is as long as the retry policy says.
    ///
    /// `u64::MAX` here and in [`burned`](Self::burned) where a delay has no length, and they come without end.
    pub fn burned_exact(&self) -> u64 {
        self.exact().burned(self.window())
    }

    /// `K`: the attempts that it burns if every delay is cut to [`floor_ratio`](Sizing::floor_ratio).
    pub fn burned(&self) -> u64 {
        self.short().burned(self.window())
    }

    /// The delivery attempts that are needed: those burned, the one that works, and the real failures.
    pub fn needed(&self) -> u64 {
        self.burned().saturating_add(1).saturating_add(self.sizing.real_failures.into())
    }

    /// How many attempts are set beyond those needed; below zero: how many are missing.
    pub fn spare(&self) -> i64 {
        let needed = i64::try_from(self.needed()).unwrap_or(i64::MAX);
        i64::from(self.sizing.max_delivery_attempts).saturating_sub(needed)
    }

    /// When the first delivery after the window comes, counted from the first, if no delay is cut: by then
    /// a message whose holder crashed is worked on.
    pub fn taken_over(&self) -> Duration {
        // Delays without length never add up to it.
        self.exact().wait(self.burned_exact()).max(self.window())
    }

    /// When the last attempt comes at the earliest, counted from the first: every delay cut, every answer at once.
    pub fn last_attempt(&self) -> Duration {
        self.short().wait(u64::from(self.sizing.max_delivery_attempts).saturating_sub(1))
    }

    /// How long all attempts take at the longest: every backoff, and every ack deadline waited for. After
    /// that a message that nobody acks is dead-lettered.
    pub fn all_attempts(&self) -> Duration {
        let attempts = self.sizing.max_delivery_attempts;
        let deadlines = self.sizing.ack_deadline.saturating_mul(attempts);
        self.exact().wait(attempts.into()).saturating_add(deadlines)
    }

    /// What is wrong, in the order of the rules.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether a rule is broken that is more than a warning.
    pub fn is_refused(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity() == Severity::Refused)
    }

    /// The numbers as text, without the findings.
    pub fn table(&self) -> Table<'_> {
        Table(self)
    }

    pub(super) fn checked(self) -> Result<Self, InvalidSizing> {
        if self.is_refused() { Err(InvalidSizing { verdict: Box::new(self) }) } else { Ok(self) }
    }

    fn exact(&self) -> Backoff {
        Backoff::new(self.sizing.min_backoff, self.sizing.max_backoff, 1.0)
    }

    fn short(&self) -> Backoff {
        Backoff::new(self.sizing.min_backoff, self.sizing.max_backoff, self.sizing.floor_ratio)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)?;
        for finding in &self.findings {
            writeln!(f, "{:<8} {finding}", finding.severity())?;
        }
        f.write_str(if self.is_refused() { "The sizing is refused." } else { "The sizing fits." })
    }
}

/// The numbers of a verdict, each on a line with what it is. Made by [`Verdict::table`].
#[derive(Debug)]
pub struct Table<'a>(&'a Verdict);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.0;
        let Sizing { holders_ahead, floor_ratio, real_failures, max_delivery_attempts: set, .. } =
            verdict.sizing;
        let s = &verdict.sizing;
        let spare = match verdict.spare() {
            spare @ 0.. => format!("{spare} to spare"),
            missing => format!("{} too few", missing.unsigned_abs()),
        };
        for (what, number, why) in [
            ("lease, ttl", format!("{}, {}", Seconds(s.lease), Seconds(s.ttl)), String::new()),
            (
                "request timeout, ack deadline",
                format!("{}, {}", Seconds(s.request_timeout), Seconds(s.ack_deadline)),
                String::new(),
            ),
            ("backoff", format!("{} to {}", Seconds(s.min_backoff), Seconds(s.max_backoff)), String::new()),
            ("retention", Seconds(s.retention).to_string(), String::new()),
            (
                "a key is held for",
                Seconds(verdict.window()).to_string(),
                format!("holders ahead: {holders_ahead}"),
            ),
            (
                "attempts burned meanwhile",
                Count(verdict.burned()).to_string(),
                format!(
                    "if delays are {floor_ratio} as long as they should be; {} if they are exact",
                    Count(verdict.burned_exact())
                ),
            ),
            (
                "attempts needed",
                Count(verdict.needed()).to_string(),
                format!("those, the one that works, real failures: {real_failures}"),
            ),
            ("attempts set", set.to_string(), spare),
            (
                "taken over within",
                Seconds(verdict.taken_over()).to_string(),
                "if the holder crashed".to_owned(),
            ),
            (
                "last attempt",
                Seconds(verdict.last_attempt()).to_string(),
                "after the first, at the earliest".to_owned(),
            ),
            ("all attempts take", Seconds(verdict.all_attempts()).to_string(), "at the longest".to_owned()),
        ] {
            let line = format!("{what:<30} {number:<14} {why}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Times that do not fit together. Do not start or deploy the service: mend what the findings name.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidSizing {
    verdict: Box<Verdict>,
}

impl InvalidSizing {
    /// The numbers, and all that is wrong, the warnings included.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

impl std::error::Error for InvalidSizing {}

impl fmt::Display for InvalidSizing {
    /// In one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the times do not fit together")?;
        for (at, finding) in self.verdict.findings.iter().enumerate() {
            let sign = if at == 0 { ": " } else { " | " };
            let mark = if finding.severity() == Severity::Warned { "(a warning) " } else { "" };
            write!(f, "{sign}{mark}{finding}")?;
        }
        f.write_str(" | `PUSHONCE_SIZING=warn` starts all the same")
    }
}

/// A time in seconds, as the variables and Pub/Sub say it.
pub(super) struct Seconds(pub(super) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match self.0.subsec_nanos() {
            0 => write!(f, "{seconds} s")?,
            _ => write!(f, "{} s", self.0.as_secs_f64())?,
        }
        Ok(())
    }
}

/// A number of attempts, or none at all.
struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX { f.write_str("without end") } else { self.0.fmt(f) }
    }
}
