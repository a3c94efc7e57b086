//! Lists: what they take, how they end, and that they are nothing but texts at a terminal.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::asked::Asked;
use crate::program::program;
use crate::site::Site;

fn keys(lines: &[Value]) -> Vec<String> {
    let mut keys: Vec<_> = lines.iter().map(|line| format!("{}:{}", line["consumer"], line["key"])).collect();
    keys.iter_mut().for_each(|key| *key = key.replace('"', ""));
    keys.sort();
    keys
}

#[tokio::test]
async fn a_list_takes_what_it_is_asked_for() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    for (consumer, text) in [("orders", "po-1"), ("orders", "po-2"), ("orders", "x:1"), ("mail", "po-1")] {
        asked.done(consumer, text).await;
    }
    asked.held("orders", "po-3", Duration::from_secs(3600)).await;
    asked.uncertain("orders", "po-4").await;

    for (arguments, expected) in [
        (
            &[][..],
            &["mail:po-1", "orders:po-1", "orders:po-2", "orders:po-3", "orders:po-4", "orders:x:1"][..],
        ),
        (&["--consumer", "mail"], &["mail:po-1"]),
        (&["--consumer", "order"], &[]),
        (&["--prefix", "po-1"], &["mail:po-1", "orders:po-1"]),
        (&["--consumer", "orders", "--prefix", "x:"], &["orders:x:1"]),
        (&["--state", "claimed"], &["orders:po-3"]),
        (&["--state", "released"], &["orders:po-4"]),
        (&["--state", "done", "--consumer", "orders"], &["orders:po-1", "orders:po-2", "orders:x:1"]),
    ] {
        let lines = asked.lines(&[&["keys", "list"], arguments].concat()).await;
        assert_eq!(keys(&lines), expected, "{arguments:?}");
    }
    assert_eq!(asked.lines(&["keys", "list", "--limit", "2"]).await.len(), 2);
    assert_eq!(asked.lines(&["keys", "list", "--limit", "0"]).await, Vec::<Value>::new());
    let all = asked.lines(&["keys", "list", "--all"]).await;
    assert_eq!(all.len(), 7);
    assert!(all.iter().any(|line| line["consumer"] == "pushonce-uncertain"), "{all:?}");
    // Whoever names one of the library's own means it.
    assert_eq!(asked.lines(&["keys", "list", "--consumer", "pushonce-uncertain"]).await.len(), 1);
}

#[tokio::test]
async fn an_empty_list_is_said_to_be_empty_to_people_only() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    for noun in ["uncertain", "dead-letters"] {
        let told = asked.run(&[noun, "list"]).await;
        assert_eq!((told.code, &*told.out, &*told.err), (0, "Nothing found.\n", ""));
        let told = asked.run(&[noun, "list", "--json"]).await;
        assert_eq!((told.code, &*told.out, &*told.err), (0, "", ""));
    }
}

/// More than one page, so that the program has to begin a second one.
#[tokio::test]
async fn a_list_of_several_pages_is_one_table() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.many(1100).await;
    let told = asked.run(&["keys", "list"]).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    let mut lines = told.out.lines();
    let head = lines.next().unwrap();
    assert!(head.starts_with("STATUS  LEFT ") && head.ends_with("KEY"), "{head}");
    assert!(lines.next().unwrap().chars().all(|c| c == '─'));
    let (at, mut rows) = (head.find("KEY").unwrap(), 0);
    for line in lines {
        assert!(line.starts_with("done ") && line[at..].starts_with("orders:po-"), "{line}");
        rows += 1;
    }
    assert_eq!(rows, 1100);
    assert_eq!(asked.lines(&["keys", "list", "--limit", "700"]).await.len(), 700);
}

#[tokio::test]
async fn no_text_of_a_key_reaches_a_terminal_as_more_than_a_text() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let text = "a\u{1b}[31mred\r\nnext\u{7f}\u{9b}2J\u{202e}b\u{0}";
    asked.uncertain("orders", text).await;
    for arguments in [
        &["keys", "list", "--all"][..],
        &["keys", "list", "--all", "--json"],
        &["keys", "list", "--prefix", "a\u{1b}", "--json"],
        &["uncertain", "list"],
        &["uncertain", "list", "--json"],
        &["keys", "get", "orders", "a\u{1b}[31m"],
        &["keys", "get", "orders", "a\u{202e}b", "--json"],
        &["keys", "reset", "orders", "a\u{1b}[31m"],
        &["keys", "get", "or\u{1b}ders", "a"],
        &["dead-letters", "show", "a\u{1b}[31m"],
        &["dead-letters", "discard", "a\u{1b}[31m"],
        &["dead-letters", "discard", "a\u{1b}[31m", "--json"],
    ] {
        let told = asked.run(arguments).await;
        let all = told.out + &told.err;
        assert!(!all.is_empty());
        assert!(
            !all.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{arguments:?} {all:?}"
        );
    }
    // And what is escaped in JSON is the text all the same.
    let lines = asked.lines(&["uncertain", "list"]).await;
    let expected = json!(text);
    assert_eq!(lines[0]["key"], expected);
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.many(1100).await;
    for arguments in [&["keys", "list"][..], &["keys", "list", "--json"]] {
        let mut command = program(arguments, &asked.variables);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        // The pipe is closed by now, with pages to come.
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), &*String::from_utf8_lossy(&ended.stderr)), (Some(0), ""));
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_understood_hides_no_other_and_is_code_2() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    asked.done("orders", "po-2").await;
    let spoil = "UPDATE pushonce SET document = 'no record' WHERE name LIKE '%po-1'";
    assert_eq!(sqlx::query(spoil).execute(&asked.file().await).await.unwrap().rows_affected(), 1);

    let told = asked.run(&["keys", "list", "--json"]).await;
    assert_eq!(told.code, 2);
    let lines: Vec<Value> = told.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(keys(&lines), ["orders:po-2"]);
    let mut said = told.err.lines();
    let named = said.next().unwrap();
    assert!(named.starts_with("pushonce: orders:po-1: what stands under the key is not a record"), "{named}");
    assert_eq!(said.next(), Some("pushonce: one record could not be understood"));
    assert_eq!(said.next(), None);
    let told = asked.run(&["keys", "get", "orders", "po-1"]).await;
    assert_eq!((told.code, &*told.out, told.err.lines().count()), (2, "", 1), "{}", told.err);
}
