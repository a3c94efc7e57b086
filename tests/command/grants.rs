//! Grants: each taken away, changed, or written in another shape.

use serde_json::{Value, json};

use crate::edit::{
    AGENT, DEAD, INVOKER, PUBLISHER, SERVICE, SOURCE, SUBSCRIBER, add, environment, expect, instead, late,
    set,
};
use crate::followed::untold;

#[test]
fn a_grant_that_is_another_is_none() {
    let publisher = ["dead-letter-publisher"];
    expect("role", set(PUBLISHER, "/role", json!("roles/pubsub.viewer")), &publisher);
    expect("role", set(SUBSCRIBER, "/role", json!("roles/pubsub.publisher")), &["source-subscriber"]);
    expect("role", set(INVOKER, "/role", json!("roles/run.viewer")), &["invoker"]);
    expect("topic", set(PUBLISHER, "/topic", json!("projects/shop-1/topics/orders")), &publisher);
    expect("subscription", set(SUBSCRIBER, "/subscription", json!("orders-dead")), &["source-subscriber"]);
    expect("service", set(INVOKER, "/name", json!("other")), &["invoker"]);
    expect("member", set(INVOKER, "/member", json!("user:a@example.com")), &["invoker"]);
    for member in [
        "serviceAccount:service-shop-1@gcp-sa-pubsub.iam.gserviceaccount.com",
        "serviceAccount:service-@gcp-sa-pubsub.iam.gserviceaccount.com",
        "service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com",
        "serviceAccount:123456789012@cloudservices.gserviceaccount.com",
        "allUsers",
    ] {
        expect(member, set(PUBLISHER, "/member", json!(member)), &publisher);
        expect(member, set(SUBSCRIBER, "/member", json!(member)), &["source-subscriber"]);
    }
}

#[test]
fn the_account_is_that_of_the_subscriptions_project() {
    for (number, expected) in [("123456789012", &[][..]), ("210987654321", &["source-subscriber"])] {
        let member = format!("serviceAccount:service-{number}@gcp-sa-pubsub.iam.gserviceaccount.com");
        expect(
            number,
            |plan| {
                set(SOURCE, "/project", json!("shop-1"))(plan);
                set(SUBSCRIBER, "/project", json!("shop-1"))(plan);
                set(SUBSCRIBER, "/subscription", json!("orders-push"))(plan);
                set(SUBSCRIBER, "/member", json!(member))(plan);
            },
            expected,
        );
    }
}

#[test]
fn a_grant_in_another_shape_is_one() {
    let topic = "projects/shop-1/topics/orders-dead";
    let put = |values| instead(PUBLISHER, "google_pubsub_topic_iam_binding", values);
    let binding =
        |members: Value| json!({"topic": topic, "role": "roles/pubsub.publisher", "members": members});
    let in_shop = |kind, values: Value| {
        move |plan: &mut Value| {
            set("google_pubsub_topic.dead", "/project", json!("shop-1"))(plan);
            set(SOURCE, "/dead_letter_policy/0/dead_letter_topic", json!(topic))(plan);
            set(DEAD, "/topic", json!(topic))(plan);
            instead(PUBLISHER, kind, values.clone())(plan);
        }
    };
    expect(
        "binding",
        in_shop("google_pubsub_topic_iam_binding", binding(json!(["group:g@example.com", AGENT]))),
        &[],
    );
    let other = in_shop("google_pubsub_topic_iam_binding", binding(json!(["group:g@example.com"])));
    expect("binding of another", other, &["dead-letter-publisher"]);
    expect(
        "empty binding",
        put(json!({"topic": "orders-dead", "role": "roles/pubsub.publisher", "members": []})),
        &["dead-letter-publisher"],
    );

    let policy = |member: &str| {
        let policy =
            json!({"bindings": [{"role": "roles/pubsub.publisher", "members": [member]}]}).to_string();
        json!({"topic": topic, "policy_data": policy})
    };
    expect("policy", in_shop("google_pubsub_topic_iam_policy", policy(AGENT)), &[]);
    let other = in_shop("google_pubsub_topic_iam_policy", policy("user:a@example.com"));
    expect("policy of another", other, &["dead-letter-publisher"]);

    let project = |name: &str| json!({"project": name, "role": "roles/pubsub.editor", "member": AGENT});
    expect("project", in_shop("google_project_iam_member", project("shop-1")), &[]);
    expect(
        "another project",
        in_shop("google_project_iam_member", project("shop-2")),
        &["dead-letter-publisher"],
    );
}

#[test]
fn a_service_that_everybody_may_call_must_verify() {
    let everybody = |member: &'static str| set(INVOKER, "/member", json!(member));
    expect("all", everybody("allUsers"), &["open-to-all"]);
    expect("all with an account", everybody("allAuthenticatedUsers"), &["open-to-all"]);
    expect("no check", set(SERVICE, "/invoker_iam_disabled", json!(true)), &["open-to-all"]);
    expect(
        "verified",
        |plan| {
            everybody("allUsers")(plan);
            environment("PUSH_AUTH", "verify")(plan);
        },
        &[],
    );
}

/// When a condition holds, no plan says.
#[test]
fn a_grant_with_a_condition_is_not_sure() {
    let condition = json!([{"title": "never", "description": null, "expression": "false"}]);
    for (address, id) in
        [(PUBLISHER, "dead-letter-publisher"), (SUBSCRIBER, "source-subscriber"), (INVOKER, "invoker")]
    {
        untold(&set(address, "/condition", condition.clone()), id);
    }
    let policy = |more: Value| {
        let mut binding = json!({"role": "roles/pubsub.subscriber", "members": [AGENT]});
        binding.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let policy = json!({"bindings": [binding]}).to_string();
        let values = json!({"subscription": "orders-push", "policy_data": policy});
        instead(SUBSCRIBER, "google_pubsub_subscription_iam_policy", values)
    };
    expect("no condition", policy(json!({})), &[]);
    untold(&policy(json!({"condition": condition[0]})), "source-subscriber");
}

/// It replaces all that the others grant, and may let everybody in.
#[test]
fn a_policy_that_is_not_known_hides_all_members() {
    let kind = "google_cloud_run_v2_service_iam_policy";
    let policy = |plan: &mut Value| {
        add(plan, "managed", kind, "late", json!({"name": "orders", "policy_data": ""}));
        let change = json!({"address": format!("{kind}.late"), "change": {"after_unknown": {}}});
        plan["resource_changes"].as_array_mut().unwrap().push(change);
        let written = plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap();
        written.last_mut().unwrap()["expressions"] = json!({});
        late("google_cloud_run_v2_service_iam_policy.late", "policy_data", &["data.google_iam_policy.late"])(
            plan,
        );
    };
    untold(&policy, "open-to-all");
    untold(&policy, "invoker");
}

#[test]
fn what_may_be_open_is_said() {
    untold(&late(SERVICE, "invoker_iam_disabled", &["data.google_project.this.labels"]), "open-to-all");
    let list = |plan: &mut Value| {
        let kind = "google_cloud_run_v2_service_iam_binding";
        add(plan, "managed", kind, "all", json!({"name": "orders", "role": "roles/run.invoker"}));
        let change =
            json!({"address": format!("{kind}.all"), "change": {"after_unknown": {"members": true}}});
        plan["resource_changes"].as_array_mut().unwrap().push(change);
        let written = plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap();
        written.last_mut().unwrap()["expressions"] = json!({"members": {"references": ["local.members"]}});
    };
    untold(&list, "open-to-all");
}
