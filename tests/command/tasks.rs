//! `pushonce tasks`: where a task stands, and what a cancellation says.

use pushonce::idempotent::{End, Follow as _};
use pushonce::submit::Tasks;
use serde_json::json;

use crate::asked::Asked;
use crate::site::Site;

const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

#[tokio::test]
async fn a_task_is_shown_and_cancelled_once() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let id = asked.submitted("po-1").await.task.task_id.to_string();

    let (code, shown) = asked.json(&["tasks", "get", &id]).await;
    assert_eq!((code, &shown["task_id"], &shown["state"]), (0, &json!(id), &json!("processing")));
    assert_eq!((&shown["scope"], &shown["idempotency_key"]), (&json!("type:charge"), &json!("po-1")));
    let told = asked.run(&["tasks", "get", &id]).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    assert!(
        told.out.lines().any(|line| line.starts_with("state ") && line.ends_with(" processing")),
        "{}",
        told.out
    );

    let (code, told) = asked.json(&["tasks", "cancel", &id]).await;
    assert_eq!((code, &told["cancelled"], &told["task"]["why"]), (0, &json!(true), &json!("cancelled")));
    let told = asked.run(&["tasks", "cancel", &id]).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    assert!(told.out.contains("is cancelled"), "{}", told.out);
}

#[tokio::test]
async fn a_task_that_is_over_is_not_cancelled() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let id = asked.submitted("po-1").await.task.task_id.to_string();
    Tasks::new(asked.store.clone()).ended(&id, End::Completed).await.unwrap();
    let (code, told) = asked.json(&["tasks", "cancel", &id]).await;
    assert_eq!((code, &told["cancelled"], &told["task"]["state"]), (1, &json!(false), &json!("completed")));
    let told = asked.run(&["tasks", "cancel", &id]).await;
    let expected = format!("Task {id} is over and was left as it is: completed.\n");
    assert_eq!((told.code, told.out, &*told.err), (1, expected, ""));
}

#[tokio::test]
async fn a_task_that_nobody_knows_is_code_1_and_no_id_of_one_is_code_2() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.submitted("po-1").await;
    assert_eq!(asked.json(&["tasks", "get", NOBODY]).await, (1, json!(null)));
    assert_eq!(
        asked.json(&["tasks", "cancel", NOBODY]).await,
        (1, json!({"cancelled": false, "task": null}))
    );
    let told = asked.run(&["tasks", "get", NOBODY]).await;
    assert_eq!((told.code, told.out), (1, format!("There is no task {NOBODY}.\n")));
    for command in ["get", "cancel"] {
        let told = asked.run(&["tasks", command, &NOBODY.to_uppercase()]).await;
        assert_eq!((told.code, &*told.out), (2, ""));
        assert!(told.err.contains("expected a UUID in lower case"), "{}", told.err);
    }
}
