//! What cannot be looked at is code 2 and one line, and no line of the program has a password.

use crate::asked::Asked;
use crate::program::{Ran, run, run_with};
use crate::site::Site;

fn refused(ran: &Ran, because: &str) {
    assert_eq!((ran.code, &*ran.out), (2, ""), "{}", ran.err);
    assert!(ran.err.starts_with("pushonce: ") && ran.err.contains(because), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn an_address_that_names_no_store_is_said_to_name_none() {
    for (url, because) in [
        ("", "which store? Set PUSHONCE_STORE, or give --store URL"),
        ("orders", "the address has no scheme"),
        ("ftp://host/", "the scheme `ftp` names no store"),
        ("redis:", "malformed"),
        ("memory:", "nothing can be looked at from here"),
        ("sqlite://no/such/file.db", "no/such/file.db: no such file"),
        ("postgres://u:pa55w0rd@host:port/db", "malformed"),
        ("postgres://u@host/db?pa55w0rd", "unknown"),
        ("datastore://p?kind=", "a parameter is blank"),
    ] {
        for noun in [
            &["keys", "list"][..],
            &["keys", "get", "a", "b"],
            &["uncertain", "list"],
            &["dead-letters", "list"],
        ] {
            let by_flag = run(&[noun, &["--store", url]].concat(), b"");
            let by_variable = run_with(noun, &[("PUSHONCE_STORE", url.to_owned())], b"");
            for ran in [by_flag, by_variable] {
                refused(&ran, because);
                assert!(!ran.err.contains("pa55w0rd"), "{}", ran.err);
            }
        }
    }
    refused(&run(&["keys", "list"], b""), "which store?");
}

#[test]
fn a_store_that_does_not_answer_is_code_2_with_every_cause_and_without_the_password() {
    // Nothing listens on port 1.
    for url in [
        "redis://u:pa55w0rd@127.0.0.1:1/0",
        "postgres://u:pa55w0rd@127.0.0.1:1/db",
        "mysql://u:pa55w0rd@127.0.0.1:1/db",
    ] {
        let ran = run_with(&["keys", "list", "--json"], &[("PUSHONCE_STORE", url.to_owned())], b"");
        refused(&ran, "the store cannot be reached");
        if url.starts_with("redis") {
            assert_eq!(ran.err.matches("Connection refused").count(), 1, "{}", ran.err);
        }
        assert!(!ran.err.contains("pa55w0rd"), "{}", ran.err);
    }
}

#[tokio::test]
async fn no_help_shows_the_address_of_the_environment() {
    let variables = [("PUSHONCE_STORE", "redis://u:pa55w0rd@host/0".to_owned())];
    for noun in ["keys", "tasks", "dead-letters", "uncertain"] {
        for arguments in [&[noun, "--help"][..], &[noun, "-h"], &[noun], &[noun, "help"]] {
            let told = run_with(arguments, &variables, b"");
            let all = told.out + &told.err;
            assert!(!all.is_empty() && !all.contains("pa55w0rd"), "{all}");
        }
        let told = run_with(&[noun, "--help"], &variables, b"");
        assert!(told.out.contains("PUSHONCE_STORE"), "{}", told.out);
        assert!(told.out.contains("Exit codes: 0 ") && told.out.contains("--json"), "{}", told.out);
    }
}

#[tokio::test]
async fn wrong_arguments_are_code_2_and_change_nothing() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    for arguments in [
        &["keys"][..],
        &["keys", "get", "orders"],
        &["keys", "get", "or ders", "po-1"],
        &["keys", "get", "orders", "  "],
        &["keys", "reset", "pushonce-tasks", "po-1"],
        &["keys", "list", "--state", "held"],
        &["keys", "list", "--limit", "-1"],
        &["tasks", "get", "po-1"],
        &["dead-letters", "redrive", "--topic", "projects/p/topics/t"],
        &["dead-letters", "redrive", "dl-1"],
        &["dead-letters", "redrive", "dl-1", "--topic", "t"],
        &["dead-letters", "redrive", "--all", "--topic", "projects/p/topics/t"],
        &[
            "dead-letters",
            "redrive",
            "dl-1",
            "--all",
            "--subscription",
            "s",
            "--topic",
            "projects/p/topics/t",
        ],
        &["nothing"],
    ] {
        let ran = asked.run(arguments).await;
        assert_eq!((ran.code, &*ran.out), (2, ""), "{arguments:?} {}", ran.err);
        assert!(!ran.err.is_empty());
    }
    assert_eq!(asked.lines(&["keys", "list", "--state", "done"]).await.len(), 1);
}
