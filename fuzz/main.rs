//! libFuzzer on one target, which `PUSHONCE_FUZZ` names; started by `fuzz/run`.

#![no_main]

#[path = "../tests/fuzzed/targets/mod.rs"]
#[expect(dead_code, reason = "what a target can come to is asked by the test")]
mod targets;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use targets::{TARGETS, Target, WORDS};

/// Breaks on one input in four thousand millions, which only the reached coverage leads to.
const PLANTED: Target = Target { name: "planted", run: planted, ends: &["fine"], before: &[] };

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = env::var("PUSHONCE_FUZZ").expect("PUSHONCE_FUZZ names a target");
    let found = TARGETS.into_iter().chain([PLANTED]).find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("PUSHONCE_FUZZ: there is no target {name:?}"))
});

fuzz_target!(init: begin(), |input: &[u8]| {
    (TARGET.run)(input);
});

/// Writes what the fuzzer begins with into the folder that `PUSHONCE_FUZZ_SEEDS` names, before it reads that.
fn begin() {
    let folder =
        PathBuf::from(env::var_os("PUSHONCE_FUZZ_SEEDS").expect("PUSHONCE_FUZZ_SEEDS names a folder"));
    fs::create_dir_all(&folder).expect("a folder for the seeds");
    for (path, input) in TARGET.seeds() {
        let name = path.to_string_lossy().replace('/', "-");
        fs::write(folder.join(name), input).expect("a seed is written");
    }
    let quoted = WORDS.map(|word| {
        let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{escaped}\"\n")
    });
    fs::write(folder.with_extension("dict"), quoted.concat()).expect("the words are written");
}

fn planted(input: &[u8]) -> &'static str {
    if input.first() == Some(&b'F') && input.get(1) == Some(&b'U') && input.get(2) == Some(&b'Z') {
        assert_ne!(input.get(3), Some(&b'Z'), "found, as it should be");
    }
    "fine"
}
