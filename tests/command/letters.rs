//! `pushonce dead-letters`: shown without their data, sent again once to the real emulator, and discarded.

use std::time::Duration;

use pushonce::dead_letter::{DeadLetters, receiver};
use pushonce::store::Page;
use pushonce::submit::Tasks;
use pushonce::testing::Push;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::program::{Ran, run_with};
use crate::pubsub::PubSub;
use crate::site::Site;

const LIMIT: Duration = Duration::from_secs(30);
const DATA: &[u8] = b"{\"card\":\"4111\"}\x1b[31m\xff";

/// A message that the subscription `orders-push` gave up.
fn given_up(id: &str) -> Push {
    let push = Push::bytes(DATA).id(id).subscription("projects/p/subscriptions/orders-dead");
    push.attribute("CloudPubSubDeadLetterSourceSubscription", "orders-push")
        .attribute("CloudPubSubDeadLetterSourceSubscriptionProject", "p")
        .attribute("CloudPubSubDeadLetterSourceDeliveryCount", "5")
        .attribute("po_id", "po\u{1b}[31m")
}

impl Asked {
    /// Receives it, and gives its id.
    pub(crate) async fn received(&self, push: Push) -> String {
        let router = receiver(self.store.clone()).follow(Tasks::new(self.store.clone())).router();
        let before = self.ids().await;
        assert_eq!(push.send(&router).await.status, 204);
        self.ids().await.into_iter().find(|id| !before.contains(id)).unwrap()
    }

    async fn ids(&self) -> Vec<String> {
        let page = Page { limit: 100, ..Page::default() };
        let listed = DeadLetters::new(self.operated.clone()).list(&page).await.unwrap();
        listed.found.into_iter().map(|entry| entry.unwrap().id).collect()
    }
}

#[tokio::test]
async fn a_dead_letter_is_shown_without_its_data() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let id = asked.received(given_up("m-1")).await;

    let (code, shown) = asked.json(&["dead-letters", "show", &id]).await;
    assert_eq!(code, 0);
    for (field, expected) in [
        ("id", json!(id)),
        ("state", json!("kept")),
        ("source", json!("attempts")),
        ("message_id", json!("m-1")),
        ("subscription", json!("projects/p/subscriptions/orders-push")),
        ("attempts", json!(5)),
        ("attributes", json!({"po_id": "po\u{1b}[31m"})),
        ("data_len", json!(DATA.len())),
        ("whole", json!(true)),
        ("data", Value::Null),
    ] {
        assert_eq!(shown[field], expected, "{field}");
    }
    for arguments in
        [&["dead-letters", "list"][..], &["dead-letters", "show", &id], &["dead-letters", "list", "--json"]]
    {
        let told = asked.run(arguments).await;
        assert_eq!((told.code, &*told.err), (0, ""));
        assert!(
            told.out.contains(&id) && !told.out.contains("4111") && !told.out.contains('\u{1b}'),
            "{}",
            told.out
        );
    }
}

#[tokio::test]
async fn the_data_is_written_where_it_is_asked_for_and_nothing_beside_it() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let id = asked.received(given_up("m-1")).await;

    let folder = std::env::temp_dir();
    let file = folder.join(format!("{id}-{}", std::process::id()));
    let file_name = file.to_str().unwrap();
    let told = asked.run(&["dead-letters", "show", &id, "--data", file_name]).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    assert!(told.out.contains(&id) && !told.out.contains("4111"), "{}", told.out);
    assert_eq!(std::fs::read(&file).unwrap(), DATA);
    std::fs::remove_file(&file).unwrap();

    let mut command =
        crate::program::program(&["dead-letters", "show", &id, "--data", "-"], &asked.variables);
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout, &*output.stderr), (Some(0), DATA, &b""[..]));

    let told = asked.run(&["dead-letters", "show", &id, "--data", "no/such/folder/file"]).await;
    assert_eq!((told.code, &*told.out, told.err.lines().count()), (2, "", 1), "{}", told.err);

    // A discarded one has none any more.
    assert_eq!(asked.run(&["dead-letters", "discard", &id]).await.code, 0);
    for to in ["-", file_name] {
        let told = asked.run(&["dead-letters", "show", &id, "--data", to]).await;
        assert_eq!((told.code, &*told.out, told.err.lines().count()), (1, "", 1), "{}", told.err);
    }
    assert!(!file.exists());
}

#[tokio::test]
async fn what_is_discarded_stays_listed_and_is_refused() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let id = asked.received(given_up("m-1")).await;
    let other = asked.received(given_up("m-2")).await;

    let (code, told) = asked.json(&["dead-letters", "discard", &id]).await;
    assert_eq!((code, told), (0, json!({"id": id, "discarded": true, "state": "discarded"})));
    let (code, told) = asked.json(&["dead-letters", "discard", "dl-0"]).await;
    assert_eq!((code, told), (1, json!({"id": "dl-0", "discarded": false, "state": null})));
    for (arguments, expected) in [
        (&["--state", "discarded"][..], &[&id][..]),
        (&["--state", "kept"], &[&other]),
        (&["--state", "redriven"], &[]),
        (&["--state", "kept", "--subscription", "orders-push"], &[&other]),
        (&["--state", "kept", "--subscription", "projects/p/subscriptions/orders-push"], &[&other]),
        (&["--subscription", "push"], &[]),
        (&["--subscription", "projects/q/subscriptions/orders-push"], &[]),
    ] {
        let lines = asked.lines(&[&["dead-letters", "list"], arguments].concat()).await;
        let ids: Vec<_> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected.iter().map(|id| id.as_str()).collect::<Vec<_>>(), "{arguments:?}");
    }
    let topic = ["--topic", "projects/p/topics/t"];
    let told = asked.run(&[&["dead-letters", "redrive", &id, "dl-0", "--json"], &topic[..]].concat()).await;
    assert_eq!((told.code, &*told.err), (1, ""));
    assert_eq!(outcomes(&told), ["refused", "refused"]);
}

fn outcomes(ran: &Ran) -> Vec<String> {
    let line = |line| serde_json::from_str::<Value>(line).unwrap()["outcome"].as_str().unwrap().to_owned();
    ran.out.lines().map(line).collect()
}

/// To the real emulator, from any store.
pub(crate) async fn a_redrive_publishes_once_and_moves_the_task(site: &Site) {
    let pubsub = PubSub::from_env(&format!("command-{}", site.name)).await;
    pubsub.topic("t").await;
    pubsub.pull_from("s", "t").await;
    let topic = pubsub.resource("topics", "t");
    let asked = Asked::of(site);
    let task = asked.submitted("po-1").await.task.task_id.to_string();
    let id = asked.received(given_up("m-1").attribute("task-id", &*task)).await;
    let state = async || asked.json(&["tasks", "get", &task]).await.1["state"].clone();
    assert_eq!(state().await, "failed");

    let redrive = ["dead-letters", "redrive", &id, "--topic", &topic];
    let dry = asked.run(&[&redrive[..], &["--dry-run", "--json"]].concat()).await;
    assert_eq!((dry.code, &*dry.err), (0, ""));
    let would: Value = serde_json::from_str(&dry.out).unwrap();
    let expected = json!({
        "id": id, "outcome": "would-publish", "topic": topic, "task": task, "bytes": DATA.len(),
    });
    assert_eq!((would, state().await), (expected, json!("failed")));

    let told = asked.run(&redrive).await;
    assert_eq!((told.code, &*told.err), (0, ""));
    assert!(told.out.starts_with(&format!("{id}: published to {topic} as message ")), "{}", told.out);
    assert_eq!(state().await, "processing");
    let pulled = pubsub.pull("s", LIMIT).await;
    assert_eq!(
        (&pulled["attributes"]["po_id"], &pulled["attributes"]["task-id"]),
        (&json!("po\u{1b}[31m"), &json!(task))
    );

    let again = asked.run(&[&redrive[..], &["--json"]].concat()).await;
    assert_eq!((again.code, &*again.err), (0, ""));
    let before: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&before["outcome"], &before["message_id"]), (&json!("before"), &pulled["messageId"]));
    // Neither is it discarded any more.
    let (code, told) = asked.json(&["dead-letters", "discard", &id]).await;
    assert_eq!((code, told), (1, json!({"id": id, "discarded": false, "state": "redriven"})));
    pubsub.delete("s").await;
}

#[tokio::test]
async fn all_of_a_subscription_are_redriven_and_no_others() {
    let site = Site::sqlite().await;
    let pubsub = PubSub::from_env("command-all").await;
    pubsub.topic("t").await;
    let topic = pubsub.resource("topics", "t");
    let asked = Asked::of(&site);
    for id in ["m-1", "m-2", "m-3"] {
        asked.received(given_up(id)).await;
    }
    let other = given_up("m-4").attribute("CloudPubSubDeadLetterSourceSubscription", "mail-push");
    let other = asked.received(other).await;
    let all =
        ["dead-letters", "redrive", "--all", "--subscription", "orders-push", "--topic", &topic, "--json"];
    let dry = asked.run(&[&all[..], &["--dry-run"]].concat()).await;
    assert_eq!((dry.code, outcomes(&dry)), (0, vec!["would-publish".to_owned(); 3]));
    let told = asked.run(&all).await;
    assert_eq!((told.code, outcomes(&told)), (0, vec!["published".to_owned(); 3]));
    let again = asked.run(&all).await;
    assert_eq!((again.code, &*again.out, &*again.err), (0, "", ""));
    let kept = asked.lines(&["dead-letters", "list", "--state", "kept"]).await;
    assert_eq!((kept.len(), &kept[0]["id"]), (1, &json!(other)));
}

#[tokio::test]
async fn a_redrive_ends_at_what_the_others_would_meet_too() {
    let site = Site::sqlite().await;
    let pubsub = PubSub::from_env("command-no-topic").await;
    let topic = pubsub.resource("topics", "nowhere");
    let asked = Asked::of(&site);
    let ids = [asked.received(given_up("m-1")).await, asked.received(given_up("m-2")).await];
    let told = asked.run(&["dead-letters", "redrive", &ids[0], &ids[1], "--topic", &topic, "--json"]).await;
    assert_eq!((told.code, outcomes(&told)), (2, vec!["failed".to_owned()]), "{}", told.err);
    assert_eq!(told.err.lines().count(), 1, "{}", told.err);
    assert!(told.err.starts_with("pushonce: it was not published"), "{}", told.err);
    let kept = asked.lines(&["dead-letters", "list", "--state", "kept"]).await;
    assert_eq!(kept.len(), 2);
}

#[tokio::test]
async fn a_publisher_that_cannot_be_is_code_2_before_anything_changes() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let id = asked.received(given_up("m-1")).await;
    let mut variables = asked.variables.clone();
    variables.push(("PUBSUB_EMULATOR_HOST", "no host".to_owned()));
    let arguments = ["dead-letters", "redrive", &id, "--topic", "projects/p/topics/t"];
    let told = run_with(&arguments, &variables, b"");
    assert_eq!((told.code, &*told.out, told.err.lines().count()), (2, "", 1), "{}", told.err);
    assert_eq!(asked.lines(&["dead-letters", "list", "--state", "kept"]).await.len(), 1);
}

#[tokio::test]
async fn one_that_cannot_be_understood_keeps_no_other_from_its_redrive() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    let mut ids = Vec::new();
    for id in ["m-1", "m-2", "m-3"] {
        ids.push(asked.received(given_up(id)).await);
    }
    let spoil = "UPDATE pushonce SET document = 'no record' WHERE name LIKE $1";
    let spoilt = sqlx::query(spoil).bind(format!("%{}", ids[1])).execute(&asked.file().await).await;
    assert_eq!(spoilt.unwrap().rows_affected(), 1);
    let all = ["dead-letters", "redrive", "--all", "--subscription", "orders-push", "--dry-run", "--json"];
    let told = asked.run(&[&all[..], &["--topic", "projects/p/topics/t"]].concat()).await;
    assert_eq!((told.code, outcomes(&told)), (2, vec!["would-publish".to_owned(); 2]));
    assert!(told.err.contains("is not a record") && told.err.lines().count() == 1, "{}", told.err);
}
