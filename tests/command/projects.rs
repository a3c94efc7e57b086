//! What is in another project is another, whatever it is called; and what of a project nobody knows is said.

use serde_json::{Value, json};

use crate::edit::{DEAD, GOOD, INVOKER, PUBLISHER, SOURCE, SUBSCRIBER, add, changed, expect, late, set};
use crate::program::{check, ids};

const TOPIC: &str = "projects/shop-2/topics/orders-dead";
const DEAD_LETTER_TOPIC: &str = "/dead_letter_policy/0/dead_letter_topic";
const PUSH: &str = "serviceAccount:orders-push@shop-2.iam.gserviceaccount.com";

/// Of a plan whose provider takes its project from where no plan sees it.
fn of_nobody(change: impl Fn(&mut Value), expected: &[&str]) {
    for (provider, text) in &GOOD[..2] {
        let plan = changed(text, &|plan| {
            let google = &mut plan["configuration"]["provider_config"]["google"]["expressions"];
            google.as_object_mut().unwrap().remove("project").unwrap();
            let resources = plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap();
            let project =
                resources.iter_mut().find(|one| one["address"] == "data.google_project.this").unwrap();
            project["expressions"].as_object_mut().unwrap().remove("project_id").unwrap();
            change(plan);
        });
        let (code, report) = check(&plan, &[]);
        let mut unknown = ids(&report["checked"][0], "unknown");
        assert!(unknown.remove("push-account-differs"), "{provider}: {report:#}");
        assert_eq!(code, 0, "{provider}: {report:#}");
        assert_eq!(
            unknown.iter().map(String::as_str).collect::<Vec<_>>(),
            expected,
            "{provider}: {report:#}"
        );
    }
}

#[test]
fn another_project_is_not_the_providers() {
    expect("account", set(INVOKER, "/member", json!(PUSH)), &["invoker"]);
    expect("grant", set(PUBLISHER, "/topic", json!(TOPIC)), &["dead-letter-publisher"]);
    let by_number = |number| set(PUBLISHER, "/topic", json!(format!("projects/{number}/topics/orders-dead")));
    expect("by its number", by_number("123456789012"), &[]);
    expect("by another number", by_number("210987654321"), &["dead-letter-publisher"]);
    expect("subscription", set(DEAD, "/topic", json!(TOPIC)), &["dead-letter-subscription"]);
    for (provider, text) in GOOD {
        let plan = changed(text, &set(SOURCE, DEAD_LETTER_TOPIC, json!(TOPIC)));
        let (code, report) = check(&plan, &[]);
        let unknown = ids(&report["checked"][0], "unknown");
        assert_eq!(code, 0, "{provider}");
        for id in ["dead-letter-publisher", "dead-letter-subscription"] {
            assert!(unknown.contains(id), "{provider}: {report:#}");
        }
    }
}

#[test]
fn a_project_that_nobody_knows_may_be_another() {
    of_nobody(|_| {}, &[]);
    of_nobody(set(INVOKER, "/member", json!(PUSH)), &["invoker"]);
    of_nobody(set(PUBLISHER, "/topic", json!(TOPIC)), &["dead-letter-publisher"]);
    of_nobody(set(PUBLISHER, "/topic", json!("orders-dead")), &[]);
    let elsewhere = |plan: &mut Value| {
        set(PUBLISHER, "/topic", json!("orders-dead"))(plan);
        set(PUBLISHER, "/project", json!("shop-2"))(plan);
    };
    of_nobody(elsewhere, &["dead-letter-publisher"]);
    of_nobody(set(DEAD, "/topic", json!(TOPIC)), &["dead-letter-subscription"]);
    let topic = set(SOURCE, DEAD_LETTER_TOPIC, json!(TOPIC));
    of_nobody(topic, &["dead-letter-publisher", "dead-letter-subscription"]);
}

#[test]
fn a_number_is_compared_with_that_of_the_project_or_not_known() {
    let member = json!("serviceAccount:service-999@gcp-sa-pubsub.iam.gserviceaccount.com");
    expect("number", set(SUBSCRIBER, "/member", member.clone()), &["source-subscriber"]);
    let written = |plan: &mut Value| {
        late(SUBSCRIBER, "member", &[])(plan);
        set(SUBSCRIBER, "/member", member.clone())(plan);
    };
    of_nobody(written, &["source-subscriber"]);
}

#[test]
fn the_account_of_another_product_or_project_is_not_that_of_pubsub_here() {
    let number = |mode: &str, project: &str, expected| {
        let references: &[_] =
            if mode == "data" { &["data.google_project.new.number"] } else { &["google_project.new.number"] };
        member_of(mode, "google_project", &json!({"project_id": project}), references, expected);
    };
    number("data", "shop-2", "refused");
    number("managed", "shop-3", "refused");
    number("managed", "shop-1", "");
    let identity = |values: Value, expected| {
        let kind = "google_project_service_identity";
        member_of("managed", kind, &values, &["google_project_service_identity.new.email"], expected);
    };
    let pubsub = "pubsub.googleapis.com";
    identity(json!({"service": "eventarc.googleapis.com"}), "refused");
    identity(json!({"service": pubsub, "project": "shop-2"}), "refused");
    identity(json!({"service": pubsub, "project": "shop-1"}), "");
    identity(json!({"service": pubsub}), "");
    identity(json!({}), "unknown");
}

/// A member that comes from a resource `new` with these values.
fn member_of(mode: &str, kind: &str, values: &Value, references: &'static [&'static str], expected: &str) {
    let plan = changed(GOOD[0].1, &|plan| {
        add(plan, mode, kind, "new", values.clone());
        late(SUBSCRIBER, "member", references)(plan);
    });
    let (_, report) = check(&plan, &[]);
    for severity in ["refused", "unknown"] {
        let found = ids(&report["checked"][0], severity).contains("source-subscriber");
        assert_eq!(found, severity == expected, "{mode} {kind} {values}: {report:#}");
    }
}
