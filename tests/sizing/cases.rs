//! `cases.json`: every number and every id, as the sizing tells them.

use std::collections::BTreeSet;
use std::time::Duration;

use pushonce::sizing::{Severity, Sizing, Verdict};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    sizing: Numbers,
    burned_exact: u64,
    burned: u64,
    needed: u64,
    refused: BTreeSet<String>,
    warned: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    lease_seconds: u64,
    ttl_seconds: u64,
    request_timeout_seconds: u64,
    ack_deadline_seconds: u64,
    min_backoff_seconds: u64,
    max_backoff_seconds: u64,
    max_delivery_attempts: u32,
    retention_seconds: u64,
    holders_ahead: Option<u32>,
    floor_ratio: Option<f64>,
    real_failures: Option<u32>,
}

impl Numbers {
    fn sizing(&self) -> Sizing {
        let d = Sizing::default();
        d.lease(Duration::from_secs(self.lease_seconds))
            .ttl(Duration::from_secs(self.ttl_seconds))
            .request_timeout(Duration::from_secs(self.request_timeout_seconds))
            .ack_deadline(Duration::from_secs(self.ack_deadline_seconds))
            .min_backoff(Duration::from_secs(self.min_backoff_seconds))
            .max_backoff(Duration::from_secs(self.max_backoff_seconds))
            .max_delivery_attempts(self.max_delivery_attempts)
            .retention(Duration::from_secs(self.retention_seconds))
            .holders_ahead(self.holders_ahead.unwrap_or(d.holders_ahead))
            .floor_ratio(self.floor_ratio.unwrap_or(d.floor_ratio))
            .real_failures(self.real_failures.unwrap_or(d.real_failures))
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("cases.json")).expect("the cases are cases")
}

fn ids(verdict: &Verdict, severity: Severity) -> BTreeSet<String> {
    let found = verdict.findings().iter().filter(|finding| finding.severity() == severity);
    found.map(|finding| finding.rule().id().to_owned()).collect()
}

#[test]
fn every_case_has_the_numbers_and_the_findings_of_the_table() {
    for case in cases() {
        let sizing = case.sizing.sizing();
        let verdict = sizing.verdict();
        let numbers = (verdict.burned_exact(), verdict.burned(), verdict.needed());
        assert_eq!(numbers, (case.burned_exact, case.burned, case.needed), "{}", case.name);
        assert_eq!(ids(&verdict, Severity::Refused), case.refused, "{}", case.name);
        assert_eq!(ids(&verdict, Severity::Warned), case.warned, "{}", case.name);
        assert_eq!(verdict.is_refused(), !case.refused.is_empty(), "{}", case.name);
        assert_eq!(sizing.check().is_err(), verdict.is_refused(), "{}", case.name);
        assert_eq!(sizing.enforce().is_err(), verdict.is_refused(), "{}", case.name);
        assert_eq!(sizing.warn_only().enforce(), Ok(sizing.warn_only()), "{}", case.name);
        let needed = i64::try_from(case.needed).unwrap();
        assert_eq!(verdict.spare(), i64::from(case.sizing.max_delivery_attempts) - needed, "{}", case.name);
    }
}

/// What is not in the table is tested by nobody.
#[test]
fn the_table_breaks_every_rule_alone_and_keeps_each_at_its_boundary() {
    let cases = cases();
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "names are given twice");
    for rule in ["lease", "window", "attempts", "ack-deadline", "retention", "backoff", "ttl"] {
        let kept = |case: &&Case| {
            case.name.starts_with(&format!("{rule}:")) && case.refused.is_empty() && case.warned.is_empty()
        };
        let broken = |case: &&Case| case.refused.iter().chain(&case.warned).eq([rule]);
        assert!(cases.iter().any(|case| kept(&case)), "no case keeps {rule}");
        assert!(cases.iter().any(|case| broken(&case)), "no case breaks {rule} alone");
    }
}

#[test]
fn the_defaults_are_the_first_case_and_those_of_the_layer() {
    let sizing = Sizing::default();
    assert_eq!(sizing, cases()[0].sizing.sizing());
    assert_eq!((sizing.lease, sizing.ttl), (pushonce::DEFAULT_LEASE, pushonce::DEFAULT_TTL));
    assert_eq!((sizing.holders_ahead, sizing.floor_ratio, sizing.real_failures), (1, 0.5, 1));
}

#[test]
fn the_manual_has_the_table() {
    let manual = include_str!("../../docs/sizing.md");
    let tabled = cases().into_iter().filter(|case| case.name.starts_with("table:"));
    let missing = tabled.filter(|case| {
        let Numbers { lease_seconds, min_backoff_seconds, max_backoff_seconds, .. } = case.sizing;
        let Case { burned_exact, burned, needed, .. } = case;
        let row = format!(
            "| {lease_seconds} | {min_backoff_seconds}..{max_backoff_seconds} | {burned_exact} | {burned} | {needed}"
        );
        !manual.contains(&row)
    });
    assert_eq!(missing.map(|case| case.name).collect::<Vec<_>>(), [""; 0]);
}
