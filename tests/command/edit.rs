//! Real plans, and one change to them at a time.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::program::{check, ids};

/// One root, planned by terraform where nothing stands, with two versions of the provider, and where all of it stands.
pub(crate) const GOOD: [(&str, &str); 3] = [
    ("8.7", include_str!("plans/good/plan.json")),
    ("6.50", include_str!("plans/good/plan-6.50.json")),
    ("applied", include_str!("plans/good/plan-applied.json")),
];
pub(crate) const SOURCE: &str = "google_pubsub_subscription.orders";
pub(crate) const DEAD: &str = "google_pubsub_subscription.dead";
pub(crate) const SERVICE: &str = "google_cloud_run_v2_service.orders";
pub(crate) const PUBLISHER: &str = "google_pubsub_topic_iam_member.dead";
pub(crate) const SUBSCRIBER: &str = "google_pubsub_subscription_iam_member.orders";
pub(crate) const INVOKER: &str = "google_cloud_run_v2_service_iam_member.push";
pub(crate) const AGENT: &str = "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com";

pub(crate) fn resources(plan: &mut Value) -> &mut Vec<Value> {
    plan["planned_values"]["root_module"]["resources"].as_array_mut().unwrap()
}

pub(crate) fn resource<'a>(plan: &'a mut Value, address: &str) -> &'a mut Value {
    resources(plan).iter_mut().find(|resource| resource["address"] == address).expect(address)
}

pub(crate) fn remove(address: &'static str) -> impl Fn(&mut Value) {
    move |plan| {
        let before = resources(plan).len();
        resources(plan).retain(|resource| resource["address"] != address);
        assert_eq!(resources(plan).len(), before - 1, "{address} is not in the plan");
    }
}

/// Sets what a JSON pointer into a resource's values names.
pub(crate) fn set(address: &'static str, pointer: &'static str, value: Value) -> impl Fn(&mut Value) {
    move |plan| {
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        let values = resource(plan, address)["values"].pointer_mut(parent).expect(pointer);
        match values {
            Value::Array(list) => list[last.parse::<usize>().unwrap()] = value.clone(),
            values => values[last] = value.clone(),
        }
    }
}

pub(crate) fn environment(name: &'static str, value: &'static str) -> impl Fn(&mut Value) {
    move |plan| {
        let list = &mut resource(plan, SERVICE)["values"]["template"][0]["containers"][0]["env"];
        let list = list.as_array_mut().unwrap();
        let new = json!({"name": name, "value": value, "value_source": []});
        // In its place: what is not known yet is told by place.
        match list.iter_mut().find(|variable| variable["name"] == name) {
            Some(variable) => *variable = new,
            None => list.push(new),
        }
    }
}

/// Makes an attribute known only after the apply, and what it then comes from.
pub(crate) fn late(
    address: &'static str,
    attribute: &'static str,
    references: &'static [&'static str],
) -> impl Fn(&mut Value) {
    move |plan| {
        resource(plan, address)["values"].as_object_mut().unwrap().remove(attribute);
        of(&mut plan["resource_changes"], address)["change"]["after_unknown"][attribute] = json!(true);
        let written = of(&mut plan["configuration"]["root_module"]["resources"], address);
        written["expressions"][attribute] = json!({"references": references});
    }
}

fn of<'a>(list: &'a mut Value, address: &str) -> &'a mut Value {
    list.as_array_mut().unwrap().iter_mut().find(|one| one["address"] == address).expect(address)
}

/// Puts another resource into the plan, with the provider that all have.
pub(crate) fn add(plan: &mut Value, mode: &str, kind: &str, name: &str, values: Value) {
    let address = format!("{}{kind}.{name}", if mode == "data" { "data." } else { "" });
    let mut new = json!({"address": address, "mode": mode, "type": kind, "name": name, "provider_config_key": "google"});
    let written = &mut plan["configuration"]["root_module"]["resources"];
    written.as_array_mut().unwrap().push(new.clone());
    new["values"] = values;
    let into = if mode == "data" { &mut plan["prior_state"]["values"] } else { &mut plan["planned_values"] };
    into["root_module"]["resources"].as_array_mut().unwrap().push(new);
}

/// Makes another resource of a grant: of another type, and with other values.
pub(crate) fn instead(address: &'static str, kind: &'static str, values: Value) -> impl Fn(&mut Value) {
    move |plan| {
        let grant = resource(plan, address);
        grant["type"] = json!(kind);
        grant["values"] = values.clone();
    }
}

pub(crate) fn changed(text: &str, change: &dyn Fn(&mut Value)) -> Value {
    let mut plan = serde_json::from_str(text).unwrap();
    change(&mut plan);
    plan
}

pub(crate) fn refused(plan: &Value) -> BTreeSet<String> {
    let (code, report) = check(plan, &[]);
    let refused = ids(&report["checked"][0], "refused");
    assert_eq!(code, i32::from(!refused.is_empty()), "{report:#}");
    refused
}

pub(crate) fn expect(name: &str, change: impl Fn(&mut Value), expected: &[&str]) {
    for (provider, text) in GOOD {
        let expected: BTreeSet<_> = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(refused(&changed(text, &change)), expected, "{name}, {provider}");
    }
}
