//! What becomes of dead letters, and of a push that is nothing but its data.

use std::collections::BTreeSet;

use serde_json::json;

use crate::edit::{DEAD, GOOD, SOURCE, changed, expect, set};
use crate::program::{check, ids};

#[test]
fn dead_letters_that_are_soon_gone_are_warned_of() {
    for (kept, warned) in [(json!("600s"), true), (json!("604799s"), true), (json!(null), false)] {
        for (provider, text) in GOOD {
            let plan = changed(text, &set(DEAD, "/message_retention_duration", kept.clone()));
            let (code, report) = check(&plan, &[]);
            let expected: BTreeSet<_> =
                warned.then(|| "dead-letter-retention".to_owned()).into_iter().collect();
            assert_eq!((code, ids(&report["checked"][0], "warned")), (0, expected), "{provider}, {kept}");
        }
    }
}

#[test]
fn no_subscription_gets_its_own_dead_letters() {
    let topic = json!("projects/shop-1/topics/orders-dead");
    expect("circle", set(SOURCE, "/topic", topic), &["dead-letter-circle"]);
}

#[test]
fn an_unwrapped_push_has_its_metadata() {
    for (written, expected) in
        [(json!(false), &["unwrapped"][..]), (json!(null), &["unwrapped"]), (json!(true), &[])]
    {
        let wrapper = json!([{"write_metadata": written}]);
        expect("no_wrapper", set(SOURCE, "/push_config/0/no_wrapper", wrapper), expected);
    }
}
