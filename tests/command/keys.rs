//! `pushonce keys`: how a key is shown, and what a reset and a purge say.

use std::time::Duration;

use pushonce::{History, lock};
use serde_json::json;

use crate::asked::Asked;
use crate::site::Site;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_key_is_shown_with_what_its_record_says() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;

    let (code, shown) = asked.json(&["keys", "get", "orders", "po-1"]).await;
    assert_eq!(code, 0);
    let fields: Vec<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    let promised = [
        "age_seconds",
        "consumer",
        "data_bytes",
        "ended",
        "expires_at",
        "fence",
        "key",
        "lease_seconds",
        "left_seconds",
        "receipt",
        "runs",
        "state",
        "status",
        "ttl_seconds",
        "verb",
        "written_at",
    ];
    assert_eq!(fields, promised);
    assert_eq!((&shown["consumer"], &shown["key"]), (&json!("orders"), &json!("po-1")));
    assert_eq!(
        (&shown["status"], &shown["state"], &shown["verb"]),
        (&json!("done"), &json!("done"), &json!("lock"))
    );
    assert_eq!((&shown["runs"], &shown["ended"]), (&json!(0), &json!("fresh")));
    assert_eq!((&shown["lease_seconds"], &shown["ttl_seconds"]), (&json!(900.0), &json!(604_800.0)));
    assert!(shown["left_seconds"].as_f64().unwrap() <= 604_800.0);
    assert!(shown["fence"].as_u64().unwrap() > 0);
    assert_eq!(shown["receipt"]["progress"], "finished");
    assert!(shown["receipt"]["at"].as_str().unwrap().ends_with('Z'), "{shown}");

    let told = asked.run(&["keys", "get", "orders", "po-1"]).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    let fence = format!("{:<10}{}", "fence", shown["fence"]);
    for line in ["consumer  orders", "key       po-1", "status    done for another 7 d", &fence] {
        assert!(told.out.lines().any(|told| told == line), "{line}\n{}", told.out);
    }
}

#[tokio::test]
async fn a_key_of_which_nothing_is_known_is_code_1_and_null() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    assert_eq!(asked.json(&["keys", "get", "orders", "po-2"]).await, (1, json!(null)));
    let told = asked.run(&["keys", "get", "orders", "po-2"]).await;
    assert_eq!((told.code, &*told.out, &*told.err), (1, "Nothing stands under orders:po-2.\n", ""));
}

#[tokio::test]
async fn a_reset_says_that_the_work_runs_again_and_it_does() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;

    let told = asked.run(&["keys", "reset", "orders", "po-1"]).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    assert_eq!(told.out, "orders:po-1 is free: its work will run again with the next delivery.\n");
    let again = asked.json(&["keys", "reset", "orders", "po-1"]).await;
    let free = json!({"reset": "free", "consumer": "orders", "key": "po-1", "left_seconds": null});
    assert_eq!(again, (0, free));
    let ran = lock(("orders", "po-1"), &asked.store).run_with(|lease| async move { Ok(lease.history()) });
    assert_eq!(ran.await.unwrap(), History::Unknown { runs: 1 });
}

#[tokio::test]
async fn a_key_that_is_held_is_left_alone_unless_it_is_forced() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.held("orders", "po-1", HOUR).await;

    let (code, told) = asked.json(&["keys", "reset", "orders", "po-1"]).await;
    assert_eq!((code, &told["reset"]), (1, &json!("held")));
    let left = told["left_seconds"].as_f64().unwrap();
    assert!(left > 0.0 && left <= 3600.0, "{left}");
    let told = asked.run(&["keys", "reset", "orders", "po-1"]).await;
    assert_eq!((told.code, &*told.err), (1, ""));
    assert!(
        told.out.starts_with("orders:po-1 is held for another ") && told.out.contains("--force"),
        "{}",
        told.out
    );
    assert_eq!(asked.json(&["keys", "get", "orders", "po-1"]).await.1["status"], "held");

    let (code, told) = asked.json(&["keys", "reset", "orders", "po-1", "--force"]).await;
    assert_eq!((code, &told["reset"]), (0, &json!("freed")));
    assert_eq!(asked.json(&["keys", "get", "orders", "po-1"]).await.1["status"], "released");
}

#[tokio::test]
async fn a_purge_ends_when_nothing_is_left_or_at_its_limit() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    for at in 0..5 {
        asked.done("orders", &format!("po-{at}")).await;
    }
    assert_eq!(asked.json(&["keys", "purge"]).await, (0, json!({"purged": 0})));
    // A day after its ttl, as the server sees it.
    let past = "UPDATE pushonce SET expires_at = '2001-01-01 00:00:00.000' WHERE name NOT LIKE '%po-4'";
    assert_eq!(sqlx::query(past).execute(&asked.file().await).await.unwrap().rows_affected(), 4);
    assert_eq!(asked.json(&["keys", "purge", "--limit", "1"]).await, (0, json!({"purged": 1})));
    let told = asked.run(&["keys", "purge"]).await;
    assert_eq!((told.code, &*told.out, &*told.err), (0, "Deleted: 3.\n", ""));
    assert_eq!(asked.lines(&["keys", "list"]).await.len(), 1);
}
