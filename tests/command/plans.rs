//! Whole plans: what fits, and what is missed when one thing is taken away.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::edit::{
    DEAD, GOOD, INVOKER, PUBLISHER, SOURCE, SUBSCRIBER, environment, expect, refused, remove, set,
};
use crate::program::{check, ids, run};

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
fn what_is_not_told_is_counted_and_refused_if_asked_for() {
    for (provider, text) in GOOD {
        let page = run(&["check", "--plan", "-"], text.as_bytes()).out;
        let known = run(&["check", "--plan", "-", "--known"], text.as_bytes());
        let (last, code) = match provider {
            "applied" => ("\nIt fits.\n", 0),
            _ => ("\nIt fits, as far as the plan tells: 1 unknown.\n", 1),
        };
        assert!(page.ends_with(last), "{provider}: {page}");
        assert_eq!(known.code, code, "{provider}: {}", known.out);
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
fn the_token_must_be_what_the_service_expects() {
    let audience = |value: &str| set(SOURCE, "/push_config/0/oidc_token/0/audience", json!(value));
    expect("audience", audience("https://orders.example/orders"), &["audience", "audience-differs"]);
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
            environment("PUSH_AUTH", "none")(plan);
            environment("PUSH_AUDIENCE", " ")(plan);
            environment("PUSH_SERVICE_ACCOUNT", "")(plan);
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
    assert_eq!(ids(&check(&plan, &[]).1["checked"][0], "unknown"), BTreeSet::from(["push-auth".to_owned()]));
}
