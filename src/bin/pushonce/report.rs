//! What was checked, as a page for people and as JSON for scripts.

use std::fmt;
use std::time::Duration;

use pushonce::sizing::{Severity, Sizing, Verdict};
use serde::Serialize;

/// All that was checked. As JSON: `{"refused", "checked": [..]}`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) refused: bool,
    checked: Vec<Checked>,
}

impl Report {
    /// What has one of these severities is refused.
    pub(crate) fn of(checked: Vec<Checked>, refused: &[&str]) -> Self {
        let mut report = Self { refused: false, checked };
        report.refused = refused.iter().any(|severity| report.count(severity) > 0);
        report
    }

    fn count(&self, severity: &str) -> usize {
        let findings = self.checked.iter().flat_map(|of| &of.findings);
        findings.filter(|finding| finding.severity == severity).count()
    }
}

/// One sizing, with the subscription that it is of.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    /// The address of the subscription in the plan; none for numbers.
    pub(crate) subscription: Option<String>,
    sizing: Times,
    numbers: Numbers,
    pub(crate) findings: Vec<Finding>,
    #[serde(skip)]
    table: String,
}

/// What is `refused`, what is `warned` of, and what is `unknown`, because the plan does not tell it.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) id: &'static str,
    pub(crate) severity: &'static str,
    pub(crate) text: String,
}

/// The fields of `tests/sizing/cases.json`.
#[derive(Debug, Serialize)]
struct Times {
    lease_seconds: f64,
    ttl_seconds: f64,
    request_timeout_seconds: f64,
    ack_deadline_seconds: f64,
    min_backoff_seconds: f64,
    max_backoff_seconds: f64,
    max_delivery_attempts: u32,
    retention_seconds: f64,
    holders_ahead: u32,
    floor_ratio: f64,
    real_failures: u32,
}

#[derive(Debug, Serialize)]
struct Numbers {
    window_seconds: f64,
    burned_exact: u64,
    burned: u64,
    needed: u64,
    spare: i64,
    taken_over_seconds: f64,
    last_attempt_seconds: f64,
    all_attempts_seconds: f64,
}

impl Checked {
    /// The verdict on the numbers alone.
    pub(crate) fn numbers(sizing: &Sizing) -> Self {
        let verdict = sizing.verdict();
        let severity = |severity| if severity == Severity::Refused { "refused" } else { "warned" };
        let findings = verdict.findings().iter().map(|finding| Finding {
            id: finding.rule().id(),
            severity: severity(finding.severity()),
            text: finding.text().to_owned(),
        });
        Self {
            subscription: None,
            sizing: Times::of(sizing),
            numbers: Numbers::of(&verdict),
            findings: findings.collect(),
            table: verdict.table().to_string(),
        }
    }
}

impl Times {
    fn of(sizing: &Sizing) -> Self {
        Self {
            lease_seconds: sizing.lease.as_secs_f64(),
            ttl_seconds: sizing.ttl.as_secs_f64(),
            request_timeout_seconds: sizing.request_timeout.as_secs_f64(),
            ack_deadline_seconds: sizing.ack_deadline.as_secs_f64(),
            min_backoff_seconds: sizing.min_backoff.as_secs_f64(),
            max_backoff_seconds: sizing.max_backoff.as_secs_f64(),
            max_delivery_attempts: sizing.max_delivery_attempts,
            retention_seconds: sizing.retention.as_secs_f64(),
            holders_ahead: sizing.holders_ahead,
            floor_ratio: sizing.floor_ratio,
            real_failures: sizing.real_failures,
        }
    }
}

impl Numbers {
    fn of(verdict: &Verdict) -> Self {
        let seconds = |time: Duration| time.as_secs_f64();
        Self {
            window_seconds: seconds(verdict.window()),
            burned_exact: verdict.burned_exact(),
            burned: verdict.burned(),
            needed: verdict.needed(),
            spare: verdict.spare(),
            taken_over_seconds: seconds(verdict.taken_over()),
            last_attempt_seconds: seconds(verdict.last_attempt()),
            all_attempts_seconds: seconds(verdict.all_attempts()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for of in &self.checked {
            if let Some(subscription) = &of.subscription {
                writeln!(f, "{subscription}\n")?;
            }
            writeln!(f, "{}", of.table)?;
            for Finding { id, severity, text } in &of.findings {
                writeln!(f, "{severity:<9}{id}: {text}")?;
            }
            if !of.findings.is_empty() {
                writeln!(f)?;
            }
        }
        match self.count("unknown") {
            _ if self.refused => writeln!(f, "Refused."),
            0 => writeln!(f, "It fits."),
            unknown => writeln!(f, "It fits, as far as the plan tells: {unknown} unknown."),
        }
    }
}
