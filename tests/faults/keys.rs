//! One table of texts that stores are known to fold, cut, trim, normalise or take for something of their
//! own, and one answer from every store. // F68

use pushonce::{IntoKey, InvalidKey, Key, RunError, Skip, lock};

use crate::on_servers::on_servers;
use crate::site::Site;

on_servers! {
    all {
        every_key_runs_once_and_distinct_keys_stay_distinct
        a_blank_key_is_refused
    }
}

fn texts() -> Vec<String> {
    let long = "x".repeat(1999);
    let mut texts = vec![
        "k".repeat(1500),
        "k".repeat(1501),
        "€".repeat(600),
        format!("{long}a"),
        format!("{long}b"),
        "nul\0".to_owned(),
        "nul".to_owned(),
        "nul\0l".to_owned(),
    ];
    let short =
        ["__x__", "a/b", "a", "A", "a ", "ab", "Ab", "aB", "AB", "..", ".", "\u{e9}", "e\u{301}", "É", "e"];
    texts.extend(short.map(str::to_owned));
    texts
}

fn key(text: &str) -> Result<Key, InvalidKey> {
    ("orders", text).into_key()
}

async fn every_key_runs_once_and_distinct_keys_stay_distinct(site: &Site) {
    let store = site.store();
    // All of the first round run before one is repeated: so none was taken for another.
    for round in ["ran", "duplicate"] {
        for text in texts() {
            let answer = match lock(key(&text).unwrap(), &store).run(async { Ok(()) }).await {
                Ok(()) => "ran",
                Err(RunError::Skipped(Skip::Duplicate { .. })) => "duplicate",
                Err(error) => panic!("{} bytes, {:.20}: {error:?}", text.len(), text),
            };
            assert_eq!(answer, round, "{} bytes, {text:.20}", text.len());
        }
    }
}

async fn a_blank_key_is_refused(site: &Site) {
    let store = site.store();
    for blank in ["", " ", "\t\n", "\u{3000}"] {
        let refused = lock(("orders", blank), &store).run(async { Ok(()) }).await;
        assert!(matches!(refused, Err(RunError::Key(InvalidKey::Blank { .. }))), "{blank:?}: {refused:?}");
    }
}
