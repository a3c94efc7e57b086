//! What is known only after the apply: followed where the plan says what it refers to, and told as unknown where not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::edit::{
    DEAD, GOOD, INVOKER, PUBLISHER, SERVICE, SOURCE, SUBSCRIBER, changed, environment, expect, late, refused,
    remove, resource, resources, set,
};
use crate::program::{check, ids};

/// Neither right nor wrong: code 0, and a line that says so.
pub(crate) fn untold(change: &dyn Fn(&mut Value), id: &str) {
    for (provider, text) in GOOD {
        let (code, report) = check(&changed(text, change), &[]);
        assert_eq!(code, 0, "{id}, {provider}: {report:#}");
        assert!(ids(&report["checked"][0], "unknown").contains(id), "{id}, {provider}: {report:#}");
    }
}

#[test]
fn what_a_plan_does_not_show_is_no_pass_and_no_fault() {
    let own = json!("projects/shop-1/roles/publisher");
    untold(&set(PUBLISHER, "/role", own), "dead-letter-publisher");
    untold(&set(INVOKER, "/member", json!("group:pushers@example.com")), "invoker");
    let outside =
        set(SOURCE, "/dead_letter_policy/0/dead_letter_topic", json!("projects/shop-2/topics/dead"));
    untold(
        &|plan| {
            outside(plan);
            set("google_pubsub_topic.dead", "/project", json!("shop-1"))(plan);
        },
        "dead-letter-publisher",
    );
    untold(&outside, "dead-letter-subscription");
    let secret = |plan: &mut Value| {
        environment("LEASE_SECONDS", "")(plan);
        let list = &mut resource(plan, SERVICE)["values"]["template"][0]["containers"][0]["env"];
        let list = list.as_array_mut().unwrap().iter_mut();
        let lease = list.into_iter().find(|variable| variable["name"] == "LEASE_SECONDS").unwrap();
        lease["value_source"] = json!([{"secret_key_ref": []}]);
    };
    untold(&secret, "environment");
}

#[test]
fn references_are_followed_through_modules_and_what_cannot_be_is_said() {
    let plan: Value = serde_json::from_str(include_str!("plans/nested/plan.json")).unwrap();
    let (code, report) = check(&plan, &["--lease", "900"]);
    assert_eq!(code, 1);
    let of = |name: &str| {
        let address = format!("module.{name}.google_pubsub_subscription.this[0]");
        let checked = report["checked"].as_array().unwrap().iter();
        checked
            .clone()
            .find(|checked| checked["subscription"] == address)
            .unwrap_or_else(|| panic!("{address}"))
    };
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
    let eu = of("orders[\"eu\"]");
    assert_eq!((ids(eu, "refused"), ids(eu, "unknown")), (set(&[]), set(&["service"])));
    let us = of("orders[\"us\"]");
    assert_eq!(
        (ids(us, "refused"), ids(us, "unknown")),
        (set(&["dead-letter-subscription"]), set(&["service"]))
    );
    let local = of("local");
    assert_eq!(ids(local, "refused"), set(&[]));
    assert_eq!(ids(local, "unknown"), set(&["dead-letter-publisher", "dead-letter-subscription", "service"]));

    // A grant for one of them is none for the other.
    let mut without = plan.clone();
    resources(&mut without)
        .retain(|resource| resource["address"] != "google_pubsub_subscription_iam_member.orders[\"eu\"]");
    let (_, report) = check(&without, &[]);
    let missing: Vec<_> = report["checked"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|checked| ids(checked, "refused").contains("source-subscriber"))
        .map(|checked| checked["subscription"].as_str().unwrap())
        .collect();
    assert_eq!(missing, ["module.orders[\"eu\"].google_pubsub_subscription.this[0]"]);
}

/// What a local refers to is not told; but no subscription keeps its own dead letters.
#[test]
fn the_source_is_not_taken_for_the_subscription_of_its_dead_letters() {
    let unclear = |plan: &mut Value| {
        for written in plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap() {
            if written["address"] == SOURCE {
                written["expressions"]["topic"] = json!({"references": ["local.topic"]});
            }
        }
    };
    expect("unclear", unclear, &[]);
    expect(
        "unclear, and no subscription",
        |plan| {
            unclear(plan);
            remove(DEAD)(plan);
        },
        &["dead-letter-subscription"],
    );
}

/// Terraform writes no such plan; somebody else may.
#[test]
fn references_in_a_circle_end() {
    let mut plan: Value = serde_json::from_str(include_str!("plans/nested/plan.json")).unwrap();
    let call = &mut plan["configuration"]["root_module"]["module_calls"]["local"];
    let circle = json!({"references": ["module.local.subscription", "module.local.other"]});
    call["expressions"]["dead"] = circle;
    for output in ["subscription", "other"] {
        call["module"]["outputs"][output] = json!({"expression": {"references": ["var.dead", "var.other"]}});
    }
    call["expressions"]["other"] = call["expressions"]["dead"].clone();
    let (_, report) = check(&plan, &[]);
    assert!(ids(&report["checked"][0], "unknown").contains("dead-letter-publisher"), "{report:#}");
}

/// The number of a project may be known late, or be no number at all.
#[test]
fn a_member_that_is_not_known_yet_is_told_by_what_it_comes_from() {
    const PROJECT: &str = "data.google_project.this";
    type References = &'static [&'static str];
    const CASES: [(References, bool, bool); 5] = [
        (&["data.google_project.this.number", PROJECT], false, false),
        (&["data.google_project.this.project_id", PROJECT], true, false),
        (&["data.google_project.this.id", PROJECT], true, false),
        (&["data.google_project.this.labels", PROJECT], false, true),
        (&["data.google_project.this.number", "google_service_account.push.email"], false, true),
    ];
    for (references, refused, unknown) in CASES {
        let mut plan: Value = serde_json::from_str(GOOD[0].1).unwrap();
        late(SUBSCRIBER, "member", references)(&mut plan);
        let (_, report) = check(&plan, &[]);
        let found = |severity| ids(&report["checked"][0], severity).contains("source-subscriber");
        assert_eq!((found("refused"), found("unknown")), (refused, unknown), "{references:?}");
    }
}

/// Of an address the plan shows where it comes from, but not what is put around it.
#[test]
fn one_origin_is_not_yet_one_audience() {
    let mut plan: Value = serde_json::from_str(include_str!("plans/naive/plan.json")).unwrap();
    let uri = json!({"references": ["google_cloud_run_v2_service.orders.uri", "google_cloud_run_v2_service.orders"]});
    let token = &mut resource(&mut plan, SOURCE)["values"]["push_config"][0]["oidc_token"][0];
    token.as_object_mut().unwrap().remove("audience");
    let change = plan["resource_changes"].as_array_mut().unwrap().iter_mut();
    let change = change.into_iter().find(|change| change["address"] == SOURCE).unwrap();
    change["change"]["after_unknown"]["push_config"][0]["oidc_token"][0]["audience"] = json!(true);
    for written in plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap() {
        let address = written["address"].clone();
        let expressions = &mut written["expressions"];
        if address == SOURCE {
            expressions["push_config"][0]["oidc_token"][0]["audience"] = uri.clone();
        } else if address == SERVICE {
            let variables = expressions["template"][0]["containers"][0]["env"].as_array_mut().unwrap();
            let account = json!("PUSH_SERVICE_ACCOUNT");
            let variable =
                variables.iter_mut().find(|variable| variable["name"]["constant_value"] == account);
            *variable.unwrap() = json!({"name": {"constant_value": "PUSH_AUDIENCE"}, "value": uri});
        }
    }
    let variables = &mut resource(&mut plan, SERVICE)["values"]["template"][0]["containers"][0]["env"];
    let variables = variables.as_array_mut().unwrap();
    variables.iter_mut().find(|variable| variable["name"] == "PUSH_SERVICE_ACCOUNT").unwrap()["name"] =
        json!("PUSH_AUDIENCE");
    assert_eq!(
        ids(&check(&plan, &[]).1["checked"][0], "unknown"),
        BTreeSet::from(["audience-differs".to_owned(), "push-auth".to_owned()])
    );
    assert!(!refused(&plan).contains("audience"));
}
