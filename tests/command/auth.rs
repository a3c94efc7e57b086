//! `PUSH_AUTH`, what belongs to it, and what Cloud Run itself asks of the token.

use serde_json::{Value, json};

use crate::edit::{GOOD, INVOKER, SERVICE, SOURCE, changed, environment, expect, set};
use crate::followed::untold;
use crate::program::{check, ids};

fn audience(text: &'static str) -> impl Fn(&mut Value) {
    move |plan| {
        environment("PUSH_AUDIENCE", text)(plan);
        set(SOURCE, "/push_config/0/oidc_token/0/audience", json!(text))(plan);
    }
}

#[test]
fn the_mode_is_one_with_which_the_service_starts_and_lets_pushes_in() {
    expect("verify, not open", environment("PUSH_AUTH", "verify"), &["push-auth"]);
    expect("no such mode", environment("PUSH_AUTH", "jwt"), &["push-auth"]);
    expect("none", environment("PUSH_AUTH", "none"), &[]);
    untold(&environment("PUSH_AUTH", ""), "push-auth");
}

#[test]
fn a_mode_that_compares_must_be_told_with_what() {
    for mode in ["platform", "verify"] {
        for name in ["PUSH_AUDIENCE", "PUSH_SERVICE_ACCOUNT"] {
            let change = |plan: &mut Value| {
                environment("PUSH_AUTH", mode)(plan);
                environment(name, "")(plan);
                if mode == "verify" {
                    set(INVOKER, "/member", json!("allUsers"))(plan);
                }
            };
            expect(name, change, &["push-auth"]);
        }
    }
}

#[test]
fn cloud_run_takes_its_own_address_and_custom_audiences_alone() {
    expect("another", audience("https://other.example"), &["audience"]);
    expect(
        "another, and open",
        |plan| {
            audience("https://other.example")(plan);
            environment("PUSH_AUTH", "verify")(plan);
            set(INVOKER, "/member", json!("allUsers"))(plan);
        },
        &[],
    );
    let address = "https://orders-0000000000-ew.a.run.app";
    for (provider, text) in GOOD {
        let plan = changed(text, &|plan| {
            audience(address)(plan);
            set(SERVICE, "/custom_audiences", Value::Null)(plan);
        });
        let (code, report) = check(&plan, &[]);
        let unknown = ids(&report["checked"][0], "unknown").contains("audience");
        assert_eq!((code, unknown), (0, provider != "applied"), "{provider}: {report:#}");
    }
}

#[test]
fn the_guard_is_not_switched_off() {
    for on in ["1", "TRUE", "maybe"] {
        expect(on, environment("PUSHONCE_DISABLED", on), &["environment"]);
    }
    for off in ["0", "False", ""] {
        expect(off, environment("PUSHONCE_DISABLED", off), &[]);
    }
}
