//! Within what a key counts: scope and key are joined without ambiguity, and compared on every read.

use std::collections::BTreeSet;

use bytes::Bytes;
use pushonce::Store as _;
use pushonce::store::{Record, StoreError};
use pushonce::submit::{Scope, SubmitError};
use serde_json::{Value, json};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{World, in_progress, is_conflict};

on_servers! {
    all {
        a_key_counts_within_its_scope_and_its_tenant
        a_and_b_c_is_not_a_b_and_c
        a_record_of_another_scope_and_key_under_the_same_name_is_never_taken_for_this_one
    }
}

fn custom(name: &str) -> Scope {
    Scope::Custom(name.to_owned())
}

async fn a_key_counts_within_its_scope_and_its_tenant(site: &Site) {
    let world = World::on(site.store());
    let submit = |task_type: &str| world.submitter.submit(task_type, &json!(1)).idempotency_key("k");
    let queue = |name: &str| Scope::Queue(name.to_owned());
    let submissions = || {
        [
            // The default is the task's type, whatever the queue.
            submit("charge"),
            submit("refund"),
            // The same key on two queues is two tasks.
            submit("charge").scope(queue("one")),
            submit("charge").scope(queue("two")),
            submit("charge").scope(Scope::Global),
            submit("charge").scope(custom("charge")),
            submit("charge").tenant("shop-1"),
            submit("charge").tenant("shop-2"),
            submit("charge").tenant("shop-2").scope(Scope::Global),
        ]
    };
    let mut ids = BTreeSet::new();
    for submission in submissions() {
        ids.insert(submission.send().await.unwrap().task.task_id);
    }
    assert_eq!(ids.len(), 9);
    for submission in submissions() {
        assert!(in_progress(&submission.send().await).is_some_and(|id| ids.remove(&id)));
    }
    let elsewhere = submit("charge").queue("any").send().await;
    assert!(in_progress(&elsewhere).is_some(), "{elsewhere:?}");
    // A global key names one task of one type.
    assert!(is_conflict(&submit("refund").scope(Scope::Global).send().await));
}

async fn a_and_b_c_is_not_a_b_and_c(site: &Site) {
    let world = World::on(site.store());
    let mut ids = BTreeSet::new();
    let pairs = [("a", "b:c"), ("a:b", "c"), ("a", "b|c"), ("a|b", "c"), ("a%3Ab", "c"), ("2.a", "b:c")];
    for (scope, key) in pairs {
        for tenant in [None, Some("a"), Some("a:b"), Some("a@b"), Some("a%40b")] {
            let submission = world.charge(key).scope(custom(scope));
            let submission = match tenant {
                Some(tenant) => submission.tenant(tenant),
                None => submission,
            };
            let made = submission.send().await.unwrap();
            assert!(!made.duplicate, "{tenant:?} {scope} {key}");
            ids.insert(made.task.task_id);
        }
    }
    assert_eq!(ids.len(), 30);
}

async fn a_record_of_another_scope_and_key_under_the_same_name_is_never_taken_for_this_one(site: &Site) {
    for member in ["scope", "key"] {
        let world = World::on(site.store());
        let id = world.submitted(member).await;
        let key = world.store.key("pushonce-idempotency");
        let stood = world.store.read(&key).await.unwrap().unwrap();
        let mut data: Value = serde_json::from_slice(&stood.record.data).unwrap();
        data[member] = "another".into();
        let foreign = Record { data: Bytes::from(data.to_string()), ..stood.record };
        let _ = world.store.swap(&key, Some(&stood.version), &foreign).await.unwrap();
        for submission in [world.charge(member), world.other(member)] {
            let met = submission.send().await;
            assert!(matches!(met, Err(SubmitError::Store(StoreError::Corrupt { .. }))), "{met:?}");
        }
        let left = world.store.read(&key).await.unwrap().unwrap();
        assert_eq!((left.record.data, world.publisher.tasks()), (foreign.data, vec![id]));
    }
}
