//! The `rust-version` in Cargo.toml is honest: no dependency of the default build asks for a newer one.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

#[test]
fn no_dependency_of_the_default_build_asks_for_a_newer_compiler() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1"])).expect("JSON");
    // `metadata` knows the versions, but not what the default features pull in; `tree` knows that.
    let tree = cargo(&["tree", "--edges", "normal,build", "--target", "all", "--prefix", "none"]);
    let built: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or(rest)))
        .collect();

    let packages = metadata["packages"].as_array().expect("packages");
    let asked = |package: &Value| package["rust_version"].as_str().map(version);
    let ours = packages.iter().find(|package| package["name"] == env!("CARGO_PKG_NAME"));
    let ours = ours.and_then(asked).expect("we have a rust-version");
    let in_build: Vec<_> = packages
        .iter()
        .filter(|package| built.contains(&(text(package, "name"), text(package, "version"))))
        .collect();
    assert_eq!(in_build.len(), built.len(), "each crate of the tree is known to metadata");

    let newer: Vec<_> = in_build
        .iter()
        .filter(|package| asked(package) > Some(ours))
        .map(|package| format!("{} {}", text(package, "name"), text(package, "rust_version")))
        .collect();
    assert!(newer.is_empty(), "these ask for more than {ours:?}: {newer:?}");
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// `1.88` and `1.88.0` are the same version.
fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().expect("a number"));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--locked")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
