//! Counts which laws and tests ran against which server, for the last lines of `make test`.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// A law of the store contract held on `server`. Call it last, so that only what passed is counted.
pub(crate) fn law(server: &str, name: &str) {
    append(server, "law", name);
}

/// A law of the store contract was waived for `server`, and did not run.
pub(crate) fn waived(server: &str, name: &str) {
    append(server, "waived", name);
}

/// A test that talked to `server` passed. Call it last, so that only what passed is counted.
pub(crate) fn test(server: &str, name: &str) {
    append(server, "test", name);
}

// Each test crate has a copy of this module, and few need all of it.
const _: [fn(&str, &str); 3] = [law, waived, test];

fn append(server: &str, kind: &str, name: &str) {
    // `cargo test` by hand has no summary to write.
    let Some(report) = env::var_os("PUSHONCE_TEST_REPORT") else { return };
    let path = Path::new(&report).join("ran");
    // One write per line in append mode: many processes write this file at once.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{server}\t{kind}\t{name}\n").as_bytes()));
    assert!(written.is_ok(), "{} cannot be written: {written:?}", path.display());
}
