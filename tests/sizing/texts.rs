//! What is said: a finding has what is, what was expected and what to change; an error is one line, a verdict a table.

use std::time::Duration;

use pushonce::sizing::{Rule, Severity, Sizing};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_finding_names_both_numbers() {
    let d = Sizing::default();
    for (wrong, rule, words) in [
        (d.lease(s(570)), Rule::Lease, ["lease is 570 s", "more than request_timeout, 570 s"]),
        (d.lease(s(1800)).ttl(s(1800)), Rule::Window, ["lease + ttl is 3600 s", "more than 3600 s"]),
        (d.max_delivery_attempts(9), Rule::Attempts, ["max_delivery_attempts is 9", "at least 10"]),
        (d.max_delivery_attempts(0), Rule::Attempts, ["max_delivery_attempts is 0", "5 to 100; set 10"]),
        (d.max_delivery_attempts(101), Rule::Attempts, ["is 101", "5 to 100"]),
        (d.lease(s(3600)).max_backoff(s(60)), Rule::Attempts, ["needed 124", "at most 100"]),
        (d.ack_deadline(s(569)), Rule::AckDeadline, ["ack_deadline is 569 s", "request_timeout, 570 s"]),
        (d.ack_deadline(s(601)), Rule::AckDeadline, ["ack_deadline is 601 s", "10 s to 600 s"]),
        (d.retention(s(11430)), Rule::Retention, ["retention is 11430 s", "12 attempts"]),
        (d.retention(s(2_678_401)), Rule::Retention, ["2678401 s", "600 s to 2678400 s"]),
        (d.min_backoff(s(0)), Rule::Backoff, ["min_backoff is 0 s", "1 s to 600 s"]),
        (d.max_backoff(s(9)), Rule::Backoff, ["min_backoff is 10 s", "max_backoff, 9 s"]),
        (d.max_backoff(Duration::from_millis(600_100)), Rule::Backoff, ["max_backoff is 600.1 s", "600 s"]),
        (d.ttl(s(3600)), Rule::Ttl, ["ttl is 3600 s", "retention, 604800 s"]),
    ] {
        let verdict = wrong.verdict();
        let text =
            verdict.findings().iter().find(|finding| finding.rule() == rule).expect("it is found").text();
        assert!(words.iter().all(|word| text.contains(word)) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn an_error_is_one_line_with_every_finding() {
    let error = Sizing::default().lease(s(500)).max_delivery_attempts(3).ttl(s(7200)).check().unwrap_err();
    let line = error.to_string();
    assert_eq!(error.verdict().findings().len(), 3);
    assert_eq!(line.lines().count(), 1);
    for finding in error.verdict().findings() {
        assert!(line.contains(&finding.to_string()), "{line}");
    }
    assert!(line.contains("(a warning) ttl:") && !line.contains("(a warning) lease:"), "{line}");
}

#[test]
fn a_warning_refuses_nothing_but_is_told() {
    let verdict = Sizing::default().ttl(s(7200)).check().expect("a warning only");
    assert_eq!(
        verdict.findings().iter().map(|finding| finding.severity()).collect::<Vec<_>>(),
        [Severity::Warned]
    );
    assert!(verdict.to_string().contains("\nwarned   ttl: ttl is 7200 s"), "{verdict}");
}

#[test]
fn a_verdict_is_a_table() {
    let verdict = Sizing::default().max_delivery_attempts(9).verdict().to_string();
    assert_eq!(
        verdict,
        "\
lease, ttl                     900 s, 604800 s
request timeout, ack deadline  570 s, 600 s
backoff                        10 s to 600 s
retention                      604800 s
a key is held for              900 s          holders ahead: 1
attempts burned meanwhile      8              if delays are 0.5 as long as they should be; 7 if they are exact
attempts needed                10             those, the one that works, real failures: 1
attempts set                   9              1 too few
taken over within              1230 s         if the holder crashed
last attempt                   915 s          after the first, at the earliest
all attempts take              7830 s         at the longest
refused  attempts: max_delivery_attempts is 9: expected at least 10, since a key that is held for 900 s burns up to 8, and a healthy message is dead-lettered; raise it, raise the backoff or shorten the lease
The sizing is refused."
    );
    assert!(Sizing::default().verdict().to_string().ends_with("The sizing fits."));
}
