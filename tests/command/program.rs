//! The program, run.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program, without what the tests' own environment says of a store or of a terminal.
pub(crate) fn program(arguments: &[&str], variables: &[(&'static str, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pushonce"));
    command.env_remove("PUSHONCE_STORE").env_remove("NO_COLOR").env("TERM", "xterm");
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

pub(crate) fn run(arguments: &[&str], stdin: &[u8]) -> Ran {
    run_with(arguments, &[], stdin)
}

pub(crate) fn run_with(arguments: &[&str], variables: &[(&'static str, String)], stdin: &[u8]) -> Ran {
    let mut command = program(arguments, variables);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It may end without having read all.
    let _ = child.stdin.take().expect("stdin is piped").write_all(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

/// What `check --json` says of a plan on stdin.
pub(crate) fn check(plan: &Value, more: &[&str]) -> (i32, Value) {
    let arguments: Vec<_> = ["check", "--json", "--plan", "-"].iter().chain(more).copied().collect();
    let ran = run(&arguments, plan.to_string().as_bytes());
    assert_eq!(ran.err, "");
    (ran.code, serde_json::from_str(&ran.out).expect("JSON"))
}

/// The ids of the findings of this severity, of one subscription.
pub(crate) fn ids(checked: &Value, severity: &str) -> BTreeSet<String> {
    let findings = checked["findings"].as_array().expect("findings");
    let found = findings.iter().filter(|finding| finding["severity"] == severity);
    found.map(|finding| finding["id"].as_str().expect("an id").to_owned()).collect()
}
