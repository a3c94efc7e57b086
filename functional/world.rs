//! What the scenarios take for granted: what the emulator pushes and when, and that the tools work.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::process::Process;
use crate::pubsub::{Message, PubSub, Push};
use crate::supplier::Supplier;
use crate::{client, report};

/// A push comes within 100 ms on an idle machine; a test machine is not idle.
const SOON: Duration = Duration::from_secs(30);

fn passed(name: &str) {
    report::test("pubsub-emulator", name);
}

#[tokio::test]
async fn a_wrapped_push_has_both_spellings_and_no_attempt_or_ordering_key() {
    let (pubsub, endpoint) = (PubSub::from_env("wrapped").await, Supplier::start().await);
    pubsub.topic("orders").await;
    pubsub.push("charge", "orders", &endpoint.url("/orders?token=abc"), Push::new()).await;
    let message = Message::new("{\"po\":\"€1\"}").attribute("po_id", "42").ordering_key("po-42");
    let id = pubsub.publish("orders", message).await;

    let push = endpoint.await_effects(SOON, |effects| !effects.is_empty()).await.remove(0);
    assert_eq!(push.path, "/orders?token=abc");
    assert_eq!(push.header("content-type"), Some("application/json"));
    assert_eq!(push.header("authorization"), None);
    let mut body: Value = serde_json::from_slice(&push.body).expect("JSON");
    let published = body["message"]["publishTime"].take();
    assert!(published.is_string());
    assert_eq!(body["message"]["publish_time"].take(), published);
    let subscription = format!("projects/pushonce/subscriptions/{}", pubsub.name("charge"));
    assert_eq!(
        body,
        json!({
            "subscription": subscription,
            "message": {
                "data": STANDARD.encode("{\"po\":\"€1\"}"),
                "attributes": { "po_id": "42" },
                "messageId": id, "message_id": id,
                "publishTime": null, "publish_time": null,
            },
        })
    );
    pubsub.delete("charge").await;
    passed("a_wrapped_push_has_both_spellings_and_no_attempt_or_ordering_key");
}

#[tokio::test]
async fn an_unwrapped_push_is_the_data_with_attributes_as_headers() {
    let (pubsub, endpoint) = (PubSub::from_env("unwrapped").await, Supplier::start().await);
    pubsub.topic("orders").await;
    pubsub.push("charge", "orders", &endpoint.url("/"), Push::new().unwrapped()).await;
    // Not arbitrary bytes: without the envelope this emulator turns what is not UTF-8 into U+FFFD.
    let id = pubsub.publish("orders", Message::new("€\0").attribute("po_id", "42")).await;

    let push = endpoint.await_effects(SOON, |effects| !effects.is_empty()).await.remove(0);
    assert_eq!(push.body, "€\0");
    assert_eq!(push.header("x-goog-pubsub-message-id"), Some(id.as_str()));
    assert_eq!(push.header("po_id"), Some("42"));
    pubsub.delete("charge").await;
    passed("an_unwrapped_push_is_the_data_with_attributes_as_headers");
}

#[tokio::test]
async fn a_message_nacked_five_times_goes_to_the_dead_letter_topic() {
    let (pubsub, endpoint) = (PubSub::from_env("dead-letter").await, Supplier::start().await);
    pubsub.topic("orders").await;
    pubsub.topic("dead").await;
    pubsub.pull_from("dead-pull", "dead").await;
    pubsub.push("charge", "orders", &endpoint.url("/"), Push::new().dead_letter("dead", 5)).await;
    // One more than the attempts: a sixth push would be nacked, too, and be seen.
    endpoint.answer(500, 6);
    pubsub.publish("orders", Message::new("poison").attribute("po_id", "42")).await;

    let dead = pubsub.pull("dead-pull", SOON).await;
    assert_eq!(dead["data"], STANDARD.encode("poison"));
    assert_eq!(dead["attributes"]["po_id"], "42");
    assert_eq!(dead["attributes"]["CloudPubSubDeadLetterSourceDeliveryCount"], "5");
    assert_eq!(endpoint.effects().len(), 5);
    pubsub.delete("charge").await;
    passed("a_message_nacked_five_times_goes_to_the_dead_letter_topic");
}

#[tokio::test]
async fn a_nacked_message_waits_for_the_retry_policy() {
    let (pubsub, endpoint) = (PubSub::from_env("retry").await, Supplier::start().await);
    pubsub.topic("orders").await;
    let policy = Push::new().retry(Duration::from_secs(2), Duration::from_secs(2));
    pubsub.push("charge", "orders", &endpoint.url("/"), policy).await;
    endpoint.answer(503, 2);
    pubsub.publish("orders", Message::new("again")).await;

    let pushes = endpoint.await_effects(SOON, |effects| effects.len() == 3).await;
    // The emulator applies the minimum from the second retry on.
    let pause = pushes[2].at - pushes[1].at;
    assert!(pause >= Duration::from_millis(1800), "the second retry came after {pause:?}");
    pubsub.delete("charge").await;
    passed("a_nacked_message_waits_for_the_retry_policy");
}

#[tokio::test]
async fn a_message_is_pushed_again_at_the_ack_deadline_while_the_first_push_is_open() {
    let (pubsub, endpoint) = (PubSub::from_env("overlap").await, Supplier::start().await);
    pubsub.topic("orders").await;
    pubsub.push("charge", "orders", &endpoint.url("/"), Push::new().ack_deadline(5)).await;
    endpoint.hold();
    let id = pubsub.publish("orders", Message::new("slow")).await;

    let pushes = endpoint.await_effects(SOON, |effects| effects.len() == 2).await;
    for push in &pushes {
        let body: Value = serde_json::from_slice(&push.body).expect("JSON");
        assert_eq!(body["message"]["messageId"], id);
    }
    endpoint.release();
    pubsub.delete("charge").await;
    passed("a_message_is_pushed_again_at_the_ack_deadline_while_the_first_push_is_open");
}

#[tokio::test]
async fn ordered_pushes_of_one_key_come_one_at_a_time() {
    let (pubsub, endpoint) = (PubSub::from_env("ordered").await, Supplier::start().await);
    pubsub.topic("orders").await;
    pubsub.push("charge", "orders", &endpoint.url("/"), Push::new().ordered()).await;
    endpoint.hold();
    pubsub.publish("orders", Message::new("a1").ordering_key("a")).await;
    endpoint.await_effects(SOON, |effects| effects.len() == 1).await;
    pubsub.publish("orders", Message::new("a2").ordering_key("a")).await;
    pubsub.publish("orders", Message::new("b1").ordering_key("b")).await;

    let data = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).expect("JSON");
        STANDARD.decode(body["message"]["data"].as_str().expect("text")).expect("base64")
    };
    let pushes = endpoint.await_effects(SOON, |effects| effects.len() == 2).await;
    assert_eq!(data(&pushes[1].body), b"b1");
    endpoint.release();
    let pushes = endpoint.await_effects(SOON, |effects| effects.len() == 3).await;
    assert_eq!(data(&pushes[2].body), b"a2");
    pubsub.delete("charge").await;
    passed("ordered_pushes_of_one_key_come_one_at_a_time");
}

#[tokio::test]
async fn the_supplier_counts_holds_and_fails_to_order() {
    let supplier = Supplier::start().await;
    let to = supplier.url("/").parse::<http::Uri>().expect("a URL");
    let to = client::local(to.port_u16().expect("a port"));
    let effect = |id: &str| {
        Request::post("/charge")
            .header("idempotency-key", id)
            .header("pushonce-fence", "7")
            .body(Bytes::new())
    };
    supplier.answer(500, 1);
    supplier.hold();
    let failed = client::send(to, effect("e-1").expect("a request")).await.expect("an answer");
    assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR);

    let held = client::send_in_background(to, effect("e-1").expect("a request"));
    supplier.await_effects(SOON, |effects| effects.len() == 2).await;
    let other = client::send(to, effect("e-2").expect("a request")).await.expect("an answer");
    assert_eq!(other.status(), StatusCode::OK);
    supplier.release();
    assert_eq!(held.answer().await.expect("an answer").status(), StatusCode::OK);
    assert_eq!((supplier.count("e-1"), supplier.count("e-2")), (2, 1));
    assert_eq!(supplier.effects()[0].fence(), 7);

    // Who hangs up leaves its effect counted.
    supplier.hold();
    let held = client::send_in_background(to, effect("e-3").expect("a request"));
    supplier.await_effects(SOON, |effects| effects.len() == 4).await;
    held.hang_up().await;
    assert_eq!(supplier.count("e-3"), 1);
}

#[tokio::test]
async fn a_process_stops_goes_on_and_ends_by_signals() {
    let mut ticking = Command::new("sh");
    ticking.args(["-c", "n=0; while :; do n=$((n+1)); echo tick $n.; sleep 0.1; done"]);
    let mut process = Process::start("ticking", ticking);
    process.await_log(SOON, "tick 2.").await;
    process.stop().await;
    let stood_at = process.log();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // One line may have been on its way through the pipe.
    assert!(process.log().lines().count() <= stood_at.lines().count() + 1, "it went on while stopped");
    process.cont();
    process.await_log(SOON, "tick 5.").await;
    process.term();
    assert_eq!(process.ended(SOON).await.signal(), Some(15));

    let mut stubborn = Command::new("sh");
    stubborn.args(["-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]);
    let mut process = Process::start("stubborn", stubborn);
    process.await_log(SOON, "ready").await;
    process.term();
    process.kill_9().await;
}

#[tokio::test]
async fn the_summary_fails_if_a_server_was_not_tested() {
    let folder = std::env::temp_dir().join(crate::pubsub::fresh("summary"));
    std::fs::create_dir(&folder).expect("a folder");
    let ran = "memory\tlaw\ta\nmemory\tlaw\ta\nmemory\tlaw\tb\ndatastore-emulator\tlaw\ta\n\
               firestore-emulator\tlaw\ta\n";
    std::fs::write(folder.join("ran"), ran).expect("written");
    std::fs::write(folder.join("versions"), "datastore-emulator\t2.3.1\n").expect("written");
    let summary = || {
        let mut summary = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/functional/summary"));
        summary.env("PUSHONCE_TEST_REPORT", &folder);
        summary
    };
    let failed = summary().output().await.expect("it runs");
    let text = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert!(!failed.status.success(), "{text}");
    assert!(text.contains("nothing ran against it"), "{text}");

    // A store whose laws did not run was not tested, whatever else did.
    let named = text.lines().filter_map(|line| line.split_whitespace().next());
    let others = named.filter(|name| !ran.contains(name));
    let rest: String = others
        .map(|name| format!("{name}\t{}\ta\n", if name == "pubsub-emulator" { "test" } else { "law" }))
        .collect();
    let all = format!("{ran}{rest}");
    std::fs::write(folder.join("ran"), all.replace("firestore-emulator\tlaw", "firestore-emulator\ttest"))
        .expect("written");
    let failed = summary().output().await.expect("it runs");
    let text = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert!(!failed.status.success() && text.contains("no law ran against it"), "{text}");

    std::fs::write(folder.join("ran"), all).expect("written");
    let passed = summary().output().await.expect("it runs");
    let text = String::from_utf8_lossy(&passed.stdout).into_owned();
    assert!(passed.status.success(), "{text}");
    let first: Vec<_> = text.lines().next().expect("a line").split_whitespace().collect();
    assert_eq!(first, ["memory", "in", "process", "2", "laws", "0", "tests"]);
    std::fs::remove_dir_all(&folder).expect("removed");
}
