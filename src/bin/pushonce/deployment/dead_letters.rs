//! Whether dead-lettering works: its policy, its topic with a subscription, and the two grants of Pub/Sub's own account.

use std::time::Duration;

use crate::plan::{Identity, Plan, Resource, So, Told};

use super::agent::{AGENT, agent};
use super::grants::{Sought, granted};
use super::sizes::{RETENTION, time};
use super::{Found, SUBSCRIPTION, TOPIC};

const NEVER: &str = "expiration_policy { ttl = \"\" }";

pub(super) fn check(plan: &Plan, source: &Resource, found: &mut Found) {
    expiration(plan, source, found);
    if plan.told(source, "/dead_letter_policy/0") == Told::Absent {
        found.refuse("dead-letter-policy", "the subscription has no dead_letter_policy: a message that always fails comes back until it expires, and then is lost; add one");
        return;
    }
    let topic = dead_letter_topic(plan, source);
    let called = match topic {
        Identity::Planned(topic) => topic.address.clone(),
        _ => topic.name().unwrap_or("the dead-letter topic").to_owned(),
    };
    // Not unknown where it cannot be told: it is no likelier there than between any other two topics.
    if plan.identity(source, "/topic", TOPIC).is(&topic) == So::Yes {
        found.refuse("dead-letter-circle", format!(
            "{} subscribes to {called}, where its own dead letters go: each comes back to it, with new attempts, for ever; take another topic",
            source.address
        ));
    }
    subscribed(plan, &topic, &called, found);

    let member =
        |resource: &Resource, pointer: &str, told: Told<'_>| agent(plan, source, resource, pointer, told);
    let account = format!("serviceAccount:service-PROJECT_NUMBER{AGENT}");
    // What this plan does not make may have its grants and its subscription elsewhere.
    let known = if matches!(topic, Identity::Planned(_)) { So::No } else { So::Untold };
    let publisher = granted(
        plan,
        &Sought {
            on: &[(TOPIC, "topic")],
            target: &topic,
            kind: TOPIC,
            roles: &["roles/pubsub.publisher", "roles/pubsub.editor", "roles/pubsub.admin"],
            member: &member,
        },
    );
    found.demand(publisher.max(known), "dead-letter-publisher", format!(
        "{called} does not grant roles/pubsub.publisher to {account}, the Pub/Sub account of the subscription's project (its number, not its id): nothing is ever forwarded, and no delivery attempt is counted; add a google_pubsub_topic_iam_member"
    ));
    let subscriber = granted(
        plan,
        &Sought {
            on: &[(SUBSCRIPTION, "subscription")],
            target: &Identity::Planned(source),
            kind: SUBSCRIPTION,
            roles: &["roles/pubsub.subscriber", "roles/pubsub.editor", "roles/pubsub.admin"],
            member: &member,
        },
    );
    found.demand(subscriber, "source-subscriber", format!(
        "{} does not grant roles/pubsub.subscriber to {account} (the project's number, not its id), which acks there what it forwards: nothing is ever forwarded, and no delivery attempt is counted; add a google_pubsub_subscription_iam_member",
        source.address
    ));
}

fn dead_letter_topic<'a>(plan: &'a Plan, subscription: &'a Resource) -> Identity<'a> {
    plan.identity(subscription, "/dead_letter_policy/0/dead_letter_topic", TOPIC)
}

/// A topic without a subscription drops what is published to it.
fn subscribed(plan: &Plan, topic: &Identity<'_>, called: &str, found: &mut Found) {
    let mut best = if matches!(topic, Identity::Planned(_)) { So::No } else { So::Untold };
    for subscription in plan.of(SUBSCRIPTION) {
        // One whose dead letters go there is not the one that keeps them, whatever its own topic is.
        if dead_letter_topic(plan, subscription).is(topic) == So::Yes {
            continue;
        }
        let so = plan.identity(subscription, "/topic", TOPIC).is(topic);
        best = best.max(so);
        if so == So::Yes {
            expiration(plan, subscription, found);
            retention(plan, subscription, found);
        }
    }
    found.demand(best, "dead-letter-subscription", format!(
        "{called} has no subscription: what is dead-lettered is lost at once; add one that keeps it (retention 31 days, {NEVER})"
    ));
}

/// Dead letters wait for people.
fn retention(plan: &Plan, subscription: &Resource, found: &mut Found) {
    let kept = time(plan, subscription, "/message_retention_duration", RETENTION, found);
    if kept < Duration::from_secs(RETENTION) {
        found.warn("dead-letter-retention", format!(
            "{} keeps dead letters for {} s: expected at least 7 days, so that somebody has looked before they are gone; 31 days are the most",
            subscription.address,
            kept.as_secs()
        ));
    }
}

/// By default a subscription that was idle for 31 days is deleted, with what it should catch.
fn expiration(plan: &Plan, subscription: &Resource, found: &mut Found) {
    let so = match plan.told(subscription, "/expiration_policy/0/ttl") {
        Told::Is(ttl) => (ttl.as_str() == Some("")).into(),
        Told::Absent => So::No,
        Told::Unknown => So::Untold,
    };
    found.demand(
        so,
        "expiration",
        format!(
            "{} is deleted when it is idle for a while, after 31 days by default: expected {NEVER}",
            subscription.address
        ),
    );
}
