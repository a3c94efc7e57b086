//! The times of a plan, and what its service takes them to be.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::edit::{GOOD, SERVICE, SOURCE, changed, environment, expect, resource, set};
use crate::followed::untold;
use crate::program::{check, ids, run};

#[test]
fn times_of_the_plan_are_judged_and_must_be_those_of_the_service() {
    let attempts = |n: u64| set(SOURCE, "/dead_letter_policy/0/max_delivery_attempts", json!(n));
    expect("9 attempts", attempts(9), &["attempts", "environment"]);
    expect("0 attempts are 5", attempts(0), &["attempts", "environment"]);
    expect("13 attempts", attempts(13), &["environment"]);
    expect(
        "13 attempts, and the service knows",
        |plan| {
            attempts(13)(plan);
            environment("MAX_DELIVERY_ATTEMPTS", "13")(plan);
        },
        &[],
    );
    expect("timeout", set(SERVICE, "/template/0/timeout", json!("300s")), &["environment"]);
    expect("timeout", set(SERVICE, "/template/0/timeout", json!("601s")), &["ack-deadline", "environment"]);
    expect("no timeout", set(SERVICE, "/template/0/timeout", Value::Null), &["environment"]);
    expect(
        "ack deadline",
        set(SOURCE, "/ack_deadline_seconds", json!(300)),
        &["ack-deadline", "environment"],
    );
    expect(
        "no ack deadline",
        set(SOURCE, "/ack_deadline_seconds", Value::Null),
        &["ack-deadline", "environment"],
    );
    expect("min", set(SOURCE, "/retry_policy/0/minimum_backoff", json!("20s")), &["environment"]);
    expect("max", set(SOURCE, "/retry_policy/0/maximum_backoff", json!("60s")), &["attempts", "environment"]);
    expect(
        "retention",
        set(SOURCE, "/message_retention_duration", json!("3600s")),
        &["environment", "retention"],
    );
    expect("no retention", set(SOURCE, "/message_retention_duration", Value::Null), &[]);
    expect("lease", environment("LEASE_SECONDS", "500"), &["lease"]);
    expect("long lease", environment("LEASE_SECONDS", "3600"), &["attempts"]);
    expect("no number", environment("LEASE_SECONDS", "15m"), &["environment"]);
}

#[test]
fn the_environment_is_that_of_the_container_with_the_port() {
    let beside = |ports: Value, sidecars: Value| {
        move |plan: &mut Value| {
            environment("LEASE_SECONDS", "7200")(plan);
            environment("PUSH_SERVICE_ACCOUNT", "orders-push@shop-1.iam.gserviceaccount.com")(plan);
            let containers = &mut resource(plan, SERVICE)["values"]["template"][0]["containers"];
            containers[0]["ports"] = ports.clone();
            let lease = json!({"name": "LEASE_SECONDS", "value": "900", "value_source": []});
            let sidecar = json!({"env": [lease], "ports": sidecars});
            containers.as_array_mut().unwrap().insert(0, sidecar);
        }
    };
    let port = || json!([{"container_port": 8080, "name": null}]);
    expect("a sidecar first", beside(port(), json!([])), &["attempts"]);
    untold(&beside(json!([]), json!([])), "environment");
    untold(&beside(port(), port()), "environment");
}

#[test]
fn a_switch_that_hides_the_rules_is_warned_of() {
    for (provider, text) in GOOD {
        let plan = changed(text, &environment("PUSHONCE_SIZING", "warn"));
        let (code, report) = check(&plan, &[]);
        assert_eq!(code, 0, "{provider}");
        assert_eq!(ids(&report["checked"][0], "warned"), BTreeSet::from(["environment".to_owned()]));
        assert_eq!(check(&plan, &["--strict"]).0, 1, "{provider}");
    }
}

#[test]
fn what_a_plan_cannot_say_is_given_as_flags() {
    let plan = include_str!("plans/nested/plan.json");
    let ran = run(
        &["check", "--plan", "-", "--lease", "1h", "--ttl", "1d", "--real-failures", "3"],
        plan.as_bytes(),
    );
    assert!(ran.out.contains("\nlease, ttl                     3600 s, 86400 s\n"), "{}", ran.out);
    assert!(
        ran.out.contains("\nrefused  attempts: max_delivery_attempts is 12: expected at least 21"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("\nunknown  service: "), "{}", ran.out);
}
