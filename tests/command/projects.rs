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
    let identity = "google_project_service_identity";
    let pubsub = "pubsub.googleapis.com";
    let cases: [(&str, &str, &str, Value, &'static [&'static str], &str); 7] = [
        (
            "data",
            "google_project",
            "other",
            json!({"project_id": "shop-2"}),
            &["data.google_project.other.number"],
            "refused",
        ),
        (
            "managed",
            "google_project",
            "new",
            json!({"project_id": "shop-3"}),
            &["google_project.new.number"],
            "refused",
        ),
        (
            "managed",
            "google_project",
            "new",
            json!({"project_id": "shop-1"}),
            &["google_project.new.number"],
            "",
        ),
        (
            "managed",
            identity,
            "of",
            json!({"service": "eventarc.googleapis.com"}),
            &["google_project_service_identity.of.email"],
            "refused",
        ),
        (
            "managed",
            identity,
            "of",
            json!({"service": pubsub, "project": "shop-2"}),
            &["google_project_service_identity.of.email"],
            "refused",
        ),
        (
            "managed",
            identity,
            "of",
            json!({"service": pubsub}),
            &["google_project_service_identity.of.email"],
            "",
        ),
        (
            "managed",
            identity,
            "of",
            json!({"service": pubsub}),
            &["google_project_service_identity.none.email"],
            "unknown",
        ),
    ];
    for (mode, kind, name, values, references, expected) in cases {
        let plan = changed(GOOD[0].1, &|plan| {
            add(plan, mode, kind, name, values.clone());
            late(SUBSCRIBER, "member", references)(plan);
        });
        let (_, report) = check(&plan, &[]);
        for severity in ["refused", "unknown"] {
            let found = ids(&report["checked"][0], severity).contains("source-subscriber");
            assert_eq!(found, severity == expected, "{references:?} {values}: {report:#}");
        }
    }
}
