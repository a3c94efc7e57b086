//! What is read: a file, stdin, and what is no plan.

use crate::program::{Ran, run};

const GOOD: &str = include_str!("plans/good/plan.json");

/// Code 2, nothing on stdout, and one line that names the input.
fn unreadable(ran: &Ran, because: &str) {
    assert_eq!((ran.code, &*ran.out), (2, ""), "{}", ran.err);
    assert!(ran.err.starts_with("pushonce: ") && ran.err.contains(because), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn a_plan_comes_from_a_file_or_from_stdin() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/plans/good/plan.json");
    let from_file = run(&["check", "--plan", file], b"");
    let from_stdin = run(&["check", "--plan", "-"], GOOD.as_bytes());
    assert_eq!((from_file.code, from_stdin.code), (0, 0), "{}{}", from_file.err, from_stdin.err);
    assert_eq!(from_file.out, from_stdin.out);
    assert!(
        from_file.out.starts_with("google_pubsub_subscription.orders\n\nlease, ttl "),
        "{}",
        from_file.out
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    unreadable(&run(&["check", "--plan", "no/such\nplan.json"], b""), "plan.json: No such file");
    unreadable(&run(&["check", "--plan", "src"], b""), "src: Is a directory");
}

#[test]
fn what_is_no_plan_is_said_to_be_none() {
    let deep = "[".repeat(100_000);
    for (text, because) in [
        ("", "-: expected what `terraform show -json PLANFILE` prints: EOF"),
        ("{", "EOF"),
        ("[]", "expected what"),
        ("null", "expected what"),
        ("{}", "missing field `format_version`"),
        (&deep, "expected what"),
        ("PK\u{3}\u{4}", "expected value"),
        (r#"{"format_version":"2.0","planned_values":{}}"#, "format_version is \"2.0\": expected 1"),
        (r#"{"format_version":"1.0"}"#, "it has no `planned_values`"),
        (r#"{"format_version":"1.0","values":{"root_module":{}}}"#, "it has no `planned_values`"),
        (
            r#"{"format_version":"1.2","planned_values":{"root_module":{"resources":{}}}}"#,
            "expected a sequence",
        ),
        (
            r#"{"format_version":"1.2","planned_values":{"root_module":{}}}"#,
            "no google_pubsub_subscription with a push_config",
        ),
    ] {
        unreadable(&run(&["check", "--plan", "-"], text.as_bytes()), because);
    }
    unreadable(&run(&["check", "--plan", "-"], b"{\"format_version\": \"\xff\"}"), "UTF-8");
}

#[test]
fn an_eventarc_trigger_is_no_subscription_that_a_plan_shows() {
    let trigger = r#"{"address":"google_eventarc_trigger.t","mode":"managed","type":"google_eventarc_trigger","name":"t","values":{}}"#;
    let plan = format!(
        r#"{{"format_version":"1.2","planned_values":{{"root_module":{{"resources":[{trigger}]}}}}}}"#
    );
    unreadable(&run(&["check", "--plan", "-"], plan.as_bytes()), "Eventarc trigger is made by Google");
}

#[test]
fn what_never_ends_is_given_up() {
    unreadable(&run(&["check", "--plan", "/dev/zero"], b""), "/dev/zero: larger than 64 MiB: no plan");
}
