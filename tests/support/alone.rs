//! A process of its own for a test that changes its process for good.

use std::future::Future;
use std::process::Command;

/// Set in the process of its own, to the test's name.
const ALONE: &str = "PUSHONCE_TEST_ALONE";

/// Runs the body of the test of that full name in a process of its own, with these variables, on paused time.
pub(crate) fn alone(name: &str, variables: &[(&str, &str)], body: impl Future<Output = ()>) {
    if std::env::var(ALONE).is_ok_and(|running| running == name) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        return runtime.unwrap().block_on(body);
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", name, "--nocapture"]).env_remove("PUSHONCE_DISABLED").env_remove("K_SERVICE");
    let output = test.env(ALONE, name).envs(variables.iter().copied()).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A name without a test would pass without having run anything.
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{name} failed alone:\n{said}\n{complained}"
    );
}
