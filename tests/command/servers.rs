//! One run through all nouns on every server, as an operator would make it.

use serde_json::json;

use crate::asked::Asked;
use crate::letters::a_redrive_publishes_once_and_moves_the_task;
use crate::site::Site;

/// All nouns, from a key that is done to a task that is cancelled.
async fn every_noun_answers(site: &Site) {
    let asked = Asked::of(site);
    asked.done("orders", "po-1").await;
    asked.uncertain("orders", "po-2").await;
    let id = asked.submitted("po-3").await.task.task_id.to_string();

    let (code, shown) = asked.json(&["keys", "get", "orders", "po-1"]).await;
    assert_eq!((code, &shown["status"]), (0, &json!("done")));
    let mut listed = asked.lines(&["keys", "list", "--consumer", "orders"]).await;
    listed.sort_by_key(|line| line["key"].to_string());
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["key"], &listed[1]["status"]), (&json!("po-1"), &json!("released")));
    assert_eq!(asked.lines(&["keys", "list"]).await.len(), 2);

    let ledger = asked.lines(&["uncertain", "list"]).await;
    assert_eq!((ledger.len(), &ledger[0]["key"]), (1, &json!("po-2")));

    let (code, reset) = asked.json(&["keys", "reset", "orders", "po-1"]).await;
    assert_eq!((code, &reset["reset"]), (0, &json!("freed")));
    assert_eq!(asked.json(&["keys", "get", "orders", "po-9"]).await, (1, json!(null)));

    assert_eq!(asked.json(&["tasks", "get", &id]).await.1["state"], "processing");
    let (code, cancelled) = asked.json(&["tasks", "cancel", &id]).await;
    assert_eq!((code, &cancelled["cancelled"]), (0, &json!(true)));
    let (_, task) = asked.json(&["tasks", "get", &id]).await;
    assert_eq!((&task["state"], &task["why"]), (&json!("failed"), &json!("cancelled")));

    assert!(asked.lines(&["dead-letters", "list"]).await.is_empty());
    assert_eq!(asked.json(&["dead-letters", "show", "dl-0"]).await, (1, json!(null)));

    let purged = asked.run(&["keys", "purge", "--json"]).await;
    if matches!(site.name, "s3" | "fake-gcs") {
        assert_eq!((purged.code, &*purged.out), (2, ""));
        assert!(purged.err.contains("lifecycle rule"), "{}", purged.err);
    } else {
        assert_eq!((purged.code, &*purged.out, &*purged.err), (0, "{\n  \"purged\": 0\n}\n", ""));
    }
}

crate::on_servers::on_servers! {
    [sqlite datastore_emulator firestore_emulator redis postgres mariadb s3 fake_gcs] { every_noun_answers a_redrive_publishes_once_and_moves_the_task }
}
