//! Real plans, as they are and with one thing taken away or changed at a time.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::program::{check, ids, run};

/// One root, planned by terraform where nothing stands, with two versions of the provider, and where all of it stands.
const GOOD: [(&str, &str); 3] = [
    ("8.7", include_str!("plans/good/plan.json")),
    ("6.50", include_str!("plans/good/plan-6.50.json")),
    ("applied", include_str!("plans/good/plan-applied.json")),
];
const SOURCE: &str = "google_pubsub_subscription.orders";
const DEAD: &str = "google_pubsub_subscription.dead";
const SERVICE: &str = "google_cloud_run_v2_service.orders";
const PUBLISHER: &str = "google_pubsub_topic_iam_member.dead";
const SUBSCRIBER: &str = "google_pubsub_subscription_iam_member.orders";
const INVOKER: &str = "google_cloud_run_v2_service_iam_member.push";
const AGENT: &str = "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com";

fn resources(plan: &mut Value) -> &mut Vec<Value> {
    plan["planned_values"]["root_module"]["resources"].as_array_mut().unwrap()
}

fn resource<'a>(plan: &'a mut Value, address: &str) -> &'a mut Value {
    resources(plan).iter_mut().find(|resource| resource["address"] == address).expect(address)
}

fn remove(address: &'static str) -> impl Fn(&mut Value) {
    move |plan| {
        let before = resources(plan).len();
        resources(plan).retain(|resource| resource["address"] != address);
        assert_eq!(resources(plan).len(), before - 1, "{address} is not in the plan");
    }
}

/// Sets what a JSON pointer into a resource's values names.
fn set(address: &'static str, pointer: &'static str, value: Value) -> impl Fn(&mut Value) {
    move |plan| {
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        let values = resource(plan, address)["values"].pointer_mut(parent).expect(pointer);
        match values {
            Value::Array(list) => list[last.parse::<usize>().unwrap()] = value.clone(),
            values => values[last] = value.clone(),
        }
    }
}

fn environment(name: &'static str, value: &'static str) -> impl Fn(&mut Value) {
    move |plan| {
        let list = &mut resource(plan, SERVICE)["values"]["template"][0]["containers"][0]["env"];
        let list = list.as_array_mut().unwrap();
        list.retain(|variable| variable["name"] != name);
        list.push(json!({"name": name, "value": value, "value_source": []}));
    }
}

/// Makes another resource of a grant: of another type, and with other values.
fn instead(address: &'static str, kind: &'static str, values: Value) -> impl Fn(&mut Value) {
    move |plan| {
        let grant = resource(plan, address);
        grant["type"] = json!(kind);
        grant["values"] = values.clone();
    }
}

fn changed(text: &str, change: &dyn Fn(&mut Value)) -> Value {
    let mut plan = serde_json::from_str(text).unwrap();
    change(&mut plan);
    plan
}

fn refused(plan: &Value) -> BTreeSet<String> {
    let (code, report) = check(plan, &[]);
    let refused = ids(&report["checked"][0], "refused");
    assert_eq!(code, i32::from(!refused.is_empty()), "{report:#}");
    refused
}

fn expect(name: &str, change: impl Fn(&mut Value), expected: &[&str]) {
    for (provider, text) in GOOD {
        let expected: BTreeSet<_> = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(refused(&changed(text, &change)), expected, "{name}, {provider}");
    }
}

#[test]
fn a_good_plan_fits() {
    for (provider, text) in GOOD {
        let (code, report) = check(&serde_json::from_str(text).unwrap(), &["--strict"]);
        let checked = &report["checked"][0];
        assert_eq!((code, &report["refused"]), (0, &json!(false)), "{provider}");
        assert_eq!(report["checked"].as_array().unwrap().len(), 1);
        assert_eq!(checked["subscription"], SOURCE);
        assert_eq!(checked["numbers"]["needed"], 10);
        assert_eq!(checked["sizing"]["max_delivery_attempts"], 12);
        // Before the account exists its e-mail is not known, and a dynamic block does not say what it refers to.
        let unknown = if provider == "applied" { vec![] } else { vec!["push-account-differs".to_owned()] };
        assert_eq!(ids(checked, "unknown").into_iter().collect::<Vec<_>>(), unknown, "{provider}");
    }
}

#[test]
fn each_thing_that_is_taken_away_is_missed() {
    let gone = |address, pointer, expected: &[&str]| {
        expect(pointer, set(address, pointer, json!([])), expected);
    };
    expect("no publisher", remove(PUBLISHER), &["dead-letter-publisher"]);
    expect("no subscriber", remove(SUBSCRIBER), &["source-subscriber"]);
    expect("no invoker", remove(INVOKER), &["invoker"]);
    expect("no subscription", remove(DEAD), &["dead-letter-subscription"]);
    gone(SOURCE, "/dead_letter_policy", &["dead-letter-policy"]);
    gone(SOURCE, "/retry_policy", &["attempts", "backoff", "environment", "retry-policy"]);
    gone(SOURCE, "/expiration_policy", &["expiration"]);
    gone(DEAD, "/expiration_policy", &["expiration"]);
    gone(SOURCE, "/push_config/0/oidc_token", &["push-token"]);
    expect("no audience", set(SOURCE, "/push_config/0/oidc_token/0/audience", Value::Null), &["audience"]);
}

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

/// Neither right nor wrong: code 0, and a line that says so.
fn untold(change: &dyn Fn(&mut Value), id: &str) {
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
        list.as_array_mut().unwrap().last_mut().unwrap()["value_source"] = json!([{"secret_key_ref": []}]);
    };
    untold(&secret, "environment");
}

#[test]
fn expiration_is_never_or_refused() {
    for address in [SOURCE, DEAD] {
        for ttl in [json!("2678400s"), Value::Null] {
            expect(address, set(address, "/expiration_policy/0/ttl", ttl), &["expiration"]);
        }
    }
    let elsewhere = set(DEAD, "/topic", json!("projects/shop-1/topics/orders"));
    expect("the wrong topic", elsewhere, &["dead-letter-subscription"]);
}

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
fn the_token_must_be_what_the_service_expects() {
    let audience = |value: &str| set(SOURCE, "/push_config/0/oidc_token/0/audience", json!(value));
    expect("audience", audience("https://orders.example/orders"), &["audience-differs"]);
    expect(
        "one of several",
        |plan| {
            environment("PUSH_AUDIENCE", "https://a.example, https://orders.example")(plan);
        },
        &[],
    );
    expect(
        "none expected",
        |plan| {
            environment("PUSH_AUDIENCE", " ")(plan);
            audience("https://other.example")(plan);
        },
        &[],
    );
    let account = "other@shop-1.iam.gserviceaccount.com";
    expect(
        "account",
        |plan| {
            environment("PUSH_SERVICE_ACCOUNT", "orders-push@shop-1.iam.gserviceaccount.com")(plan);
            set(SOURCE, "/push_config/0/oidc_token/0/service_account_email", json!(account))(plan);
        },
        &["invoker", "push-account-differs"],
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

#[test]
fn what_looks_complete_is_taken_apart() {
    let plan: Value = serde_json::from_str(include_str!("plans/naive/plan.json")).unwrap();
    let expected = [
        "ack-deadline",
        "attempts",
        "audience",
        "backoff",
        "dead-letter-publisher",
        "dead-letter-subscription",
        "environment",
        "expiration",
        "invoker",
        "retry-policy",
        "source-subscriber",
    ];
    assert_eq!(refused(&plan).into_iter().collect::<Vec<_>>(), expected);
    // The account's e-mail is not known yet, but it is the same on both sides.
    assert_eq!(ids(&check(&plan, &[]).1["checked"][0], "unknown"), BTreeSet::new());
}
