//! The examples of this crate, as programs to be started.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The program of an example, built with the features of the test that asks.
///
/// `cargo test` has built it already, and then this takes cargo a moment; a test that is run by
/// itself has no fresh example beside it.
pub(crate) fn example(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let features = [
            ("default", cfg!(feature = "default")),
            ("serve", cfg!(feature = "serve")),
            ("datastore", cfg!(feature = "datastore")),
            ("redis", cfg!(feature = "redis")),
            ("postgres", cfg!(feature = "postgres")),
            ("sqlite", cfg!(feature = "sqlite")),
            ("mysql", cfg!(feature = "mysql")),
            ("bucket-s3", cfg!(feature = "bucket-s3")),
            ("bucket-gcs", cfg!(feature = "bucket-gcs")),
            ("oidc", cfg!(feature = "oidc")),
            ("telemetry", cfg!(feature = "telemetry")),
            ("prometheus", cfg!(feature = "prometheus")),
            ("submit", cfg!(feature = "submit")),
            ("publish", cfg!(feature = "publish")),
            ("cli", cfg!(feature = "cli")),
            ("testing", cfg!(feature = "testing")),
            ("contract", cfg!(feature = "contract")),
        ];
        let features: Vec<_> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--examples", "--no-default-features", "--features"]);
        cargo.arg(features.join(",")).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success(), "the examples do not build");
        // This test is target/PROFILE/deps/NAME-HASH.
        let test = std::env::current_exe().expect("a path");
        test.ancestors().nth(2).expect("target/PROFILE").join("examples")
    });
    folder.join(name)
}
